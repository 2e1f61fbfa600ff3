"""Streams of 1 MB reads from 1 to 12 targets to one initiator, in four ways: a stand-in for iSCSI.

The paper (Fig. 2 and 13) reads 1 GB from iSCSI targets that form a RAID-0. Here a reader for each
target asks for 1 MB, takes it over TCP, and asks for the next, and waits for no other target. There
are no disks, no iSCSI commands and no jumbo frames. `benchmarks.xco.incast` has a barrier instead:
one block striped over all servers. Goal with timeslices: 90 % of the best of a single target.
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
TARGETS = (1, 2, 4, 8, 12)
SHORT = (1, 4, 8)


@dataclass(frozen=True)
class Reads:
    """Streams of reads from a number of targets in one way."""

    way: Way
    targets: int
    goodput_bps: float
    seen: Seen


def measure(xco: XcoRig, way: Way, seconds: float) -> Reads:
    """Read from all targets, each in a separate stream."""
    fabric = xco.fabric
    initiator = fabric.place(fabric.receivers[0])
    with ExitStack() as stack:
        for host in fabric.senders:
            stack.enter_context(roles.serve_reads(fabric.place(host)))
        readers = [
            stack.enter_context(roles.read_blocks(initiator, [host.address]))
            for host in fabric.senders
        ]
        time.sleep(SETTLING_S)
        before, window = [reader.counts() for reader in readers], Window(fabric)
        time.sleep(seconds)
        seen, after = window.close(), [reader.counts() for reader in readers]
    goodput = sum(rate_bps(b, a) for b, a in zip(before, after, strict=True))
    return Reads(way, len(readers), goodput, seen)


def run(chosen: Options, counts: Sequence[int]) -> Iterator[Reads]:
    """Measure each number of targets on a fabric of its own, so that no other host takes CPU."""

    def reads(xco: XcoRig, way: Way) -> Iterator[Reads]:
        yield measure(xco, way, chosen.seconds)

    for count in counts:

        def build(fabric: Fabric, targets: int = count) -> None:
            fabric.incast(targets, chosen.bottleneck_bps, BUFFER_BYTES)

        yield from side_by_side("xcoreads", chosen, build, reads)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 2.5, "100Mbps")
    rows = list(run(chosen, SHORT if chosen.short else TARGETS))
    singles = [row.goodput_bps for row in rows if row.targets == 1]
    best = max(singles, default=float(chosen.bottleneck_bps))
    columns = {
        "targets": lambda row: str(row.targets),
        "way": lambda row: row.way,
        "goodput, Mb/s": lambda row: f"{row.goodput_bps / 1e6:.1f}",
        "of best single": lambda row: percent(row.goodput_bps / best),
        **seen_columns(),
    }
    least = min((r.goodput_bps / best for r in rows if r.way == "timeslice"), default=None)
    facts = {"best_single_bps": round(best), "least_share_with_timeslices": least}
    show(chosen, rows, columns, **facts, goal=GOAL, reached=least is not None and least >= GOAL)


if __name__ == "__main__":
    main()
