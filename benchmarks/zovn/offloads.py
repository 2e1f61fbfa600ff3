"""Cost of a frame in the switch's step alone, where senders leave checksums or segments to others.

Two ports send to each other as in `benchmarks.zovn.step`, which says what this does not measure.
Segments have 1,448 bytes of TCP; frames of many have 40 of them. Each repetition measures all rows
in turn, so that other work of the machine slows all of them down.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.zovn.step import build, measure, parser

LONG: Final = 54 + 40 * 1448
ROWS: Final[Mapping[str, tuple[int, str]]] = {
    "1,500 bytes, nothing left": (1500, "nothing"),
    "1,500 bytes, the switch computes the checksum": (1500, "checksum"),
    "a segment of 40 in a frame, cut by the switch": (LONG, "segments"),
    "a frame of 40 segments, passed as it is": (LONG, "whole"),
}
"""Each with its bytes, and what the program calls it."""


@dataclass(frozen=True)
class Cost:
    """Cost of a frame that goes out."""

    what: str
    median_ns: float
    best_ns: float


def costs(seconds: float, repetitions: int) -> list[Cost]:
    """Measure all rows, interleaved."""
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(repetitions):
        for what, (length, left) in ROWS.items():
            found[what].append(measure(2, length, seconds, left))
    return [Cost(what, median(each), min(each)) for what, each in found.items()]


def show(found: Sequence[Cost]) -> None:
    """Print the table."""
    table = Table("what goes out", "median ns", "best ns")
    for cost in found:
        table.add_row(cost.what, f"{cost.median_ns:.0f}", f"{cost.best_ns:.0f}")
    Console().print(table)


def main() -> int:
    """Measure, and print a table or JSON."""
    arguments = parser(__doc__).parse_args()
    build()
    found = costs(arguments.seconds, arguments.repetitions)
    if arguments.json:
        print(json.dumps([asdict(cost) for cost in found], indent=2))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
