"""Windows of the week: over midnight, on days, when clocks change, and the first of several."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policer.contracts import schedule, zones
from policer.contracts.contract import Contract
from policer.contracts.schedule import (
    DAYS,
    MOST_HOURS,
    MOST_READ,
    WEEK_MIN,
    ClassName,
    Day,
    Hours,
    Instant,
    TimeOfDay,
    Zone,
    problems_of_schedule,
    week_of,
    window_at,
)
from policer.contracts.zones import clock_changes, offset_s, zone_of
from policer.errors import Problem

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 6, 1, tzinfo=UTC)
"""A Monday, 00:00."""

clocks = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
days = st.lists(st.sampled_from(DAYS), min_size=1, max_size=7, unique=True).map(tuple)
windows = st.builds(Hours, clocks, clocks, days)


def holds(window: Hours, local: datetime) -> bool:
    """Whether a window is open, as its words say: the plain way."""
    clock, today = f"{local:%H:%M}", DAYS[local.weekday()]
    yesterday = DAYS[local.weekday() - 1]
    if window.start < window.end:
        return today in window.days and window.start <= clock < window.end
    return (today in window.days and clock >= window.start) or (
        yesterday in window.days and clock < window.end
    )


def open_at(window: Hours, *instants: str, zone: str = "UTC") -> list[bool]:
    """Say at which instants a window is open."""
    at = [datetime.fromisoformat(f"{instant}+00:00") for instant in instants]
    return [window_at((window,), zone, one) is window for one in at]


@given(st.lists(windows, min_size=1, max_size=4).map(tuple), st.integers(0, WEEK_MIN - 1))
def test_the_first_window_that_is_open_holds(hours: tuple[Hours, ...], minute: int) -> None:
    at = MONDAY + timedelta(minutes=minute, seconds=59)
    expected = next((window for window in hours if holds(window, at)), None)
    assert window_at(hours, "UTC", at) is expected


@given(st.lists(windows, min_size=1, max_size=4).map(tuple))
def test_a_week_names_every_change_and_nothing_else(hours: tuple[Hours, ...]) -> None:
    week = week_of(hours)
    assert week.minutes[0] == 0
    assert list(week.minutes) == sorted(set(week.minutes))
    assert week.minutes[-1] < WEEK_MIN
    for before, after in pairwise(week.windows):
        assert before != after


def test_a_window_is_open_from_its_start_until_before_its_end() -> None:
    window = Hours("08:00", "18:00")
    edges = ("2026-06-01T07:59:59", "2026-06-01T08:00", "2026-06-01T17:59:59", "2026-06-01T18:00")
    assert open_at(window, *edges) == [False, True, True, False]


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_starts() -> None:
    friday: tuple[Day, ...] = ("fri",)
    window = Hours("22:00", "06:00", friday)
    nights = ("2026-06-05T05:59", "2026-06-05T22:00", "2026-06-06T05:59", "2026-06-06T06:00")
    assert open_at(window, *nights) == [False, True, True, False]
    assert open_at(window, "2026-06-06T22:00") == [False]


def test_a_window_of_sunday_goes_on_into_monday() -> None:
    window = Hours("23:00", "01:00", ("sun",))
    nights = ("2026-06-07T23:30", "2026-06-08T00:59", "2026-06-08T01:00", "2026-06-01T22:59")
    assert open_at(window, *nights) == [True, True, False, False]


def test_a_window_that_ends_when_it_starts_is_open_for_a_day() -> None:
    window = Hours("12:00", "12:00", ("mon",))
    day = ("2026-06-01T11:59", "2026-06-01T12:00", "2026-06-02T11:59", "2026-06-02T12:00")
    assert open_at(window, *day) == [False, True, True, False]


def test_hours_are_those_of_their_zone_in_summer_and_in_winter() -> None:
    window = Hours("08:00", "09:00")
    summer = ("2026-07-01T05:59", "2026-07-01T06:00", "2026-07-01T07:00")
    assert open_at(window, *summer, zone="Europe/Berlin") == [False, True, False]
    winter = ("2026-12-01T06:59", "2026-12-01T07:00", "2026-12-01T08:00")
    assert open_at(window, *winter, zone="Europe/Berlin") == [False, True, False]


def test_where_clocks_go_forward_a_window_within_the_hour_that_is_left_out_does_not_open() -> None:
    """On 29 March 2026, 02:00 is 03:00 in Berlin: 01:00 in UTC."""
    inside, over = Hours("02:15", "02:45"), Hours("02:30", "03:30")
    night = ("2026-03-29T00:59", "2026-03-29T01:00", "2026-03-29T01:29", "2026-03-29T01:30")
    assert open_at(inside, *night, zone="Europe/Berlin") == [False] * 4
    assert open_at(over, *night, zone="Europe/Berlin") == [False, True, True, False]


def test_where_clocks_go_back_a_window_is_open_in_both_hours() -> None:
    """On 25 October 2026, 03:00 is 02:00 in Berlin: 01:00 in UTC."""
    window = Hours("02:15", "02:45")
    night = ("2026-10-25T00:20", "2026-10-25T00:50", "2026-10-25T01:20", "2026-10-25T01:50")
    assert open_at(window, *night, zone="Europe/Berlin") == [True, False, True, False]


def test_the_days_are_those_of_the_zone() -> None:
    window = Hours("00:00", "00:00", ("mon",))
    evening = ("2026-05-31T21:59", "2026-05-31T22:00", "2026-06-01T21:59", "2026-06-01T22:00")
    assert open_at(window, *evening, zone="Europe/Berlin") == [False, True, True, False]


def test_clocks_change_when_they_do() -> None:
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    found = clock_changes("Europe/Berlin", begin.timestamp(), end.timestamp())
    march, october = datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)
    assert found == [march.timestamp(), october.timestamp()]
    assert clock_changes("Europe/Berlin", march.timestamp(), october.timestamp()) == []
    assert clock_changes("UTC", begin.timestamp(), end.timestamp()) == []
    assert clock_changes("Asia/Tokyo", begin.timestamp(), end.timestamp()) == []


@given(st.datetimes(datetime(2001, 1, 1), datetime(2180, 1, 1)))  # noqa: DTZ001  it gets its zone
def test_between_two_changes_of_its_clocks_a_zone_is_as_far_from_utc(at: datetime) -> None:
    begin = at.replace(tzinfo=UTC).timestamp()
    end = begin + 400 * 86_400
    cuts = [begin, *clock_changes("America/New_York", begin, end), end]
    for first, last in pairwise(cuts):
        some = {offset_s("America/New_York", first + n * (last - first) / 50) for n in range(50)}
        assert len(some) == 1


@pytest.mark.parametrize("name", ["Mars/Phobos", "America", "", "../etc/passwd", "/etc/passwd"])
def test_a_zone_that_this_machine_does_not_know_is_refused_and_read_as_utc(name: str) -> None:
    """Where a contract of it is in the database already, nothing breaks."""
    (problem,) = problems_of_schedule(None, None, (), name)
    assert problem.field == "zone"
    assert "Europe/Berlin" in problem.fix
    assert zone_of(name) is UTC
    window = Hours("08:00", "09:00")
    assert window_at((window,), name, MONDAY + timedelta(hours=8)) is window


def test_zones_that_are_not_installed_are_read_as_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> ZoneInfo:
        raise KeyError(name)

    zone_of.cache_clear()
    monkeypatch.setattr(zones, "ZoneInfo", missing)
    try:
        assert zone_of("Europe/Berlin") is UTC
    finally:
        zone_of.cache_clear()
    monkeypatch.undo()
    assert zone_of("Europe/Berlin") == BERLIN


def fields(found: list[Problem]) -> list[str]:
    return [problem.field for problem in found]


def test_dates_are_in_order_and_of_these_centuries() -> None:
    later = MONDAY + timedelta(days=1)
    assert list(problems_of_schedule(MONDAY, later, (), "UTC")) == []
    assert fields(list(problems_of_schedule(MONDAY, MONDAY, (), "UTC"))) == ["valid_until"]
    assert fields(list(problems_of_schedule(later, MONDAY, (), "UTC"))) == ["valid_until"]
    early, late = MONDAY.replace(year=1999), MONDAY.replace(year=2200)
    assert fields(list(problems_of_schedule(early, None, (), "UTC"))) == ["valid_from"]
    (problem,) = problems_of_schedule(None, late, (), "UTC")
    assert (problem.field, problem.fix) == ("valid_until", "give one from 2000 to 2199")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (TimeOfDay, ("00:00", "23:59", "09:30"), ("24:00", "9:30", "09:60", "09:30\n", "")),
        (ClassName, ("a", "Night-1.b_c", "a" * 64), ("", "-a", "a b", "a" * 65, "a\n")),
        (Zone, ("UTC", "a" * 64), ("a" * 65,)),
        (Instant, ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00+05:30"), ("2026-03-01T12:00:00",)),
    ],
    ids=["time", "class", "zone", "instant"],
)
def test_what_is_read_is_what_it_should_be(
    kind: Any, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    for text in good:
        msgspec.convert(text, kind)
    for text in bad:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(text, kind)
    assert "description" in msgspec.json.schema(kind)


def test_windows_are_few_and_name_each_day_once() -> None:
    assert MOST_HOURS == 16
    window = Hours("08:00", "09:00")
    assert list(problems_of_schedule(None, None, (window,) * MOST_HOURS, "UTC")) == []
    for odd in ((window,) * (MOST_HOURS + 1), (Hours("08:00", "09:00", ()),)):
        assert fields(list(problems_of_schedule(None, None, odd, "UTC"))) == ["hours"]
    twice = Hours("08:00", "09:00", ("mon", "mon"))
    assert fields(list(problems_of_schedule(None, None, (twice,), "UTC"))) == ["hours"]


def test_a_refusal_is_not_made_of_thousands_of_windows() -> None:
    window = {"start": "08:00", "end": "09:00", "class": "night"}
    assert len(msgspec.convert({"hours": [window] * MOST_READ}, Contract).hours) == MOST_READ
    with pytest.raises(msgspec.ValidationError, match="length"):
        msgspec.convert({"hours": [window] * (MOST_READ + 1)}, Contract)


def test_what_is_no_window_is_still_no_reason_to_stumble() -> None:
    """A row that somebody wrote into the database by hand is read without these checks."""
    assert window_at((Hours("08:00", "09:00", ()),), "UTC", MONDAY) is None
    many = tuple(Hours("00:00", "00:01") for _ in range(2000))
    assert window_at(many, "UTC", MONDAY) is many[0]
    assert schedule.WEEK_MIN == 10_080
