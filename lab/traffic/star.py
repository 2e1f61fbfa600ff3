"""Starts a star: a physical switch between interfaces, lossy or lossless by PFC (802.1Qbb)."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from lab.errors import BadRequestError
from lab.programs.processes import Place
from lab.traffic.cable import HIGHEST_BPS, LARGEST_BUFFER, LONGEST_S
from lab.traffic.counts import Report
from lab.traffic.program import Traffic

CLASSES: Final = 8
LONGEST_PAUSE: Final = 0xFFFF
"""In quanta of 512 bit times."""
PFC_BYTES: Final = 60
LARGEST_FRAME: Final = 1518
"""With a VLAN tag, without a checksum."""
_MOST_PORTS: Final = 64


class StarPort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of one port; tuples are by class."""

    packets_in: int
    bytes_in: int
    packets: int
    """Passed to the interface."""
    bytes: int
    unknown: int
    """Frames that came here for an address that no other port has."""
    floods: int
    """Frames to all others, of which copies went out."""
    copies: int
    missed: int
    """Frames for which the star was too slow; no other count includes them."""
    refused: int
    """Frames that the interface did not take."""
    latest_ns: int
    """How much later than intended a frame was at most; a busy machine is late."""
    held_bytes: int
    """Bytes that wait for this output now."""
    dropped: tuple[int, ...]
    """Frames that found the queue of this output full."""
    overflowed: tuple[int, ...]
    """Frames that found no room at this input: their sender was not held back in time."""
    most_bytes: tuple[int, ...]
    """The most that lossless frames from this input took of its room."""
    xoff_sent: tuple[int, ...]
    xon_sent: tuple[int, ...]
    xoff_received: tuple[int, ...]
    xon_received: tuple[int, ...]
    paused_ns: tuple[int, ...]
    """How long the peer stopped this output."""


class Starred(Report, frozen=True):
    """Report of a star."""

    ports: dict[str, StarPort]
    """By interface."""

    def lost(self) -> int:
        """Return how many frames were lost for want of room."""
        return sum(sum(port.dropped) + sum(port.overflowed) for port in self.ports.values())


@dataclass(frozen=True, slots=True)
class Line:
    """A line from a port of the star to one host."""

    interface: str
    addresses: Sequence[str]
    """Ethernet addresses at its other end."""
    rate_bps: int
    """Of what the star sends; the other end keeps its own."""
    delay_s: float = 0.0
    """Each way."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """Room for frames, and when a lossless class stops its sender."""

    bytes: int
    """For each class: of an output if it is lossy, of an input if it is lossless."""
    lossless: Collection[int] = ()
    """Classes."""
    xoff_bytes: int = 0
    """More than this from one input: pause its sender."""
    xon_bytes: int = 0
    """So much or less: it may go on."""
    quanta: int = LONGEST_PAUSE
    """Of a pause, in 512 bit times; it is renewed when half of it is over."""


def headroom(
    rate_bps: int, delay_s: float, *, reaction_s: float = 0.0, frame_bytes: int = LARGEST_FRAME
) -> int:
    """Return the bytes above XOFF that frames of one class from one input may need.

    The frame that passes XOFF; what comes while the star ends a frame and sends pauses; what is
    under way until the host obeys; the frame that it has begun. The host must keep the line's rate.

    Args:
        rate_bps: of the line.
        delay_s: of it, one way.
        reaction_s: how long the host takes to obey.
        frame_bytes: of the largest frame.
    """
    on_the_way = rate_bps / 8 * (2 * delay_s + reaction_s)
    return math.ceil(on_the_way) + 3 * frame_bytes + CLASSES * PFC_BYTES


def lossless(size: int, room_for_late: int, classes: Collection[int] = range(CLASSES)) -> Buffers:
    """Return buffers of which the last part is headroom.

    Args:
        size: bytes for each class of an input.
        room_for_late: the headroom.
        classes: that lose nothing.

    Raises:
        BadRequestError: the headroom leaves nothing.
    """
    if not 0 < room_for_late < size:
        raise BadRequestError("room_for_late", room_for_late, f"above 0 and below {size} bytes")
    xoff = size - room_for_late
    return Buffers(size, tuple(classes), xoff_bytes=xoff, xon_bytes=xoff // 2)


def star(place: Place, lines: Sequence[Line], buffers: Buffers) -> Traffic[Starred]:
    """Start a star between interfaces of one namespace, without offloads and addresses.

    Frames go to the line that has their destination, those to a group to all others; the star
    learns nothing. Their class is the priority of their VLAN tag, else 0; a higher one goes first.

    Args:
        place: their namespace.
        lines: of its ports.
        buffers: alike at all ports.

    Raises:
        BadRequestError: a value is out of range.
        ProgramError: there is no such interface, or an address is none.
    """
    _check("lines", len(lines), 1, _MOST_PORTS)
    for line in lines:
        _check("rate_bps", line.rate_bps, 1, HIGHEST_BPS)
        _check("delay_s", line.delay_s, 0, LONGEST_S)
    _check_buffers(buffers)
    entered = [f"{address}={line.interface}" for line in lines for address in line.addresses]
    return Traffic(
        Starred,
        place,
        "star",
        ports=",".join(_written(line) for line in lines),
        addresses=",".join(entered),
        buffer=buffers.bytes,
        lossless=sum(1 << each for each in set(buffers.lossless)),
        xoff=buffers.xoff_bytes,
        xon=buffers.xon_bytes,
        quanta=buffers.quanta,
    )


def _written(line: Line) -> str:
    return f"{line.interface}:{line.rate_bps}:{round(line.delay_s * 1e6)}"


def _check_buffers(buffers: Buffers) -> None:
    _check("bytes", buffers.bytes, 1, LARGEST_BUFFER)
    _check("quanta", buffers.quanta, 1, LONGEST_PAUSE)
    for each in buffers.lossless:
        _check("lossless", each, 0, CLASSES - 1)
    _check("xoff_bytes", buffers.xoff_bytes, 0, buffers.bytes)
    _check("xon_bytes", buffers.xon_bytes, 0, buffers.xoff_bytes)


def _check(field: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise BadRequestError(field, value, f"a number from {least:g} to {most:g}")
