"""zovn switch top: what moves at each port, live."""

import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from zovn.cli.command import CONTROL, Control, Json
from zovn.cli.tables import peer, show, table_of
from zovn.switch.control import status
from zovn.switch.rates import PortRates, Rates, rates

_HEADINGS = ("port", "peer", "in/s", "out/s", "in Mb/s", "out Mb/s", "held", "held/s", "blocked")
_STATE = ("name", "attached", "stall", "fault")


def top(
    socket: Control = CONTROL,
    every: Annotated[float, typer.Option(min=0.2, max=60, help="Seconds between updates.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Exit after one update.")] = False,
    json: Json = False,
) -> None:
    """Watch the rates of all ports live; with --json, print one line per update."""
    frames = islice(_looks(socket, every), 1 if once else None)
    try:
        if json:
            _print_lines(frames)
        elif once:
            show(_table(next(frames)))
        else:
            _watch(frames)
    except KeyboardInterrupt:
        return


def _looks(socket: Path, every: float) -> Iterator[Rates]:
    """Yield the rates between successive reports, without end.

    Raises:
        SwitchAway: no switch answers (or no longer).
    """
    before, began = status(socket), time.monotonic()
    while True:
        time.sleep(every)
        after, ended = status(socket), time.monotonic()
        yield rates(before, after, ended - began)
        before, began = after, ended


def _print_lines(frames: Iterator[Rates]) -> None:
    for shown in frames:
        sys.stdout.write(msgspec.json.encode(_document(shown)).decode() + "\n")
        sys.stdout.flush()


def _document(shown: Rates) -> dict[str, Any]:
    """Return the rates with names of ports in the place of their reports."""
    return msgspec.structs.asdict(shown) | {"ports": [_row(row) for row in shown.ports]}


def _row(row: PortRates) -> dict[str, Any]:
    own: dict[str, Any] = {key: getattr(row.port, key) for key in _STATE}
    own |= {key: row.port.counters[key] for key in ("held", "parked", "waiting")}
    rated = msgspec.structs.asdict(row)
    del rated["port"]
    return own | rated


def _watch(frames: Iterator[Rates]) -> None:
    console = Console(highlight=False, emoji=False, markup=False)
    with Live(console=console, auto_refresh=False) as live:
        for shown in frames:
            live.update(_table(shown), refresh=True)


def _table(shown: Rates) -> Table:
    table = table_of((*_HEADINGS, "dropped/s"), 2)
    for row in shown.ports:
        table.add_row(row.port.name, peer(row.port), *_cells(row))
    return table


def _cells(row: PortRates) -> tuple[str, ...]:
    drops = ", ".join(f"{rate:,.0f} {reason}" for reason, rate in row.dropped_per_s.items())
    return (
        f"{row.in_per_s:,.0f}",
        f"{row.out_per_s:,.0f}",
        f"{row.in_bps / 1e6:,.1f}",
        f"{row.out_bps / 1e6:,.1f}",
        f"{row.port.counters['held']:,}",
        f"{row.held_per_s:+,.0f}",
        f"{row.blocked_share:.0%}",
        drops or "0",
    )
