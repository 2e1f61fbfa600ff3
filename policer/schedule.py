"""When a contract holds: from a date, until a date, at hours of the week in a time zone; pure."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from typing import Annotated, Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from policer.errors import Problem

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
"""In the order of `date.weekday`."""
MOST_HOURS = 16
"""Windows that one contract may have."""
YEARS = range(2000, 2200)
"""A date outside these is a slip of the pen."""
_DAY = timedelta(days=1)

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
    """On which it starts."""
    class_name: ClassName | None = None
    """The class whose terms hold in this window; None is the contract's own terms."""

    def holds(self, local: datetime) -> bool:
        """Whether the window is open, by a clock on the wall of its zone."""
        clock, day = local.strftime("%H:%M"), local.weekday()
        if self.start < self.end:
            return DAYS[day] in self.days and self.start <= clock < self.end
        began_today = DAYS[day] in self.days and clock >= self.start
        return began_today or (DAYS[day - 1] in self.days and clock < self.end)

    def edges(self, day: date, zone: tzinfo) -> Iterator[datetime]:
        """Yield when the window opens and closes, where it opens on a day."""
        if DAYS[day.weekday()] in self.days:
            last = day if self.start < self.end else day + _DAY
            for on, clock in ((day, self.start), (last, self.end)):
                local = datetime.combine(on, time.fromisoformat(clock), zone)
                yield local.astimezone(UTC)


def window_at(hours: Sequence[Hours], zone: str, at: datetime) -> Hours | None:
    """Return the first window that is open at an instant; None where none is."""
    local = at.astimezone(zone_of(zone))
    return next((window for window in hours if window.holds(local)), None)


def edges(hours: Sequence[Hours], zone: str, start: datetime, days: int) -> Iterator[datetime]:
    """Yield the instants in so many days from a start at which another window may hold."""
    there = zone_of(zone)
    first = start.astimezone(there).date()
    for number in range(-1, days + 1):
        for window in hours:
            yield from window.edges(first + number * _DAY, there)


def zone_of(name: str) -> tzinfo:
    """Return a time zone; raises KeyError where this machine knows none of that name."""
    return UTC if name == "UTC" else ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    return frozenset({"UTC", *available_timezones()})


def problems_of_schedule(
    valid_from: datetime | None, valid_until: datetime | None, hours: Sequence[Hours], zone: str
) -> Iterator[Problem]:
    """Say what in a schedule contradicts itself, by field."""
    yield from _problems_of_dates(valid_from, valid_until)
    if zone not in _zones():
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
            yield Problem(name, f"the year {value.year}", f"give one from {YEARS[0]} on")
            return
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        yield Problem(
            "valid_until", "it is not after valid_from", "give a later one, or leave one out"
        )
