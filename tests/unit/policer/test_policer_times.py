"""Instants as people write them: never a crash, never another instant than was meant."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policer.cli.shared.until import LONGEST, parse_until
from policer.errors import SettingsError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2h", NOW + timedelta(hours=2)),
        ("1d12h", NOW + timedelta(hours=36)),
        ("90min", NOW + timedelta(minutes=90)),
        ("30m15s", NOW + timedelta(minutes=30, seconds=15)),
        (" 1w ", NOW + timedelta(days=7)),
        ("2026-03-01T18:00:00Z", NOW + timedelta(hours=6)),
        ("2026-03-01T18:00+01:00", NOW + timedelta(hours=5)),
        ("2026-03-01 18:00:00-05:00", NOW + timedelta(hours=11)),
    ],
)
def test_what_is_meant_is_read(text: str, meant: datetime) -> None:
    assert parse_until(text, NOW) == meant
    assert parse_until(text, NOW).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "neither"),
        ("2", "neither"),
        ("2 h", "neither"),
        ("h2", "neither"),
        ("-2h", "neither"),
        ("1.5h", "neither"),
        ("tomorrow", "neither"),
        ("2026-02-30T00:00:00Z", "neither"),
        ("9999-12-31T23:59:59-12:00", "neither"),
        ("2026-03-01T18:00:00", "no time zone"),
        ("2026-03-01", "no time zone"),
        ("4000d", "more than ten years"),
        ("999999999w", "more than ten years"),
        ("600w600w", "more than ten years"),
    ],
)
def test_what_is_no_instant_is_refused_by_its_option(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as refused:
        parse_until(text, NOW)
    assert refused.value.where == "--until"
    assert refused.value.fix


@given(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=ZONES))  # noqa: DTZ001
def test_every_instant_with_a_zone_is_read_as_it_is(instant: datetime) -> None:
    assert parse_until(instant.isoformat(), NOW) == instant


@given(st.lists(st.tuples(st.integers(0, 10**9 - 1), st.sampled_from("smhdw")), min_size=1))
def test_a_time_is_the_sum_of_its_parts_or_too_long(parts: list[tuple[int, str]]) -> None:
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
    total = sum(number * seconds[unit] for number, unit in parts)
    text = "".join(f"{number}{unit}" for number, unit in parts)
    if total > LONGEST.total_seconds():
        with pytest.raises(SettingsError, match="ten years"):
            parse_until(text, NOW)
    else:
        assert parse_until(text, NOW) == NOW + timedelta(seconds=total)


@given(st.text(max_size=40) | st.from_regex(re.compile(r"[0-9TZ:+. -]{1,40}"), fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert parse_until(text, NOW).tzinfo is UTC
    except SettingsError as refused:
        assert refused.fix  # noqa: PT017  either is right
