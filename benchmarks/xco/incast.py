"""Incast: barrier reads of 1 MB blocks from 1 to 16 servers, in four ways (paper, Fig. 3 and 14).

Goal: with timeslices, goodput at every number of servers is at least 90 % of a single sender's
best. Servers share one switch and the client's shallow-buffered port.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Options,
    Seen,
    Window,
    options,
    percent,
    seen_columns,
    show,
    side_by_side,
)
from lab.fabric.fabric import Fabric
from lab.traffic import roles
from lab.traffic.counts import rate_bps

GOAL = 0.9
SERVERS = tuple(range(1, 17))
SHORT = (1, 4, 10)


@dataclass(frozen=True)
class Incast:
    """Barrier reads from a number of servers in one way."""

    way: Way
    servers: int
    goodput_bps: float
    block_p50_ms: float | None
    """None: no block was complete."""
    block_max_ms: float | None
    seen: Seen


def measure(xco: XcoRig, way: Way, servers: int, seconds: float) -> Incast:
    """Read blocks from some servers, which are already running."""
    fabric = xco.fabric
    addresses = [host.address for host in fabric.senders[:servers]]
    with roles.read_blocks(fabric.place(fabric.receivers[0]), addresses) as reader:
        time.sleep(SETTLING_S)
        before, window = reader.counts(), Window(fabric)
        time.sleep(seconds)
        seen, after = window.close(), reader.finish()
    took = sorted(after.block_ns)
    middle, longest = (took[len(took) // 2] / 1e6, took[-1] / 1e6) if took else (None, None)
    return Incast(way, servers, rate_bps(before, after), middle, longest, seen)


def run(chosen: Options, counts: Sequence[int]) -> Iterator[Incast]:
    """Measure each number of servers on a fabric of its own, so that no other host takes CPU."""
    for count in counts:
        yield from run_one(chosen, count)


def run_one(chosen: Options, servers: int) -> Iterator[Incast]:
    """Measure one number of servers in each way."""

    def build(fabric: Fabric) -> None:
        fabric.incast(servers, chosen.bottleneck_bps, BUFFER_BYTES)

    def reads(xco: XcoRig, way: Way) -> Iterator[Incast]:
        with ExitStack() as stack:
            for host in xco.fabric.senders:
                stack.enter_context(roles.serve_reads(xco.fabric.place(host)))
            yield measure(xco, way, servers, chosen.seconds)

    return side_by_side("xcoincast", chosen, build, reads)


def best_single_bps(rows: Sequence[Incast], bottleneck_bps: int) -> float:
    """Return the best goodput of one server in any way; the capacity if none was measured."""
    single = [row.goodput_bps for row in rows if row.servers == 1]
    return max(single, default=float(bottleneck_bps))


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 2.5, "100Mbps")
    rows = list(run(chosen, SHORT if chosen.short else SERVERS))
    best = best_single_bps(rows, chosen.bottleneck_bps)
    slices = [row.goodput_bps / best for row in rows if row.way == "timeslice"]
    columns = {
        "servers": lambda row: str(row.servers),
        "way": lambda row: row.way,
        "goodput, Mb/s": lambda row: f"{row.goodput_bps / 1e6:.1f}",
        "of best single": lambda row: percent(row.goodput_bps / best),
        "block p50, ms": lambda row: "-" if row.block_p50_ms is None else f"{row.block_p50_ms:.0f}",
        **seen_columns(),
    }
    least = min(slices, default=None)
    facts = {"best_single_bps": round(best), "least_share_with_timeslices": least}
    show(chosen, rows, columns, **facts, goal=GOAL, reached=least is not None and least >= GOAL)


if __name__ == "__main__":
    main()
