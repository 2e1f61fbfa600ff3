"""Speed of one pair of guests: ours, ours with a lossy class, OVS-DPDK, testpmd, a Linux bridge.

One guest sends to another as fast as it can. Each switch has one CPU, and DPDK's virtio-user, which
plays both guests, another one. The ways take turns, so that each is compared with OVS-DPDK within
the same minute. testpmd forwards from one port to the other and looks nothing up. The bridge's
guests are packet sockets on veths: it shows what containers have, not what the bridge could do.

Cycles of a frame are comparable only roughly: ours are all that the process used, with its polls
that found nothing; those of OVS-DPDK and testpmd are what they count themselves, without.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    spread_of_known,
)
from benchmarks.zovn.switches import WAYS, Measured, measure
from benchmarks.zovn.traffic import Traffic

BYTES: Final = (64, 1500)
REFERENCE: Final = "ovs"


@dataclass(frozen=True)
class Speed:
    """Speed of one way at one size."""

    way: str
    bytes: int
    frames_per_s: Spread
    gigabits_per_s: float
    """Of the bytes of frames, by the median."""
    cycles: Spread | None
    lost: int
    lost_percent: float
    """Of all that its ring took, in all repetitions."""
    overtaken: int
    repeated: int
    against_ovs: Spread | None
    """Ratio to OVS-DPDK in the same turn."""


def speed(way: str, length: int, runs: Sequence[Measured], rivals: Sequence[Measured]) -> Speed:
    """Return the figures of one way at one size."""
    counts = [run.counted for run in runs]
    rates = spread(each.rate() for each in counts)
    sent, lost = (sum(each.total(name) for each in counts) for name in ("sent", "lost"))
    pairs = zip(counts, (rival.counted for rival in rivals), strict=bool(rivals))
    return Speed(
        way=way,
        bytes=length,
        frames_per_s=rates,
        gigabits_per_s=rates.median * length * 8 / 1e9,
        cycles=spread_of_known(run.cycles for run in runs),
        lost=lost,
        lost_percent=100 * lost / max(1, sent),
        overtaken=sum(each.total("overtaken") for each in counts),
        repeated=sum(each.total("repeated") for each in counts),
        against_ovs=spread_of_known(one.rate() / max(1.0, other.rate()) for one, other in pairs),
    )


def speeds(found: Mapping[tuple[int, str], Sequence[Measured]]) -> list[Speed]:
    """Return the figures of all."""
    return [
        speed(way, length, runs, found.get((length, REFERENCE), ()))
        for (length, way), runs in found.items()
    ]


def main() -> int:
    """Measure, and print a table or JSON."""
    made = parser(__doc__, seconds=2.0, repetitions=7, ways=list(WAYS))
    made.add_argument("--sizes", type=numbers_of, default=list(BYTES), help="of frames: 64,1500")
    options = parsed(made, sizes=[64])
    build()
    found = in_turns(
        options.sizes,
        present(options.ways),
        options.repetitions,
        lambda length, way: measure(way, 2, Traffic(length, {0: [1]}, seconds=options.seconds)),
    )
    columns = {
        "way": lambda row: row.way,
        "bytes": lambda row: str(row.bytes),
        "million frames/s": lambda row: shown(row.frames_per_s, ".2f", 1e-6),
        "Gb/s": lambda row: f"{row.gigabits_per_s:.1f}",
        "cycles": lambda row: shown(row.cycles, ".0f"),
        "lost": lambda row: f"{row.lost} ({row.lost_percent:.4f} %)",
        "overtaken, repeated": lambda row: f"{row.overtaken}, {row.repeated}",
        "to ovs": lambda row: shown(row.against_ovs, ".2f"),
    }
    show(options, speeds(found), columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
