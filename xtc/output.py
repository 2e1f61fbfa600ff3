"""How reports look: tables for people, JSON for programs."""

import sys
from collections.abc import Iterable

import msgspec
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from xtc.units import format_cap, format_rate
from xtc.wire import HostDrops, Report

STYLES = {
    "closed_loop": "green",
    "hold": "yellow",
    "degraded": "yellow",
    "released": "dim",
    "manual": "cyan",
}


def print_json(value: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def print_status(reports: Iterable[Report], drops: HostDrops | None = None) -> None:
    """Print a table of routers, and what the host drops before any of them, if it does."""
    Console(highlight=False).print(status_view(reports, {}, drops))


def status_view(
    reports: Iterable[Report], histories: dict[str, list[float]], drops: HostDrops | None
) -> Group:
    """Return the table of routers, with a line below it while the host drops packets."""
    table, words = status_table(reports, histories), drops_words(drops)
    return Group(table, Text(words, "yellow")) if words else Group(table)


def drops_words(drops: HostDrops | None) -> str:
    """Say what the host drops before any router; "" where that is nothing, or not known."""
    if drops is None:
        return ""
    parts = [f"{format_rate(rate)} at {name}" for name, rate in sorted(drops.cards.items()) if rate]
    if drops.backlog:
        parts.append(f"{format_rate(drops.backlog)} in the backlogs of its CPUs")
    return f"the host drops before any router: {', '.join(parts)}" if parts else ""


def status_table(reports: Iterable[Report], histories: dict[str, list[float]]) -> Table:
    """Return a table of routers; with histories, a sparkline of each throughput.

    Names and problems are shown as they are: rich takes the `:ab:` of a MAC address for a picture.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("router", "throughput", "setpoint", "error", "offered", "cap", "used"):
        table.add_column(heading, justify="left" if heading == "router" else "right")
    table.add_column("mode")
    table.add_column("finding")
    if histories:
        table.add_column("history")
    for report in reports:
        row: list[str | Text] = [
            Text(report.vr),
            _rate(report.throughput_pps),
            _rate(report.setpoint_pps),
            _error(report),
            _rate(report.offered_pps),
            format_cap(report.cap) if report.cap_known else "?",
            "-" if report.used is None else format_cap(report.used),
            Text(report.mode.value, STYLES[report.mode.value]),
            Text(report.problem or report.finding.value),
        ]
        if histories:
            row.append(sparkline(histories.get(report.vr, [])))
        table.add_row(*row)
    return table


def _rate(rate: float | None) -> str:
    return "-" if rate is None else format_rate(rate)


def _error(report: Report) -> str:
    if report.setpoint_pps is None or report.throughput_pps is None:
        return "-"
    return f"{(report.throughput_pps / report.setpoint_pps - 1) * 100:+.1f}%"


def sparkline(values: list[float]) -> str:
    """Draw values from 0 to their maximum as a row of blocks."""
    blocks = "▁▂▃▄▅▆▇█"
    top = max(values, default=0.0)
    if top <= 0:
        return blocks[0] * len(values)
    return "".join(blocks[min(int(value / top * 8), 7)] for value in values)
