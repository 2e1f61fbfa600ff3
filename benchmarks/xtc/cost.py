"""Cost of the daemon: CPU, memory and tick time at 10, 100 and 1,000 routers.

    python -m benchmarks.xtc.cost                       # as root; 4 minutes
    python -m benchmarks.xtc.cost --sizes 100 --before DIRECTORY
    python -m benchmarks.xtc.cost --no-shield
    python -m benchmarks.xtc.cost --json                # the raw results

The daemon is the real one: it reads the kernel's /proc/net/dev of as many real interfaces (two a
router), writes and reads back a real cgroup quota for each router, and has a shield in force on
all of them. The routers' throughput is simulated, since no machine has a thousand busy routers to
spare: each is flooded, gets what its shield passes, and forwards as much of that as its cap allows.
The simulated host's text replaces what was read, and its time is subtracted. Each run is a separate
process; --before runs another version of the sources (with its shield built) in turns with this
one.

"Files alone" is the cost of reading a router's files once a second, and nothing else.

The CPU time is the whole process's, the threads of journal and libzmq included. A tick is given in
CPU time, too: on a shared machine the wall clock includes other work. One more run of the first
size above 50 has a subscriber to the telemetry (*), and one measures the time by section. Two show
the limits: one has no shields, and in one ("decisions only") nothing is read, written or set, so
that only the daemon's own Python is left. "In the kernel" is the part of the CPU time in system
calls, "calls" the number of reads and writes per tick.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.rig import lab_missing
from benchmarks.xtc.cost_run import Cost, Options, measure
from common.arguments import whole_number

SIZES: Final = (10, 100, 1000)
TICKS: Final = 100
"""Minimum of measured ticks with MANY routers: fewer have no 99th percentile."""
MANY: Final = 1000
TYPICAL: Final = 50
"""Number of routers from which on the time is shown by section."""
_START: Final = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import xtc
del sys.path[0]
from benchmarks.xtc.cost import main
main()
"""
"""Program that imports the package `xtc` from a directory, and all else from this version."""


def main() -> None:
    """Measure every size in a separate process, and print."""
    options = _arguments()
    if missing := lab_missing():
        sys.exit("this needs: " + "; ".join(missing))
    if options.one is not None:
        print(json.dumps(asdict(measure(Options(**json.loads(options.one))))))
        return
    here = Path(__file__).parents[2]
    trees = {"before": options.before, "now": here} if options.before else {"now": here}
    costs: dict[str, list[Cost]] = {name: [] for name in trees}
    for run, (name, tree) in product(_runs(options), trees.items()):
        costs[name].append(_in_process(run, tree))
    if options.json:
        print(json.dumps({name: [asdict(c) for c in each] for name, each in costs.items()}))
        return
    for name, each in costs.items():
        _print(name, each)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", type=whole_number(1), nargs="+", default=SIZES, metavar="ROUTERS"
    )
    parser.add_argument("--seconds", type=whole_number(1), default=20, help="measured in each run")
    parser.add_argument("--no-shield", action="store_true", help="set no shields in any run")
    parser.add_argument("--before", type=Path, help="sources of another version")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def _runs(options: argparse.Namespace) -> list[Options]:
    shield, seconds = not options.no_shield, options.seconds
    runs = [
        Options(size, max(seconds, TICKS) if size >= MANY else seconds, shield=shield)
        for size in options.sizes
    ]
    typical = next((run for run in runs if run.routers > TYPICAL), None)
    if typical is None:
        return runs
    limits = [replace(typical, kernel=False)]
    if shield:
        limits = [replace(typical, shield=False), *limits]
    return [*runs, replace(typical, subscribed=True), *limits, replace(typical, sections=True)]


def _in_process(options: Options, tree: Path) -> Cost:
    command = [sys.executable, "-c", _START, str(tree), "--one", json.dumps(asdict(options))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Cost.read(json.loads(done.stdout))


def _print(name: str, costs: Iterable[Cost]) -> None:
    console = Console(highlight=False, width=140)
    table = Table("routers", box=None, header_style="bold", title=name, title_justify="left")
    headings = (
        "CPU, % of a core",
        "in the kernel",
        "calls",
        "a router, us/s",
        "files alone",
        "memory",
        "tick p50",
        "p99",
        "CPU p50",
        "p99",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for cost in costs:
        if not cost.sections:
            table.add_row(*_row(cost))
    console.print(table)
    for cost in costs:
        if cost.sections:
            _print_sections(console, cost)


def _what(options: Options) -> str:
    kind = "" if options.shield else ", no shield"
    kind += "" if options.kernel else ", decisions only"
    return f"{options.routers}{'*' if options.subscribed else ''}{kind}"


def _row(cost: Cost) -> tuple[str, ...]:
    return (
        _what(cost.options),
        f"{cost.cpu_share * 100:.2f}",
        f"{cost.system_share * 100:.2f}",
        f"{cost.calls:.0f}",
        f"{cost.cpu_share / cost.options.routers * 1e6:.0f}",
        f"{cost.files_s * 1e6:.0f}",
        f"{cost.rss_mib:.0f} MiB",
        *(
            f"{cost.tick_ms(share, cpu=cpu):.1f} ms"
            for cpu, share in product((False, True), (0.5, 0.99))
        ),
    )


def _print_sections(console: Console, cost: Cost) -> None:
    """Print the time of each part of a period, the measuring included."""
    table = Table(box=None, header_style="bold", title=f"{cost.options.routers} routers, a period")
    table.add_column("part")
    table.add_column("us a router", justify="right")
    table.add_column("share", justify="right")
    whole = sum(cost.sections.values())
    for part, seconds in sorted(cost.sections.items(), key=lambda item: -item[1]):
        each = seconds / cost.options.routers * 1e6
        table.add_row(part, f"{each:.1f}", f"{seconds / whole:.0%}")
    console.print(table)


if __name__ == "__main__":
    main()
