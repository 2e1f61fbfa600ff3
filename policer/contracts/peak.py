"""The most that contracts promise together from now on, by their dates and hours; pure.

Between two dates at which contracts begin or clocks change, all weeks are equal except for
contracts that end. So only the first week after each of these dates counts.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from policer.contracts.contract import Contract
from policer.contracts.in_force import Book, Classes, in_force, is_timed, taken_pps
from policer.contracts.schedule import WEEK_MIN, week_of
from policer.contracts.zones import DAY_S, clock_changes, offset_s, years_of

WEEK_S = WEEK_MIN * 60.0
YEAR_S = 366.0 * DAY_S
"""A zone's clocks change in the same way every year."""
MONDAY_S = 3.0 * DAY_S
"""1970 began three days after a Monday."""
MOST_STEPS = 200_000
"""Limit of the examined steps of all contracts in all weeks. Beyond it, the largest step of each
contract is summed up, which is never less."""
MOST_ZONE_YEARS = 250
"""Limit of the years in which clock changes are looked for, of all time zones together; beyond it,
likewise. Each takes about a millisecond when it is first looked at."""


def peak_pps(contracts: Iterable[Contract], book: Book, most_steps: int = MOST_STEPS) -> float:
    """Return the most that contracts promise together, from now on, in packets/s.

    Args:
        contracts: of one host.
        book: classes that they may name, and the time from which they count.
        most_steps: limit of the examined steps; beyond it, the largest step of each contract is
            summed up.
    """
    classes, now = book.classes, book.now.timestamp()
    lasting, parts = 0.0, []
    for contract in contracts:
        if is_timed(contract):
            parts.append(_part(contract, classes))
        else:
            terms = in_force(contract, classes, book.now)
            lasting += 0.0 if terms is None else taken_pps(terms)
    coming = [part for part in parts if part.end > now and part.most > 0]
    return lasting + _peak(coming, now, most_steps)


class _Part(NamedTuple):
    """How much of a capacity one contract takes, and when."""

    begin: float
    """Seconds since 1970."""
    end: float
    zone: str
    seconds: tuple[float, ...]
    """Seconds of the week at which the amount changes; the first is 0."""
    taken: tuple[float, ...]
    """Amount from then on, in packets/s."""

    @property
    def most(self) -> float:
        """The largest amount."""
        return max(self.taken)


def _part(contract: Contract, classes: Classes) -> _Part:
    begin, end = contract.valid_from, contract.valid_until
    own = contract.class_name
    week = week_of(contract.hours)
    names = [None if n is None else contract.hours[n].class_name or own for n in week.windows]
    taken = [
        0.0 if number is None else _taken(contract, name, classes)
        for number, name in zip(week.windows, names, strict=True)
    ]
    always = not contract.hours
    return _Part(
        -inf if begin is None else begin.timestamp(),
        inf if end is None else end.timestamp(),
        "UTC" if always else contract.zone,
        tuple(60.0 * minute for minute in week.minutes),
        (_taken(contract, own, classes),) if always else tuple(taken),
    )


def _taken(contract: Contract, name: str | None, classes: Classes) -> float:
    """Return what a contract takes while its own terms, or those of a class, hold."""
    terms = contract if name is None else classes.get(name)
    return 0.0 if terms is None else taken_pps(terms)


def _peak(parts: Sequence[_Part], now: float, most_steps: int) -> float:
    steps = sum(len(part.seconds) for part in parts)
    starts = sorted({now, *(part.begin for part in parts if part.begin > now)})
    too_long = len(starts) * steps > most_steps or _zone_years(parts, starts) > MOST_ZONE_YEARS
    spans = [] if too_long else list(_alike(parts, starts))
    if not spans or len(spans) * steps > most_steps:
        return sum(part.most for part in parts)
    return max(_peak_between(parts, *span) for span in spans)


def _zone_years(parts: Iterable[_Part], starts: Sequence[float]) -> int:
    """Return in how many years of how many zones `_alike` looks for clock changes."""
    zones = {part.zone for part in parts} - {"UTC"}
    periods = pairwise([*starts, inf])
    years = {year for start, end in periods for year in years_of(start, _looked_at(start, end))}
    return len(zones) * len(years)


def _looked_at(start: float, following: float) -> float:
    """Return until when clock changes are looked for after a contract begins."""
    return min(following, start + YEAR_S)


def _alike(parts: Iterable[_Part], starts: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield the first week of each period in which no contract begins and no clock changes."""
    zones = {part.zone for part in parts}
    for start, following in pairwise([*starts, inf]):
        until = _looked_at(start, following)
        changes = {float(at) for zone in zones for at in clock_changes(zone, start, until)}
        for begin, end in pairwise([start, *sorted(changes), following]):
            yield begin, min(end, begin + WEEK_S)


def _peak_between(parts: Iterable[_Part], begin: float, end: float) -> float:
    """Return the largest simultaneous sum of promises in a period without clock changes."""
    level, changes = 0.0, dict[float, float]()
    offsets: dict[str, int] = {}
    for part in parts:
        if part.begin <= begin < part.end:
            if part.zone not in offsets:
                offsets[part.zone] = offset_s(part.zone, begin)
            level += _add_up(changes, part, begin, end, offsets)
    peak = level
    for at in sorted(changes):
        level += changes[at]
        peak = max(peak, level)
    return peak


def _add_up(
    changes: dict[float, float],
    part: _Part,
    begin: float,
    end: float,
    offsets: Mapping[str, int],
) -> float:
    """Add a contract's changes to each instant; return what it takes first."""
    ahead = offsets[part.zone] + MONDAY_S
    monday = (begin + ahead) // WEEK_S * WEEK_S - ahead
    number = bisect_right(part.seconds, begin - monday) - 1
    first = taken = part.taken[number]
    until = min(end, part.end)
    for at, after in _following(part, number, monday):
        if at >= until:
            break
        if after != taken:
            changes[at] = changes.get(at, 0.0) + after - taken
            taken = after
    if part.end < end:
        changes[part.end] = changes.get(part.end, 0.0) - taken
    return first


def _following(part: _Part, number: int, monday: float) -> Iterator[tuple[float, float]]:
    """Yield the changes of a contract's amount after a given step of a week."""
    steps = list(zip(part.seconds, part.taken, strict=True))
    for week, rest in ((monday, steps[number + 1 :]), (monday + WEEK_S, steps)):
        for seconds, taken in rest:
            yield week + seconds, taken
