"""Shared parts of the figures of the switch: options, turns of the ways, spreads, tables, JSON."""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar

from rich.table import Table

from benchmarks.zovn.switches import WAYS
from common.arguments import whole_number
from common.output import fitting_console
from zovn.core_files import program

CORE: Final = Path(__file__).parents[2] / "zovn" / "core"
SETUP: Final = "sh scripts/setup-zovn-bench.sh"
Case = TypeVar("Case", bound=Hashable)
Result = TypeVar("Result")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Spread:
    """Median of the repetitions, the least and the most."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    """Return the spread of some values."""
    found = list(values)
    return Spread(median(found), min(found), max(found))


def spread_of_known(values: Iterable[float | None]) -> Spread | None:
    """Return the spread of those that are known; None if none is."""
    found = [value for value in values if value is not None]
    return spread(found) if found else None


def shown(value: Spread | None, form: str, scale: float = 1.0) -> str:
    """Return a spread as text, such as 4.6 (4.5 to 4.7)."""
    if value is None:
        return "-"
    middle, low, high = (format(each * scale, form) for each in asdict(value).values())
    return middle if low == high else f"{middle} ({low} to {high})"


def numbers_of(text: str) -> list[int]:
    """Return whole numbers above 0, separated by commas."""
    words = text.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise argparse.ArgumentTypeError(f'"{text}" is no list of numbers: write e.g. 2,8')
    return [int(word) for word in words]


def parser(
    description: str | None, *, seconds: float, repetitions: int, ways: Sequence[str]
) -> argparse.ArgumentParser:
    """Return a parser of the options that these programs share."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    add = made.add_argument
    add("--seconds", type=float, default=seconds, help="for each measurement")
    add(
        "--repetitions",
        type=whole_number(1),
        default=repetitions,
        help="in which the ways take turns",
    )
    add("--ways", nargs="+", choices=ways, default=list(ways))
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--quick", action="store_true", help="seconds: no figures")
    return made


def build() -> None:
    """Build the switch and the generator.

    Raises:
        CoreError: one of them is missing then, since there is no libdpdk-dev.
    """
    subprocess.run(["make", "-s", "-C", str(CORE), "all", "bench"], check=True)  # noqa: S607  any make
    for name in ("zovn-switch", "zovn-generator"):
        program(name)


def parsed(made: argparse.ArgumentParser, **quick: Any) -> argparse.Namespace:
    """Return the options of the command line; --quick has other defaults."""
    if made.parse_known_args()[0].quick:
        made.set_defaults(**{"seconds": 0.2, "repetitions": 1} | quick)
    return made.parse_args()


def present(ways: Iterable[str]) -> list[str]:
    """Return the ways that can run here; say which cannot."""
    found = []
    for way in ways:
        if WAYS[way].missing():
            say(f"{way} is left out: it is not installed ({SETUP})")
        else:
            found.append(way)
    return found


def in_turns(
    cases: Iterable[Case],
    ways: Sequence[str],
    repetitions: int,
    measure: Callable[[Case, str], Result],
) -> Mapping[tuple[Case, str], list[Result]]:
    """Measure each case in all ways one after the other, as many times as asked for."""
    found: dict[tuple[Case, str], list[Result]] = defaultdict(list)
    listed = list(cases)
    for turn in range(repetitions):
        for case in listed:
            for way in ways:
                say(f"{turn + 1} of {repetitions}: {way}, {case}")
                found[case, way].append(_persistent(measure, case, way))
    return found


def _persistent(measure: Callable[[Case, str], Result], case: Case, way: str) -> Result:
    """Measure; once more if a program does not start, which must not cost hours of others."""
    try:
        return measure(case, way)
    except RuntimeError as error:
        say(f"{way}, {case}, again: {error}")
        return measure(case, way)


def show(
    options: argparse.Namespace, rows: Sequence[Row], columns: Mapping[str, Callable[[Row], str]]
) -> None:
    """Print rows as a table, or as JSON with the load of the machine."""
    if options.json:
        facts = {"load": os.getloadavg(), "rows": [asdict(row) for row in rows]}  # type: ignore[call-overload]
        print(json.dumps(facts, indent=2))
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*(column(row) for column in columns.values()))
    fitting_console().print(table)


def say(text: str) -> None:
    """Report progress."""
    print(text, file=sys.stderr, flush=True)
