"""Time zones: whether this machine has them, and when their clocks change."""

from datetime import UTC, datetime, tzinfo
from functools import cache, lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

DAY_S = 86_400


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """Return a time zone; UTC if this machine has none of that name (`is_known`).

    A contract is checked on entry. But that may have been on another machine, or before the zones
    were removed from this one.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC


def is_known(name: str) -> bool:
    """Whether this machine has a time zone."""
    return name in _known()


def offset_s(name: str, at: float) -> int:
    """Return how far a zone's clocks are ahead of UTC, in seconds.

    Args:
        name: of the zone.
        at: the instant, in seconds since 1970.
    """
    return _offset_s(zone_of(name), at)


def clock_changes(name: str, begin: float, end: float) -> list[int]:
    """Return when a zone's clocks change between two instants, the last one left out.

    Args:
        name: of the zone.
        begin: seconds since 1970.
        end: seconds since 1970.
    """
    if name == "UTC":
        return []
    years = years_of(begin, end)
    return [at for year in years for at in _changes_in(name, year) if begin < at < end]


def years_of(begin: float, end: float) -> range:
    """Return the years in which `clock_changes` looks between two instants."""
    return range(_year(begin), _year(end) + 1)


@cache
def _known() -> frozenset[str]:
    return frozenset({"UTC", *available_timezones()})


def _year(at: float) -> int:
    return datetime.fromtimestamp(at, UTC).year


def _offset_s(zone: tzinfo, at: float) -> int:
    offset = datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


@lru_cache(maxsize=2**15)  # a few MB; contracts of one host name 250 at most (`peak`)
def _changes_in(name: str, year: int) -> tuple[int, ...]:
    """Return when clocks change in a year; two changes within one day are missed."""
    zone = zone_of(name)
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    days = [first + number * DAY_S for number in range(367)]
    return tuple(_change_between(zone, *pair) for pair in pairwise(days) if _differ(zone, *pair))


def _differ(zone: tzinfo, early: int, late: int) -> bool:
    return _offset_s(zone, early) != _offset_s(zone, late)


def _change_between(zone: tzinfo, early: int, late: int) -> int:
    """Return the first second of the new offset, by bisection."""
    before = _offset_s(zone, early)
    while late - early > 1:
        middle = (early + late) // 2
        if _offset_s(zone, middle) == before:
            early = middle
        else:
            late = middle
    return late
