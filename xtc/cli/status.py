"""Output of reports: tables for people, JSON for programs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table
from rich.text import Text

from common.output import fitting_console, natural_width, sparkline
from common.printable import printable
from common.setpoint import one_of
from common.units import format_bit_rate, format_cap, format_rate, short_bit_rate, short_rate
from xtc.wire import HostDrops, Report

STYLES = {
    "closed_loop": "green",
    "hold": "yellow",
    "degraded": "yellow",
    "released": "dim",
    "manual": "cyan",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A report's rates in the unit of its setpoint; packets/s without one."""

    report: Report

    @property
    def in_bits(self) -> bool:
        """Whether the unit is bits/s."""
        return self.report.setpoint_bps is not None

    def throughput(self) -> float | None:
        """Return the throughput."""
        return self.report.throughput_bps if self.in_bits else self.report.throughput_pps

    def setpoint(self) -> float | None:
        """Return the setpoint."""
        return self.report.setpoint_bps if self.in_bits else self.report.setpoint_pps

    def offered(self) -> float | None:
        """Return the offered load."""
        return self.report.offered_bps if self.in_bits else self.report.offered_pps


def print_status(reports: Iterable[Report], drops: HostDrops | None = None) -> None:
    """Print a table of routers, and the host's drops before any of them, if there are any."""
    console = fitting_console()
    console.print(status_view(reports, {}, drops, console.width))


def status_view(
    reports: Iterable[Report],
    histories: Mapping[str, list[float]],
    drops: HostDrops | None,
    width: int,
) -> Group:
    """Return the table of routers, with additional lines for what does not fit."""
    shown = tuple(reports)
    table, problems_fit = status_table(shown, histories, width)
    problems = (f"{report.vr}: {report.problem}" for report in shown if report.problem)
    lines = [] if problems_fit else [Text(printable(words)) for words in problems]
    floors = (f"{one.vr}: CPU floor: {one.floor_problem}" for one in shown if one.floor_problem)
    lines += [Text(printable(words), "yellow") for words in floors]
    if words := drops_words(drops):
        lines.append(Text(printable(words), "yellow"))
    return Group(table, *lines)


def drops_words(drops: HostDrops | None) -> str:
    """Describe what the host drops before any router; "" where that is nothing, or not known."""
    if drops is None:
        return ""
    parts = [f"{format_rate(rate)} at {name}" for name, rate in sorted(drops.cards.items()) if rate]
    if drops.backlog:
        parts.append(f"{format_rate(drops.backlog)} in the backlogs of its CPUs")
    return f"the host drops before any router: {', '.join(parts)}" if parts else ""


def status_table(
    reports: Sequence[Report], histories: Mapping[str, list[float]], width: int
) -> tuple[Table, bool]:
    """Return the widest table of routers that fits, and whether it includes their problems.

    A table that is too wide first moves problems to the lines below it, then shortens rates, then
    omits the columns that follow from the others.
    """
    columns = [column for column in _columns(histories) if _is_needed(column, reports)]
    for layout in _LAYOUTS:
        kept = [column for column in columns if column.name not in layout.without]
        table = _table(reports, kept, layout)
        if natural_width(table) <= width:
            break
    return table, layout.problems


@dataclass(frozen=True)
class _Layout:
    """How much detail a table shows."""

    problems: bool
    """Whether problems are shown instead of findings."""
    short: bool
    """Whether rates are shown without units."""
    without: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Column:
    name: str
    short: str
    """Its heading where rates are shortened."""
    cell: Callable[[Report, _Layout], str | Text]
    right: bool = True
    needed: Callable[[Report], bool] | None = None
    """Whether a router needs it; None means always."""


_RATES = (format_rate, short_rate)
_BIT_RATES = (format_bit_rate, short_bit_rate)
"""Functions that format rates in full, and shortened."""
_DROPPED = ("history", "burst", "error", "used", "epoch/seq", "limit", "offered")
_LAYOUTS = (
    _Layout(problems=True, short=False),
    _Layout(problems=False, short=False),
    _Layout(problems=False, short=True),
    *(
        _Layout(problems=False, short=True, without=frozenset(_DROPPED[:number]))
        for number in range(1, len(_DROPPED) + 1)
    ),
)


def _columns(histories: Mapping[str, list[float]]) -> list[_Column]:
    columns = [
        _Column("router", "router", lambda report, _: Text(printable(report.vr)), right=False),
        _held_column("throughput", "rate", Shown.throughput),
        _held_column("setpoint", "set", Shown.setpoint),
        _Column("burst", "burst", lambda report, _: _burst(report), needed=_has_own_burst),
        _Column("error", "error", lambda report, _: _error(report)),
        _held_column("offered", "offered", Shown.offered),
        _Column("cap", "cap", lambda report, _: _cap(report)),
        _Column("used", "used", lambda r, _: "-" if r.used is None else format_cap(r.used)),
        _Column("limit", "limit", _limit, needed=lambda r: r.limit_pps is not None),
        _Column("epoch/seq", "epoch/seq", lambda r, _: _order(r), needed=_is_ordered),
        _Column("mode", "mode", lambda r, _: Text(r.mode.value, STYLES[r.mode.value]), right=False),
        _Column("finding", "finding", _finding, right=False),
    ]
    if histories:
        columns.append(_history_column(histories))
    return columns


def _history_column(histories: Mapping[str, list[float]]) -> _Column:
    def cell(report: Report, _: _Layout) -> str:
        return sparkline(histories.get(report.vr, []))

    return _Column("history", "history", cell, right=False)


def _held_column(name: str, short: str, rate: Callable[["Shown"], float | None]) -> _Column:
    """Return a column of rates in the unit of each router's setpoint."""

    def cell(report: Report, layout: _Layout) -> str:
        shown = Shown(report)
        written = _BIT_RATES if shown.in_bits else _RATES
        return _written(rate(shown), written[layout.short])

    return _Column(name, short, cell)


def _burst(report: Report) -> str:
    if report.burst is None:
        return "-"
    if report.setpoint_bps is None:
        return short_rate(report.burst)
    return short_bit_rate(report.burst).removesuffix("/s")


def _has_own_burst(report: Report) -> bool:
    """Whether a router's burst differs from the default of its setpoint."""
    if report.burst is None or (report.setpoint_pps is None and report.setpoint_bps is None):
        return False
    default = one_of(report.setpoint_pps, report.setpoint_bps).allowance
    return not math.isclose(report.burst, default)


def _limit(report: Report, layout: _Layout) -> str:
    return _written(report.limit_pps, _RATES[layout.short])


def _written(rate: float | None, words: Callable[[float], str]) -> str:
    return "-" if rate is None else words(rate)


def _is_needed(column: _Column, reports: Sequence[Report]) -> bool:
    return column.needed is None or any(map(column.needed, reports))


def _table(reports: Sequence[Report], columns: Sequence[_Column], layout: _Layout) -> Table:
    """Return a table; names and problems are shown without rich's markup, and escaped."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        heading = column.short if layout.short else column.name
        table.add_column(heading, justify="right" if column.right else "left", no_wrap=True)
    for report in reports:
        table.add_row(*(column.cell(report, layout) for column in columns))
    return table


def _finding(report: Report, layout: _Layout) -> Text:
    return Text(printable((layout.problems and report.problem) or report.finding.value))


def _is_ordered(report: Report) -> bool:
    return bool(report.epoch or report.sequence)


def _order(report: Report) -> str:
    """Return epoch and sequence of the lease; "-" if it has none."""
    return f"{report.epoch or 0}/{report.sequence or 0}" if _is_ordered(report) else "-"


def _cap(report: Report) -> str:
    """Return the cap in force, and a cap that is only proposed."""
    cap = format_cap(report.cap) if report.cap_known else "?"
    return cap if report.proposed_cap is None else f"{cap} ({format_cap(report.proposed_cap)})"


def _error(report: Report) -> str:
    shown = Shown(report)
    setpoint, throughput = shown.setpoint(), shown.throughput()
    if setpoint is None or throughput is None:
        return "-"
    return f"{(throughput / setpoint - 1) * 100:+.1f}%"
