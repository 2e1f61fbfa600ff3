"""xtc top: shows the routers live."""

import sys
from collections.abc import Iterator
from itertools import islice

import msgspec
from rich.console import Console
from rich.live import Live

from xtc.cli.status import Shown, status_view
from xtc.wire import Telemetry

HISTORY = 30
"""Samples in the sparkline."""


def watch(ticks_of: Iterator[Telemetry], *, as_json: bool, ticks: int) -> None:
    """Show every tick until interrupted, or until a number of ticks have been shown."""
    stream = islice(ticks_of, ticks or None)
    try:
        if as_json:
            _lines(stream)
        else:
            _live(stream)
    except KeyboardInterrupt:
        return


def _lines(stream: Iterator[Telemetry]) -> None:
    for telemetry in stream:
        sys.stdout.write(msgspec.json.encode(telemetry).decode() + "\n")
        sys.stdout.flush()


def _live(stream: Iterator[Telemetry]) -> None:
    histories: dict[str, list[float]] = {}
    in_bits: dict[str, bool] = {}
    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        for telemetry in stream:
            for report in telemetry.routers:
                shown = Shown(report)
                history = histories.setdefault(report.vr, [])
                if in_bits.get(report.vr) is not shown.in_bits:
                    history.clear()
                in_bits[report.vr] = shown.in_bits
                history.append(shown.throughput() or 0.0)
                del history[:-HISTORY]
            view = status_view(telemetry.routers, histories, telemetry.drops, console.width)
            live.update(view, refresh=True)
