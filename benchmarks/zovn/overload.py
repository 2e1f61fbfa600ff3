"""Overload: many guests send to one that takes less, and what is lost on the way.

All senders send as fast as they can; the sink takes so many frames a second. Numbers in the frames
prove what was lost, repeated or overtaken, on the whole way from a sender's ring on. `used` is the
share of the frames that the sink could take, and got; fairness is Jain's index of the senders.
testpmd is not among the ways: it forwards between two ports, and looks nothing up.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from benchmarks.zovn.runs import (
    Spread,
    build,
    in_turns,
    numbers_of,
    parsed,
    parser,
    present,
    show,
    shown,
    spread,
)
from benchmarks.zovn.switches import WAYS, measure
from benchmarks.zovn.traffic import Counted, Traffic

SENDERS: Final = (2, 8, 32)
BYTES: Final = (64, 1500)
SINK: Final = 300_000
"""Frames a second that the sink takes."""


@dataclass(frozen=True)
class Overload:
    """Fate of the frames in one way."""

    way: str
    senders: int
    bytes: int
    sent: int
    lost: int
    lost_percent: float
    repeated: int
    overtaken: int
    sink_frames_per_s: Spread
    used: Spread
    fairness: Spread


def overload(way: str, senders: int, length: int, counts: Sequence[Counted]) -> Overload:
    """Return the figures of all repetitions; the sink follows the senders."""
    sent, lost = (sum(each.total(name) for each in counts) for name in ("sent", "lost"))
    return Overload(
        way=way,
        senders=senders,
        bytes=length,
        sent=sent,
        lost=lost,
        lost_percent=100 * lost / max(1, sent),
        repeated=sum(each.total("repeated") for each in counts),
        overtaken=sum(each.total("overtaken") for each in counts),
        sink_frames_per_s=spread(each.rate(senders) for each in counts),
        used=spread(each.used(senders) for each in counts),
        fairness=spread(each.fairness(senders) for each in counts),
    )


def traffic(senders: int, length: int, sink: float, seconds: float) -> Traffic:
    """Return what senders send to the sink."""
    sends = {number: [senders] for number in range(senders)}
    return Traffic(length, sends, {senders: sink}, seconds)


def main() -> int:
    """Measure, and print a table or JSON."""
    ways = [name for name, way in WAYS.items() if not way.pair_only]
    made = parser(__doc__, seconds=2.0, repetitions=5, ways=ways)
    made.add_argument("--senders", type=numbers_of, default=list(SENDERS), help="2,8,32")
    made.add_argument("--sizes", type=numbers_of, default=list(BYTES), help="of frames: 64,1500")
    made.add_argument("--sink", type=float, default=SINK, help="frames/s that the sink takes")
    options = parsed(made, senders=[4], sizes=[64], sink=20_000)
    build()
    found = in_turns(
        product(options.senders, options.sizes),
        present(options.ways),
        options.repetitions,
        lambda case, way: (
            measure(way, case[0] + 1, traffic(*case, options.sink, options.seconds)).counted
        ),
    )
    rows = [overload(way, *case, counts) for (case, way), counts in found.items()]
    columns = {
        "way": lambda row: row.way,
        "senders": lambda row: str(row.senders),
        "bytes": lambda row: str(row.bytes),
        "sent": lambda row: str(row.sent),
        "lost": lambda row: f"{row.lost} ({row.lost_percent:.1f} %)",
        "repeated, overtaken": lambda row: f"{row.repeated}, {row.overtaken}",
        "sink, thousand/s": lambda row: shown(row.sink_frames_per_s, ".1f", 1e-3),
        "used, %": lambda row: shown(row.used, ".1f", 100),
        "fairness": lambda row: shown(row.fairness, ".4f"),
    }
    show(options, rows, columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
