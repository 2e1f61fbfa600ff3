"""A slow and a fast receiver of the same senders: what the slow one leaves to the fast one.

Four senders send to both in turns; of each pair, 500 frames may be under way, as a transport's
window allows. The slow one takes 5,000 frames a second, the fast one all that it gets.

Our switch has a queue for each destination and source. The rival has one queue for each source,
which stops at its head while the head's receiver has no room, as zVALE has. The switch has no such
mode: the senders play it. Their rings have 32 descriptors, the least that DPDK has, and all other
frames wait behind them in one queue. 32 frames for the slow receiver then stop all others, as one
would in zVALE. The third way shows that this is not what limits: the same queues, and no slow
receiver.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.zovn.runs import (
    Spread,
    build,
    in_turns,
    parsed,
    parser,
    show,
    shown,
    spread,
    spread_of_known,
)
from benchmarks.zovn.switches import measure
from benchmarks.zovn.traffic import Counted, Traffic

SENDERS: Final = 4
SLOW, FAST = SENDERS, SENDERS + 1
WINDOW: Final = 500
RATE: Final = 5_000
GOAL: Final = 20
DESTINATIONS, SOURCES, CONTROL = (
    "a queue for each destination",
    "one queue for each source",
    "one queue for each source, no slow receiver",
)


@dataclass(frozen=True)
class Receivers:
    """Both receivers in one way."""

    way: str
    fast_frames_per_s: Spread
    slow_frames_per_s: Spread
    lost: int
    times_of_one_queue: Spread | None
    """How many times as much the fast one gets as with one queue for each source."""


def traffic(way: str, rate: float, seconds: float) -> Traffic:
    """Return what is sent in one way."""
    return Traffic(
        bytes=64,
        sends=dict.fromkeys(range(SENDERS), (SLOW, FAST)),
        takes={} if way == CONTROL else {SLOW: rate},
        seconds=seconds,
        window=WINDOW,
        fifo=way != DESTINATIONS,
    )


def receivers(way: str, counts: Sequence[Counted], single: Sequence[Counted]) -> Receivers:
    """Return the figures of all repetitions; `single` are those with one queue for each source."""
    pairs = zip(counts, single, strict=bool(single))
    return Receivers(
        way=way,
        fast_frames_per_s=spread(each.rate(FAST) for each in counts),
        slow_frames_per_s=spread(each.rate(SLOW) for each in counts),
        lost=sum(each.total("lost") for each in counts),
        times_of_one_queue=spread_of_known(
            one.rate(FAST) / max(1.0, other.rate(FAST)) for one, other in pairs
        ),
    )


def rows_of(found: Mapping[tuple[float, str], Sequence[Counted]]) -> list[Receivers]:
    """Return the figures of all ways."""
    return [
        receivers(way, counts, found.get((rate, SOURCES), ()))
        for (rate, way), counts in found.items()
    ]


def main() -> int:
    """Measure, and print a table or JSON; 1 if the fast receiver misses its goal."""
    ways = [DESTINATIONS, SOURCES, CONTROL]
    made = parser(__doc__, seconds=4.0, repetitions=5, ways=ways)
    made.add_argument("--rate", type=float, default=RATE, help="frames/s of the slow receiver")
    options = parsed(made)
    build()
    found = in_turns(
        [options.rate],
        options.ways,
        options.repetitions,
        lambda rate, way: measure("zovn", SENDERS + 2, traffic(way, rate, options.seconds)).counted,
    )
    rows = rows_of(found)
    columns = {
        "way": lambda row: row.way,
        "fast, thousand/s": lambda row: shown(row.fast_frames_per_s, ".1f", 1e-3),
        "slow, thousand/s": lambda row: shown(row.slow_frames_per_s, ".1f", 1e-3),
        "lost": lambda row: str(row.lost),
        "times of one queue": lambda row: shown(row.times_of_one_queue, ".1f"),
    }
    show(options, rows, columns)
    return int(not options.quick and not reached(rows))


def reached(rows: Sequence[Receivers]) -> bool:
    """Return whether queues for each destination gain as much as they should."""
    times = [row.times_of_one_queue for row in rows if row.way == DESTINATIONS]
    return all(each is None or each.median >= GOAL for each in times)


if __name__ == "__main__":
    sys.exit(main())
