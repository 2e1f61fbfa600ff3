"""Starts a wire between two interfaces: a rate, a delay, and a finite buffer that drops."""

from typing import Final

from lab.errors import BadRequestError
from lab.programs.processes import Place
from lab.traffic.counts import Wired
from lab.traffic.program import Traffic

LONGEST_S: Final = 1.0
HIGHEST_BPS: Final = 100_000_000_000
LARGEST_BUFFER: Final = 1 << 30


def wire(
    place: Place,
    left: str,
    right: str,
    *,
    rate_bps: int,
    delay_s: float = 0.0,
    buffer_bytes: int,
) -> Traffic[Wired]:
    """Start a wire between two interfaces of one namespace, without offloads and addresses.

    Unlike a queue in the kernel it never stops a sender: what finds the buffer full is dropped.

    Args:
        place: their namespace.
        left: one interface.
        right: the other.
        rate_bps: each way, of the bits of frames.
        delay_s: one way, in seconds.
        buffer_bytes: each way, before the line.

    Raises:
        BadRequestError: a value is out of range.
        ProgramError: there is no such interface.
    """
    if not 1 <= rate_bps <= HIGHEST_BPS:
        raise BadRequestError("rate_bps", rate_bps, f"a rate from 1 to {HIGHEST_BPS} bits/s")
    if not 0 <= delay_s <= LONGEST_S:
        raise BadRequestError("delay_s", delay_s, f"from 0 to {LONGEST_S:g} s")
    if not 1 <= buffer_bytes <= LARGEST_BUFFER:
        raise BadRequestError("buffer_bytes", buffer_bytes, f"from 1 to {LARGEST_BUFFER} bytes")
    return Traffic(
        Wired,
        place,
        "wire",
        left=left,
        right=right,
        rate=rate_bps,
        delay_us=round(delay_s * 1e6),
        buffer=buffer_bytes,
    )
