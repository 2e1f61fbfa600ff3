"""How contracts were kept in a month: the lines of an SLA report; pure."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.in_force import Classes
from policer.errors import Invalid, Problem
from policer.history.retention import month_begin
from policer.store import Change, ContractDays

MONTH: Final = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for the beginning of a formula."""


class Month(NamedTuple):
    """A month of UTC."""

    name: str
    first: date
    following: date
    """The first day of the month after it."""

    @property
    def begin(self) -> datetime:
        """When it begins."""
        return _midnight(self.first)

    @property
    def end(self) -> datetime:
        """When the next one begins."""
        return _midnight(self.following)


class Line(msgspec.Struct, frozen=True):
    """One contract in one month, wherever its router was."""

    host: str | None
    """None where it follows its router from host to host."""
    vr: str
    """Its router: the name on its host; of one that is followed, its UUID or fleet-wide name."""
    guarantee_pps: float
    """As it was promised last in the month, packets/s; one in bits/s in packets of the size sold,
    that of a class as it is now, and with hours the largest of them."""
    in_force_s: float
    """Seconds in which there was a contract, within its dates."""
    data_s: float
    """Seconds in which the router was seen."""
    no_data_s: float
    """Seconds of the contract in which it was not, those outside its hours included."""
    promised_packets: float
    """What the guarantee came to while the router was seen."""
    wanted_packets: float
    """What was sent to it, up to the guarantee in force at each moment."""
    delivered_packets: float
    """What it forwarded, also beyond the guarantee."""
    missing_packets: float
    """What was wanted and not delivered, beyond the burst."""
    breach_s: float
    """Seconds in which anything was missing."""
    punishments: int
    """How often it was punished."""
    punished_s: float
    """Seconds in which it was."""
    hosts: tuple[str, ...] = ()
    """Where the router was seen, by name."""


def month_of(text: str, oldest: date, now: datetime) -> Month:
    """Read a month such as 2026-11.

    Raises:
        Invalid: it is none, it is to come, or its days are no longer kept.
    """
    match = MONTH.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise _no_month(text, "no month", f"write {now:%Y-%m}")
    number = 12 * int(match[1]) + int(match[2]) - 1
    month = Month(text, month_begin(number), month_begin(min(number + 1, _LAST)))
    if month.begin > now:
        raise _no_month(text, "a month to come", f"give {now:%Y-%m} or an earlier one")
    if month.first < oldest:
        fix = f"give {oldest:%Y-%m} or a later one; history.report_months says how many are kept"
        raise _no_month(text, "a month that is no longer kept", fix)
    return month


def promised_in(days: ContractDays) -> Iterator[Contract]:
    """Yield every version of a contract."""
    for change in days.changes:
        if change.contract is not None:
            yield _contract(change.contract)


def line_of(days: ContractDays, month: Month, until: datetime, classes: Classes) -> Line | None:
    """Return a contract's line; None where it was not in force in that month.

    Args:
        days: how it was kept, and all that was promised.
        month: which one.
        until: what is later is not counted; no later than the month's end.
        classes: terms of the classes that its versions name.
    """
    kept, held = days.kept, list(_in_force(days.changes, until))
    in_force = sum(
        max(0.0, (one.end - max(one.begin, month.begin)).total_seconds()) for one in held
    )
    if not in_force and not kept.data_s:
        return None
    return Line(
        host=days.host or None,
        vr=days.vr,
        guarantee_pps=_guarantee(held[-1].contract, classes) if held else 0.0,
        in_force_s=in_force,
        data_s=kept.data_s,
        no_data_s=max(0.0, in_force - kept.data_s),
        promised_packets=kept.promised,
        wanted_packets=kept.wanted,
        delivered_packets=kept.delivered,
        missing_packets=kept.missing,
        breach_s=kept.breach_s,
        punishments=kept.punishments,
        punished_s=kept.punished_s,
        hosts=days.hosts,
    )


def csv_of(month: Month, lines: Iterable[Line], *, headings: bool) -> str:
    """Return lines as CSV (RFC 4180); no cell is a formula to a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text)
    if headings:
        writer.writerow(("month", *Line.__struct_fields__))
    for line in lines:
        writer.writerow((month.name, *map(safe_cell, msgspec.structs.astuple(line))))
    return text.getvalue()


def safe_cell(value: Any) -> str:
    """Return what a cell shows; text that a spreadsheet would compute is marked as text."""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if value is None:
        return ""
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


_LAST: Final = 12 * 9999 + 11


class _Held(NamedTuple):
    """A version of a contract, and when it was in force."""

    begin: datetime
    end: datetime
    contract: Contract


def _in_force(changes: list[Change], until: datetime) -> Iterator[_Held]:
    """Yield the versions that were in force before an instant, within their dates."""
    ends = [change.at for change in changes[1:]] + [until]
    for change, over in zip(changes, ends, strict=False):
        if change.contract is None:
            continue
        contract = _contract(change.contract)
        begin = max(change.at, contract.valid_from or change.at)
        end = min(over, until, contract.valid_until or over)
        if begin < end:
            yield _Held(begin, end, contract)


def _guarantee(contract: Contract, classes: Classes) -> float:
    """Return the most that a contract promises at any hour."""
    own = contract.class_name
    names = {window.class_name or own for window in contract.hours} or {own}
    terms = (contract if name is None else classes.get(name) for name in names)
    return max((one.reserve_pps for one in terms if one is not None), default=0.0)


def _contract(text: str) -> Contract:
    return msgspec.json.decode(text, type=Contract)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _no_month(text: str, problem: str, fix: str) -> Invalid:
    return Invalid([Problem("month", f"{text!r} is {problem}", fix)])
