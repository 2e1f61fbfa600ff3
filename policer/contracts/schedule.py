"""When a contract holds: from a date, until a date, at hours of the week in a time zone; pure.

Hours are local time in their zone. An hour skipped when clocks go forward is missing from a window;
an hour repeated when they go back is open both times.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec

from policer.contracts.zones import is_known, zone_of
from policer.errors import Problem

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
"""In the order of `date.weekday`."""
MOST_HOURS = 16
"""Windows that one contract may have."""
MOST_READ = 64
"""Windows that are read at all: a refusal, which may be kept, names what is wrong in each."""
YEARS = range(2000, 2200)
"""A date outside these years is a typing error."""
DAY_MIN = 24 * 60
WEEK_MIN = 7 * DAY_MIN

TimeOfDay = Annotated[
    str, msgspec.Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$(?!\n)", description="HH:MM")
]
ClassName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)", description="class name")
]
Instant = Annotated[datetime, msgspec.Meta(tz=True, description="a date and time with its zone")]
Zone = Annotated[
    str, msgspec.Meta(max_length=64, description="time zone, such as Europe/Berlin or UTC")
]


class Hours(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"class_name": "class"}
):
    """A window of the week; one whose end is not after its start ends on the next day."""

    start: TimeOfDay
    end: TimeOfDay
    days: tuple[Day, ...] = DAYS
    """Days on which it starts."""
    class_name: ClassName | None = None
    """Class of the terms in this window; None is the contract's own terms."""

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each span in minutes since Monday; the end may be later."""
        start, end = _minutes(self.start), _minutes(self.end)
        length = (end - start) % DAY_MIN or DAY_MIN
        for day in self.days:
            opens = DAYS.index(day) * DAY_MIN + start
            yield opens, opens + length


Windows = Annotated[tuple[Hours, ...], msgspec.Meta(max_length=MOST_READ)]


class Week(NamedTuple):
    """Which window is open when, in a week that begins on Monday."""

    minutes: tuple[int, ...]
    """Minutes at which a window opens or closes; the first is 0."""
    windows: tuple[int | None, ...]
    """Number of the window that is open from then on; None is none."""


@lru_cache(maxsize=4096)
def week_of(hours: tuple[Hours, ...]) -> Week:
    """Return which of some windows is open when; the first of those that overlap."""
    painted: list[int | None] = [None] * WEEK_MIN
    edges = {0}
    for number in reversed(range(len(hours))):
        for first, last in hours[number].spans():
            painted[first:last] = [number] * (min(last, WEEK_MIN) - first)
            painted[: max(0, last - WEEK_MIN)] = [number] * max(0, last - WEEK_MIN)
            edges |= {first, last % WEEK_MIN}
    changes = [at for at in sorted(edges) if at == 0 or painted[at] != painted[at - 1]]
    return Week(tuple(changes), tuple(painted[at] for at in changes))


def window_at(hours: tuple[Hours, ...], zone: str, at: datetime) -> Hours | None:
    """Return the first window that is open at an instant; None if all are closed."""
    local, week = at.astimezone(zone_of(zone)), week_of(hours)
    minute = local.weekday() * DAY_MIN + local.hour * 60 + local.minute
    number = week.windows[bisect_right(week.minutes, minute) - 1]
    return None if number is None else hours[number]


def _minutes(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


def problems_of_schedule(
    valid_from: datetime | None, valid_until: datetime | None, hours: Sequence[Hours], zone: str
) -> Iterator[Problem]:
    """Yield the contradictions in a schedule, by field."""
    yield from _problems_of_dates(valid_from, valid_until)
    if not is_known(zone):
        yield Problem(
            "zone",
            f"this machine knows no time zone {zone!r}",
            "give one such as Europe/Berlin or UTC (all but UTC take the package tzdata)",
        )
    if len(hours) > MOST_HOURS:
        yield Problem("hours", f"{len(hours)} windows", f"give at most {MOST_HOURS}")
    for window in hours:
        if not window.days or len(set(window.days)) < len(window.days):
            yield Problem("hours", "days are missing, or given twice", "give each day once")


def _problems_of_dates(
    valid_from: datetime | None, valid_until: datetime | None
) -> Iterator[Problem]:
    for name, value in (("valid_from", valid_from), ("valid_until", valid_until)):
        if value is not None and value.year not in YEARS:
            yield Problem(
                name, f"the year {value.year}", f"give one from {YEARS[0]} to {YEARS[-1]}"
            )
            return
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        yield Problem(
            "valid_until", "it is not after valid_from", "give a later one, or leave one out"
        )
