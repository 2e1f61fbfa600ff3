"""SDN-GCC in the lab, on real packets: a tagged TCP flow beside others, in eight ways.

The paper's figures 1, 4 and 5 scaled to a port of 100 Mb/s with 100 packets of buffer, which marks
at a fifth of it. `--foreign` adds a sender outside xco, `--mice` short flows (figure 8), both in
the second phase and from hosts of their own. `--delay` makes reports and directives late (figure
6), by half the delay each; it does not apply to what hosts send each other. Ways take turns within
a repetition; medians, and the least and most. A run takes three phases and a second or two; all of
it, an hour.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from rich.console import Console

from benchmarks.xco.gcc_summary import Case, Row, summaries, table
from benchmarks.xco.gcc_ways import DEFAULT, WAYS, LabWay, available, enter
from benchmarks.xco.phases import Load, run
from benchmarks.xco.phases_judged import Figures, judge
from benchmarks.xco.rig import XcoRig, rig
from benchmarks.xco.runs import require
from common.arguments import whole_number
from lab.fabric.fabric import Fabric

PORT_BPS: Final = 100_000_000
BUFFER_BYTES: Final = 151_400
"""100 full frames."""
PIPED_WIDTH: Final = 220
"""Characters of a table with short flows, each value with its least and most."""
QUICK: Final[dict[str, Any]] = {"senders": [3], "others": ["udp"], "repetitions": 1, "phase": 1.0}


def measure(case: Case, ways: Sequence[LabWay], chosen: argparse.Namespace) -> Iterator[Row]:
    """Yield the runs of a case, on one fabric."""
    senders = case.beside + 1
    extra = [bool(case.foreign), case.mice]
    with Fabric("xcogcclab") as fabric:
        fabric.incast(senders + sum(extra), PORT_BPS, BUFFER_BYTES)
        spare = iter(fabric.senders[senders:])
        foreign, mice = (next(spare) if one else None for one in extra)
        rate = round(case.foreign * PORT_BPS)
        if case.delay_ms > 0:
            fabric.delay(case.delay_ms / 2e3)
        with rig(fabric, foreign=[foreign] if foreign else []) as xco:
            for repetition in range(chosen.repetitions):
                for way in ways if case.delay_ms == 0 else controlled(ways):
                    load = Load(senders, case.others, way.congestion, foreign, rate, mice)
                    load = replace(load, sequences=chosen.sequences)
                    yield Row(case, way.name, repetition, _one(xco, way, load, chosen.phase, case))


def controlled(ways: Sequence[LabWay]) -> list[LabWay]:
    """Return the ways with a controller: a delay of feedback changes no other."""
    return [way for way in ways if way.strategy != "uncoordinated"]


def _one(xco: XcoRig, way: LabWay, load: Load, phase_s: float, case: Case) -> Figures:
    enter(xco, way, load.senders)
    return judge(run(xco.fabric, load, phase_s), PORT_BPS, case.foreign)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""

    def names(known: Sequence[str]) -> Any:
        def split(given: str) -> list[str]:
            unknown = {*given.split(",")} - {*known}
            if unknown:
                raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not of {', '.join(known)}")
            return given.split(",")

        return split

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--senders",
        type=lambda given: [whole_number(1)(word) for word in given.split(",")],
        default=[3, 7, 15],
        help="numbers of elephants beside the tagged one (3,7,15)",
    )
    parser.add_argument("--others", type=names(("udp", "tcp")), default=["udp", "tcp"])
    parser.add_argument("--ways", type=names(tuple(WAYS)), default=list(DEFAULT))
    parser.add_argument("--repetitions", type=whole_number(1), default=5)
    parser.add_argument("--phase", type=float, default=3.0, help="seconds of each phase (3)")
    parser.add_argument(
        "--foreign", type=float, default=0.0, help="share of the port from a sender outside xco"
    )
    parser.add_argument(
        "--delay",
        type=lambda given: [float(word) for word in given.split(",")],
        default=[0.0],
        help="delays of feedback in ms, such as 1,5,10,50 (0)",
    )
    parser.add_argument("--mice", action="store_true", help="short flows of 11.5 KB, too")
    parser.add_argument(
        "--sequences", type=whole_number(1), default=6, help="of short flows at one time (6)"
    )
    parser.add_argument("--quick", action="store_true", help="one short run of each way")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    if not 0 <= chosen.foreign < 1:
        parser.error("--foreign: a share from 0 to below 1")
    if not all(0 <= delay_ms <= 2000 for delay_ms in chosen.delay):
        parser.error("--delay: from 0 to 2000 ms")
    for key, value in QUICK.items() if chosen.quick else ():
        setattr(chosen, key, value)
    require(parser)
    return chosen


def cases(chosen: argparse.Namespace) -> list[Case]:
    """Return the cases that the command line asks for."""
    return [
        Case(beside, others, chosen.foreign, chosen.mice, delay_ms)
        for delay_ms in chosen.delay
        for beside in chosen.senders
        for others in chosen.others
    ]


def show(chosen: argparse.Namespace, skipped: dict[str, str], rows: Sequence[Row]) -> None:
    """Print a table of the summaries, or rows and summaries as JSON."""
    found = summaries(rows)
    if not chosen.json:
        width = None if sys.stdout.isatty() else PIPED_WIDTH
        Console(highlight=False, width=width).print(table(found))
        return
    about: dict[str, Any] = {"cpus": os.cpu_count(), "port_bps": PORT_BPS}
    about |= {"buffer_bytes": BUFFER_BYTES, "phase_s": chosen.phase, "skipped": skipped}
    about["rows"] = [asdict(row) for row in rows]
    about["summaries"] = [asdict(one) for one in found]
    sys.stdout.write(json.dumps(about, indent=1) + "\n")


def main() -> None:
    """Measure and print."""
    chosen = options()
    progress = Console(stderr=True, highlight=False)
    ways, skipped = available(chosen.ways)
    for name, reason in skipped.items():
        progress.print(f"without {name}: {reason}")
    rows = list[Row]()
    for case in cases(chosen):
        for row in measure(case, ways, chosen):
            rows.append(row)
            words = f"{case.words}, repetition {row.repetition + 1}, {row.way}"
            progress.print(f"{words}: {row.figures.of_ideal:.3f} of the ideal")
    show(chosen, skipped, rows)


if __name__ == "__main__":
    main()
