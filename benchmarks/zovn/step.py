"""Cost of a frame in the switch's step alone, by length and number of ports.

All ports send to all others as fast as they can, over split virtqueues in the memory of one
process; `make -C zovn/core bench` builds the program. Each repetition measures all sizes in turn,
so that other work of the machine slows all of them down; the table shows medians and the best.

It does not measure a switch in use. There is no guest: no second core reads or writes the rings, no
notification is sent, all buffers stay in one core's caches as far as they fit. There is no session
and no DPDK, and the time in which the program plays the guests is not counted.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from common.arguments import whole_number

CORE: Final = Path(__file__).parents[2] / "zovn" / "core"
BENCH: Final = CORE / "build" / "zovn-bench"
PORTS: Final = (2, 8, 16, 32, 64)
BYTES: Final = (64, 1500)


@dataclass(frozen=True)
class Cost:
    """Cost of a frame at one size."""

    ports: int
    bytes: int
    median_ns: float
    best_ns: float
    frames_per_s: float
    """By the median, of one core that does nothing else."""


def measure(
    ports: int, length: int, seconds: float, left: str = "nothing", threads: int = 0
) -> float:
    """Run the program once; return nanoseconds for each frame that goes out.

    Args:
        ports: their number.
        length: bytes of a frame.
        seconds: for how long.
        left: what senders leave to others; `benchmarks.zovn.offloads` has the words.
        threads: that forward, and play the guests; 0: steps alone are timed.
    """
    command = [str(BENCH), str(ports), str(length), str(seconds), left, str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return float(found["busy_ns"] / found["frames"])


def costs(ports: Iterable[int], seconds: float, repetitions: int) -> list[Cost]:
    """Measure all sizes, interleaved."""
    sizes = list(product(BYTES, ports))
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for _ in range(repetitions):
        for length, count in sizes:
            found[length, count].append(measure(count, length, seconds))
    return [
        Cost(count, length, median(each), min(each), 1e9 / median(each))
        for (length, count), each in found.items()
    ]


def show(found: list[Cost]) -> None:
    """Print the table."""
    table = Table("bytes", "ports", "median ns", "best ns", "million frames/s")
    for cost in found:
        values = (f"{cost.median_ns:.0f}", f"{cost.best_ns:.0f}", f"{cost.frames_per_s / 1e6:.2f}")
        table.add_row(str(cost.bytes), str(cost.ports), *values)
    Console().print(table)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the options of a benchmark of the step."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_argument("--seconds", type=float, default=0.5, help="for each measurement")
    options.add_argument(
        "--repetitions", type=whole_number(1), default=7, help="of each measurement"
    )
    return options


def build() -> None:
    """Build the program."""
    subprocess.run(["make", "-s", "-C", str(CORE), "bench"], check=True)  # noqa: S607  any make


def main() -> int:
    """Measure, and print a table or JSON."""
    options = parser(__doc__)
    options.add_argument(
        "--ports", type=whole_number(2, 72), nargs="*", default=list(PORTS), help="2 to 72"
    )
    arguments = options.parse_args()
    build()
    found = costs(arguments.ports, arguments.seconds, arguments.repetitions)
    if arguments.json:
        print(json.dumps([asdict(cost) for cost in found], indent=2))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
