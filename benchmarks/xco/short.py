"""Short TCP flows against a long one, in four ways (paper, Fig. 6, 7 and 17).

A long flow from one host and K parallel sequences of 30 KB flows from another cross one uplink to
two receivers. Goal with timeslices: next to any number of short flows the long one gets at least 40
% of the link (in the paper it falls to 9 % without coordination, and gets 43 % with it).
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Seen,
    Window,
    options,
    percent,
    seen_columns,
    show,
    side_by_side,
)
from lab.traffic import roles
from lab.traffic.counts import rate_bps

GOAL = 0.4
SEQUENCES = (0, 25, 50, 100, 200, 300, 400)
SHORT = (0, 50, 400)


@dataclass(frozen=True)
class Short:
    """A long flow next to a number of sequences of short ones, in one way."""

    way: Way
    sequences: int
    long_bps: float
    short_bps: float
    flow_p50_ms: float | None
    """How long a short flow took; None: none ended."""
    failed: int
    seen: Seen

    @property
    def total_bps(self) -> float:
        """Application goodput."""
        return self.long_bps + self.short_bps


def measure(xco: XcoRig, way: Way, sequences: int, seconds: float) -> Short:
    """Make both hosts send."""
    fabric = xco.fabric
    (first, second), (one, other) = fabric.senders, fabric.receivers
    with ExitStack() as stack:
        sink = stack.enter_context(roles.sink_streams(fabric.place(one)))
        beside = stack.enter_context(roles.sink_streams(fabric.place(other)))
        stack.enter_context(roles.send_stream(fabric.place(first), one.address))
        flows = sequences and stack.enter_context(
            roles.send_short_flows(fabric.place(second), other.address, sequences=sequences)
        )
        time.sleep(SETTLING_S)
        before, window = (sink.counts(), beside.counts()), Window(fabric)
        then = flows.counts() if flows else None
        time.sleep(seconds)
        after, seen = (sink.counts(), beside.counts()), window.close()
        last = flows.counts() if flows else None
    long_bps, short_bps = (rate_bps(b, a) for b, a in zip(before, after, strict=True))
    took = sorted(last.flow_ns) if last else []
    middle = took[len(took) // 2] / 1e6 if took else None
    failed = last.failed - then.failed if last and then else 0
    return Short(way, sequences, long_bps, short_bps, middle, failed, seen)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 2.5, "100Mbps")
    link = chosen.bottleneck_bps

    def shorts(xco: XcoRig, way: Way) -> Iterator[Short]:
        counts = SHORT if chosen.short else SEQUENCES
        return (measure(xco, way, count, chosen.seconds) for count in counts)

    rows = list(
        side_by_side(
            "xcoshort", chosen, lambda fabric: fabric.uplink(2, link, link, BUFFER_BYTES), shorts
        )
    )
    columns = {
        "sequences": lambda row: str(row.sequences),
        "way": lambda row: row.way,
        "total, Mb/s": lambda row: f"{row.total_bps / 1e6:.1f}",
        "of the link": lambda row: percent(row.total_bps / link),
        "long flow": lambda row: percent(row.long_bps / link),
        "short flows": lambda row: f"{row.short_bps / 1e6:.1f}",
        "flow's p50, ms": lambda row: "-" if row.flow_p50_ms is None else f"{row.flow_p50_ms:.0f}",
        "failed": lambda row: str(row.failed),
        **seen_columns(),
    }
    beside = [row for row in rows if row.way == "timeslice" and row.sequences > 0]
    least = min((row.long_bps / link for row in beside), default=0.0)
    total = min((row.total_bps / link for row in beside), default=0.0)
    facts = {"long_flow_with_timeslices": least, "total_with_timeslices": total}
    show(chosen, rows, columns, **facts, goal=GOAL, reached=least >= GOAL)


if __name__ == "__main__":
    main()
