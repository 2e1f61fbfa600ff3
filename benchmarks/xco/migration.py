"""Live migration next to n senders of TCP or UDP to the same host, in four ways (paper, Fig. 19).

The memory of an idle VM is a stream of bytes, as a hypervisor sends it: here a twentieth of the
paper's 256 MB over a tenth of its link. Its time ends when the receiver has confirmed all of it.
Uncoordinated and next to UDP it may not end: the benchmark stops it. Goal with timeslices: next to
n senders of either kind it takes at most 1.3 (n + 1) times as long as alone.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Literal

from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Options,
    Seen,
    Window,
    options,
    seen_columns,
    show,
    side_by_side,
)
from lab.traffic import roles

GOAL = 1.3
PORT = 8002
MEMORY_BYTES = 12_800_000
PIECE_BYTES = 64_000
SENDERS = (0, 1, 2, 4)
SHORT_SENDERS = (0, 2)
PATIENCE_S = 20.0
"""A migration is aborted after this: alone it takes a second."""

Kind = Literal["TCP", "UDP"]


@dataclass(frozen=True)
class Migration:
    """One migration next to a number of senders."""

    way: Way
    kind: Kind
    senders: int
    seconds: float | None
    """None: it was aborted."""
    seen: Seen


def migrate(xco: XcoRig) -> float | None:
    """Move a VM's memory from the first sender to the receiver; return how long it took."""
    fabric, to = xco.fabric, xco.fabric.receivers[0]
    with ExitStack() as stack:
        listening = stack.enter_context(
            fabric.inside(to, lambda: socket.create_server((to.address, PORT)))
        )
        receiver = threading.Thread(target=_receive, args=(listening,))
        receiver.start()
        stack.callback(receiver.join)
        begun = time.monotonic()
        with suppress(TimeoutError):
            source = fabric.inside(
                fabric.senders[0], lambda: socket.create_connection((to.address, PORT), PATIENCE_S)
            )
            with source:
                _send(source, begun + PATIENCE_S)
                return time.monotonic() - begun
        return None


def _receive(listening: socket.socket) -> None:
    listening.settimeout(PATIENCE_S)
    with suppress(TimeoutError):
        connection, _ = listening.accept()
        connection.settimeout(PATIENCE_S)
        with connection:
            left = MEMORY_BYTES
            while left > 0 and (piece := connection.recv(PIECE_BYTES)):
                left -= len(piece)
            if left == 0:
                connection.sendall(b"d")


def _send(source: socket.socket, deadline: float) -> None:
    """Send all of it and wait for the receiver's confirmation.

    Raises:
        TimeoutError: the deadline has passed.
    """
    piece, left = bytes(PIECE_BYTES), MEMORY_BYTES
    while left > 0:
        _hurry(source, deadline)
        left -= source.send(piece[:left])
    _hurry(source, deadline)
    source.recv(1)


def _hurry(source: socket.socket, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    source.settimeout(left)


def measure(xco: XcoRig, way: Way, kind: Kind, senders: int) -> Migration:
    """Migrate while some other hosts send as fast as possible."""
    fabric, to = xco.fabric, xco.fabric.receivers[0]
    with ExitStack() as stack:
        stack.enter_context(roles.sink_streams(fabric.place(to)))
        stack.enter_context(roles.sink_messages(fabric.place(to)))
        for host in fabric.senders[1 : senders + 1]:
            send = roles.send_stream if kind == "TCP" else roles.send_messages
            stack.enter_context(send(fabric.place(host), to.address))
        time.sleep(SETTLING_S)
        window = Window(fabric)
        seconds = migrate(xco)
        return Migration(way, kind, senders, seconds, window.close())


def run(chosen: Options) -> Iterator[Migration]:
    """Measure each number of senders of each kind, in each way."""
    counts = SHORT_SENDERS if chosen.short else SENDERS

    def migrations(xco: XcoRig, way: Way) -> Iterator[Migration]:
        kinds: tuple[Kind, ...] = ("TCP", "UDP")
        for kind in kinds:
            for count in counts:
                yield measure(xco, way, kind, count)

    return side_by_side(
        "xcomigrate",
        chosen,
        lambda fabric: fabric.incast(max(counts) + 1, chosen.bottleneck_bps, BUFFER_BYTES),
        migrations,
    )


def longest(rows: list[Migration]) -> float | None:
    """Return the longest migration in timeslices, as a multiple of n + 1 of them alone."""
    sliced = [row for row in rows if row.way == "timeslice"]
    alone = min((row.seconds for row in sliced if row.senders == 0 and row.seconds), default=None)
    if alone is None or any(row.seconds is None for row in sliced):
        return None
    return max((row.seconds or 0.0) / (alone * (row.senders + 1)) for row in sliced)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 0.0, "100Mbps")
    rows = list(run(chosen))
    columns = {
        "way": lambda row: row.way,
        "beside": lambda row: f"{row.senders} {row.kind}",
        "migration, s": lambda row: "given up" if row.seconds is None else f"{row.seconds:.1f}",
        **seen_columns(),
    }
    worst = longest(rows)
    reached = worst is not None and worst <= GOAL
    show(chosen, rows, columns, longest_of_linear=worst, goal=GOAL, reached=reached)


if __name__ == "__main__":
    main()
