"""Responsiveness: two sets of three hosts take turns at one link, in four ways (paper, Fig. 22).

At each change one set stops and the other begins, by this program's own sockets, so that no
process has to start. The figures are the time that the link is silent around the change, and the
delay of the new set's first packet. Goal with timeslices: a silence of at most 2 ms (median).
"""

import select
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    options,
    show,
    side_by_side,
)
from lab.fabric.plan import DATA_INTERFACE, FabricHost
from lab.traffic import records, roles
from lab.traffic.records import Arrival
from lab.traffic.roles import DATAGRAM_BYTES, MESSAGE_PORT

GOAL_MS = 2.0
HOSTS_IN_SET = 3
TURN_S = 0.1
"""The paper's sets alternate every 2 s; the time between the changes is ignored."""
AROUND_NS = 20_000_000
QUEUE_BYTES = 32_000
"""Size of a socket's buffer: its content at the change still leaves."""


@dataclass(frozen=True)
class Responsiveness:
    """Changes of senders in one way, in ms."""

    way: Way
    changes: int
    silence_p50_ms: float
    """The longest time without a packet within 20 ms of a change."""
    silence_p90_ms: float
    silence_max_ms: float
    first_p50_ms: float
    """From the first call that sends to the first packet at the receiver."""
    first_max_ms: float


def open_sockets(xco: XcoRig, hosts: Sequence[FabricHost], stack: ExitStack) -> list[socket.socket]:
    """Open a socket towards the receiver in each host."""
    to = xco.fabric.receivers[0].address, MESSAGE_PORT

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, QUEUE_BYTES)
        made.connect(to)
        made.setblocking(False)
        return made

    return [stack.enter_context(xco.fabric.inside(host, make)) for host in hosts]


def send_until(sockets: Sequence[socket.socket], end_ns: int) -> int:
    """Send as much as the sockets take until an instant; return that of the first call."""
    data, began_ns = bytes(DATAGRAM_BYTES), time.monotonic_ns()
    while (now_ns := time.monotonic_ns()) < end_ns:
        _, ready, _ = select.select([], sockets, [], (end_ns - now_ns) / 1e9)
        for one in ready:
            try:
                one.send(data)
            except BlockingIOError:
                continue
    return began_ns


def take_turns(sets: Sequence[Sequence[socket.socket]], changes: int) -> list[int]:
    """Make the sets send one after the other; return when each turn began."""
    began = []
    for turn in range(changes + 1):
        end_ns = time.monotonic_ns() + round(TURN_S * 1e9)
        began.append(send_until(sets[turn % len(sets)], end_ns))
    return began


def silence_ns(arrivals: Sequence[Arrival], at_ns: int) -> int:
    """Return the longest time without a packet around an instant."""
    near = [a.at_ns for a in arrivals if abs(a.at_ns - at_ns) <= AROUND_NS]
    edges = [at_ns - AROUND_NS, *near, at_ns + AROUND_NS]
    return max(b - a for a, b in pairwise(edges))


def first_ns(arrivals: Sequence[Arrival], sources: set[str], at_ns: int) -> int | None:
    """Return how long after an instant the first packet of some sources arrived; None: never."""
    first = (a.at_ns - at_ns for a in arrivals if a.at_ns >= at_ns and a.source in sources)
    return next(first, None)


def measure(xco: XcoRig, way: Way, changes: int) -> Responsiveness:
    """Change a number of times between two sets of hosts."""
    fabric = xco.fabric
    hosts = [fabric.senders[:HOSTS_IN_SET], fabric.senders[HOSTS_IN_SET:]]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder, "arrivals")
        to = fabric.place(fabric.receivers[0])
        stack.enter_context(roles.sink_messages(to))
        capture = stack.enter_context(roles.capture(to, DATA_INTERFACE, path))
        sets = [open_sockets(xco, some, stack) for some in hosts]
        take_turns(sets, round(SETTLING_S / TURN_S) | 1)  # even turns: the first set is next again
        began = take_turns(sets, changes)[1:]
        time.sleep(TURN_S)
        capture.finish()
        arrivals = [a for a in records.read(path) if a.length > DATAGRAM_BYTES]
    silences = sorted(silence_ns(arrivals, at) / 1e6 for at in began)
    addresses = [{host.address for host in some} for some in hosts]
    firsts = [
        took / 1e6
        for turn, at in enumerate(began, 1)
        if (took := first_ns(arrivals, addresses[turn % 2], at)) is not None
    ]
    p90 = silences[len(silences) * 9 // 10]
    times = (statistics.median(silences), p90, silences[-1], statistics.median(firsts), max(firsts))
    return Responsiveness(way, changes, *times)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 4.0, "100Mbps")

    def changes(xco: XcoRig, way: Way) -> Iterator[Responsiveness]:
        yield measure(xco, way, max(5, round(chosen.seconds / TURN_S)))

    rows = list(
        side_by_side(
            "xcoresponse",
            chosen,
            lambda fabric: fabric.incast(2 * HOSTS_IN_SET, chosen.bottleneck_bps, BUFFER_BYTES),
            changes,
        )
    )
    columns = {
        "way": lambda row: row.way,
        "changes": lambda row: str(row.changes),
        "silence p50, ms": lambda row: f"{row.silence_p50_ms:.3f}",
        "p90": lambda row: f"{row.silence_p90_ms:.3f}",
        "max": lambda row: f"{row.silence_max_ms:.3f}",
        "first packet p50, ms": lambda row: f"{row.first_p50_ms:.3f}",
        "max of first": lambda row: f"{row.first_max_ms:.3f}",
    }
    silence = next((row.silence_p50_ms for row in rows if row.way == "timeslice"), None)
    reached = silence is not None and silence <= GOAL_MS
    show(chosen, rows, columns, silence_p50_ms=silence, goal_ms=GOAL_MS, reached=reached)


if __name__ == "__main__":
    main()
