"""Frames per second of the switch alone, by the number of threads that forward.

All ports send to all others, as in `benchmarks.zovn.step`. Here each thread also plays the guests
of its ports, and all of its time counts, so one thread is slower than the step alone. With two
ports and two threads each frame goes from one thread to another; with more ports about half of them
do. A thread needs a CPU: with more threads than CPUs the rates say nothing.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.zovn.step import BYTES, build, measure, parser
from common.arguments import whole_number

PORTS: Final = (2, 8, 32)


@dataclass(frozen=True)
class Rate:
    """Rate of all frames together."""

    threads: int
    ports: int
    bytes: int
    median_per_s: float
    best_per_s: float


def rates(threads: Iterable[int], seconds: float, repetitions: int) -> list[Rate]:
    """Measure all sizes, interleaved."""
    sizes = list(product(BYTES, PORTS, threads))
    found: dict[tuple[int, int, int], list[float]] = defaultdict(list)
    for _ in range(repetitions):
        for length, ports, count in sizes:
            each = measure(ports, length, seconds, "nothing", count)
            found[length, ports, count].append(1e9 / each)
    return [
        Rate(count, ports, length, median(each), max(each))
        for (length, ports, count), each in found.items()
    ]


def show(found: list[Rate]) -> None:
    """Print the table."""
    table = Table("bytes", "ports", "threads", "million frames/s", "best")
    for rate in found:
        values = (f"{rate.median_per_s / 1e6:.2f}", f"{rate.best_per_s / 1e6:.2f}")
        table.add_row(str(rate.bytes), str(rate.ports), str(rate.threads), *values)
    Console().print(table)


def main() -> int:
    """Measure, and print a table or JSON."""
    options = parser(__doc__)
    most = min(8, os.cpu_count() or 1)
    default = list(range(1, most + 1))
    options.add_argument(
        "--threads", type=whole_number(1, 8), nargs="*", default=default, help="1 to 8"
    )
    arguments = options.parse_args()
    build()
    found = rates(arguments.threads, arguments.seconds, arguments.repetitions)
    if arguments.json:
        print(json.dumps([asdict(rate) for rate in found], indent=2))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
