"""Shared parts of the benchmarks of XCo: options, the four ways, windows, tables, JSON."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks.xco.rig import LAB, WAYS, Settings, Way, XcoRig, rig
from lab.fabric.fabric import Fabric
from lab.fabric.plan import parse_bitrate
from lab.system import requirements
from xco.core_files import program
from xco.errors import CoreError

BUFFER_BYTES: Final = 32_000
"""Of the shallow port."""
SETTLING_S: Final = 0.7
"""Time for TCP and new queues to settle before a window opens."""
PIPED_WIDTH: Final = 140
Row = TypeVar("Row")


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    seconds: float
    bottleneck_bps: int
    ways: tuple[Way, ...]
    settings: Settings
    short: bool
    json: bool


@dataclass(frozen=True)
class Seen:
    """Measurements of a window."""

    wire_bps: float
    """On the receivers' interfaces, with Ethernet headers."""
    drops: int
    """At the shallow ports."""
    timeouts: int
    """Of TCP, at the senders."""
    cpu_idle: float
    """The idle share of all CPUs: near 0, the CPU and not the link was the limit."""


class Window:
    """Counters of fabric and machine since this was made."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._before = self._counts()

    def close(self) -> Seen:
        """Return the counts."""
        at, wire, drops, timeouts, idle, busy = map(
            float.__sub__, map(float, self._counts()), map(float, self._before)
        )
        return Seen(wire * 8 / at, int(drops), int(timeouts), idle / max(1.0, idle + busy))

    def _counts(self) -> tuple[float, int, int, int, int, int]:
        fabric, ticks = self._fabric, cpu_ticks()
        now = time.monotonic()
        return now, fabric.wire_bytes(), fabric.drops(), fabric.timeouts(), *ticks


def cpu_ticks() -> tuple[int, int]:
    """Return the ticks in which the machine's CPUs were idle, and those in which they were not."""
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    ticks = [int(word) for word in first.split()[1:9]]
    idle = ticks[3] + ticks[4]
    return idle, sum(ticks) - idle


def options(
    description: str | None,
    seconds: float,
    bottleneck: str,
    arguments: Sequence[str] | None = None,
    slice_: str = LAB.controller["slice"],
) -> Options:
    """Read the command line; end the program if the machine cannot hold a fabric."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--short", action="store_true", help="fewer points, shorter windows")
    parser.add_argument("--seconds", type=float, default=seconds, help="of each measurement")
    parser.add_argument("--bottleneck", default=bottleneck, help="capacity of the shared link")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--slice", default=slice_, help="of 1 to 10 ms")
    parser.add_argument("--controller", action=_Pairs, help="KEY=VALUE of the controller's table")
    parser.add_argument("--coordinator", action=_Pairs, help="KEY=VALUE of the coordinators' table")
    chosen = parser.parse_args(arguments)
    require(parser)
    controller = {**LAB.controller, "slice": chosen.slice, **(chosen.controller or {})}
    return Options(
        seconds=min(chosen.seconds, 1.0) if chosen.short else chosen.seconds,
        bottleneck_bps=parse_bitrate("bottleneck", chosen.bottleneck),
        ways=tuple(chosen.ways),
        settings=Settings(controller, {**LAB.coordinator, **(chosen.coordinator or {})}),
        short=chosen.short,
        json=chosen.json,
    )


class _Pairs(argparse.Action):
    """Collect KEY=VALUE into a dictionary; values are parsed as JSON if possible."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Take one."""
        key, equals, value = str(values).partition("=")
        if not equals:
            parser.error(f"{option_string} {values}: write KEY=VALUE")
        try:
            read = json.loads(value)
        except json.JSONDecodeError:
            read = value
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), key: read})


def require(parser: argparse.ArgumentParser) -> None:
    """End the program if the machine cannot hold a fabric under XCo."""
    missing = requirements.missing()
    for name in ("xco-controller", "xco-coordinator"):
        try:
            program(name)
        except CoreError as error:
            missing.append(str(error))
    if missing:
        parser.exit(1, "\n".join(missing) + "\n")


def side_by_side(
    name: str,
    chosen: Options,
    build: Callable[[Fabric], object],
    measure: Callable[[XcoRig, Way], Iterable[Row]],
) -> Iterator[Row]:
    """Yield the measurements on one fabric in each of the ways, one after the other."""
    with Fabric(name) as fabric:
        build(fabric)
        with rig(fabric, chosen.settings) as xco:
            for way in chosen.ways:
                yield from measure(xco.go(way), way)


def show(
    chosen: Options,
    rows: Sequence[Any],
    columns: Mapping[str, Callable[[Any], str]],
    **facts: Any,
) -> None:
    """Print rows as a table with the facts below it, or all of it as JSON."""
    if chosen.json:
        settings = {
            "controller": dict(chosen.settings.controller),
            "coordinator": dict(chosen.settings.coordinator),
        }
        about = {"cpus": os.cpu_count(), "bottleneck_bps": chosen.bottleneck_bps, **settings}
        text = json.dumps({**about, **facts, "rows": [asdict(row) for row in rows]}, default=str)
        sys.stdout.write(text + "\n")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns:
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for row in rows:
        table.add_row(*(column(row) for column in columns.values()))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
    console.print(table)
    for fact, value in facts.items():
        console.print(f"{fact.replace('_', ' ')}: {value}")


def percent(share: float | None) -> str:
    """Return a share as text; None is a dash."""
    return "-" if share is None else f"{share * 100:.1f}%"


def seen_columns() -> dict[str, Callable[[Any], str]]:
    """Return the columns of a window's measurements, of rows that have them as `seen`."""
    return {
        "wire, Mb/s": lambda row: f"{row.seen.wire_bps / 1e6:.1f}",
        "drops": lambda row: str(row.seen.drops),
        "timeouts": lambda row: str(row.seen.timeouts),
        "CPU idle": lambda row: percent(row.seen.cpu_idle),
    }
