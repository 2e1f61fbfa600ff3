"""A sender of single packets at a rate, that keeps how many it sent and how late it was.

What arrives behind a limit is judged against it: a limit is a ceiling whatever the machine does,
and lets its rate through only while something is sent. Run as a program, it is the sender.
"""

import argparse
import contextlib
import ctypes
import mmap
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

STATE: Final = struct.Struct("=ddd")
"""Packets sent, seconds late, and the instant of the last step; 0 instead while it sends."""
STEP_S: Final = 0.001
PUNCTUAL_S: Final = 0.002
"""A step that comes later than this is counted as a time in which nothing was sent."""
PRIORITY: Final = 60
CLONE_NEWNET: Final = 0x40000000


@dataclass(frozen=True)
class Paced:
    """The state that a sender publishes."""

    state: Path

    def command(
        self, ends: tuple[str, str], rate: float, sizes: Sequence[int] = (22,), netns: str = ""
    ) -> list[str]:
        """Return the command that sends between two IPv4 addresses.

        Args:
            ends: source ("" for any) and destination.
            rate: packets/s.
            sizes: of the payloads in turn, in bytes.
            netns: the network namespace to enter, where the caller starts it elsewhere.
        """
        self.state.write_bytes(STATE.pack(0.0, 0.0, 0.0))
        words = [sys.executable, __file__, str(self.state), *ends, str(rate), "--netns", netns]
        return [*words, "--sizes", *map(str, sizes)]

    def sent(self) -> float:
        """Return how many packets it has sent."""
        return float(STATE.unpack(self.state.read_bytes())[0])

    def late(self) -> float:
        """Return for how many seconds it could not send, with those since it should have woken.

        While it sends, it is not late: a limit that stops it is to be seen.
        """
        now = time.monotonic()
        _, late, last = STATE.unpack(self.state.read_bytes())
        return float(late + max(0.0, now - last - PUNCTUAL_S)) if last else float(late)


def main() -> None:
    """Send until this is killed."""
    options = parse()
    if options.netns:
        entered = ctypes.CDLL(None).setns(os.open(options.netns, os.O_RDONLY), CLONE_NEWNET)
        assert entered == 0
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.bind((options.source, 0))
    out.connect((options.destination, 9))
    packets = [bytes(size) for size in options.sizes]
    with (
        Path(options.state).open("r+b") as file,
        mmap.mmap(file.fileno(), STATE.size) as state,
        memoryview(state).cast("d") as view,
    ):
        send(out, packets, options.rate, partial(store, view))


def store(view: memoryview, *values: float) -> None:
    """Store each value at once: struct would zero all first, and a reader could see that."""
    for place, value in enumerate(values):
        view[place] = value


def send(
    out: socket.socket,
    packets: list[bytes],
    rate: float,
    publish: Callable[[float, float, float], None],
) -> None:
    """Send what is due in each step; what was due while this stood still is not made up for."""
    sent, late, owed, last = 0, 0.0, 0.0, time.monotonic()
    while True:
        now = time.monotonic()
        late += max(0.0, now - last - PUNCTUAL_S)
        owed += min(now - last, PUNCTUAL_S) * rate
        last = now
        publish(float(sent), late, 0.0)
        while owed >= 1:
            transmit(out, packets[sent % len(packets)])
            sent, owed = sent + 1, owed - 1
        publish(float(sent), late, last)
        time.sleep(STEP_S)


def transmit(out: socket.socket, packet: bytes) -> None:
    """Send one packet; where a limit drops it at once, send() fails, and it counts as sent."""
    with contextlib.suppress(OSError):
        out.send(packet)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state")
    parser.add_argument("source")
    parser.add_argument("destination")
    parser.add_argument("rate", type=float)
    parser.add_argument("--sizes", type=int, nargs="+", default=[22])
    parser.add_argument("--netns", default="")
    return parser.parse_args()


if __name__ == "__main__":
    main()
