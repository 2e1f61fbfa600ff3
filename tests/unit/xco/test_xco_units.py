"""Quantities of link coordination: what is read, what is refused, and that none is lost."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.errors import UnitError
from xco.units import (
    MAX_DURATION_NS,
    MAX_RATE_BPS,
    MAX_SIZE_BYTES,
    format_duration,
    format_rate,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("500Mbps", 500_000_000),
        ("10Gbps", 10_000_000_000),
        ("1.5 Gbit/s", 1_500_000_000),
        ("1000Mbit", 1_000_000_000),
        ("64kbps", 64_000),
        ("1000000", 1_000_000),
        ("10Tbps", MAX_RATE_BPS),
    ],
)
def test_rates_are_bits_per_second(text: str, bps: int) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize(
    ("text", "ns"),
    [("2ms", 2_000_000), ("50us", 50_000), ("1.5us", 1_500), ("1s", 10**9), ("0ms", 0)],
)
def test_durations_are_nanoseconds(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "size"),
    [("32KB", 32_000), ("32kB", 32_000), ("32KiB", 32_768), ("9000", 9_000), ("1.5MB", 1_500_000)],
)
def test_sizes_are_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_rate, "0Mbps"),
        (parse_rate, "-1Gbps"),
        (parse_rate, "11Tbps"),
        (parse_rate, "500MBps"),
        (parse_rate, "0.5bps"),
        (parse_rate, "1e9"),
        (parse_rate, "nan"),
        (parse_rate, ""),
        (parse_rate, "١٠Gbps"),  # noqa: RUF001  Arabic digits: a number to Python, not to us
        (parse_duration, "2"),
        (parse_duration, "-2ms"),
        (parse_duration, "0.1ns"),
        (parse_duration, "25h"),
        (parse_size, "32Kb"),
        (parse_size, "0.5"),
        (parse_size, "2048GiB"),
    ],
)
def test_what_is_no_such_quantity_is_refused_by_name(parse: Callable[..., int], text: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, field="capacity")
    assert caught.value.field == "capacity"
    assert repr(text) in str(caught.value)


@given(st.integers(1, MAX_RATE_BPS))
def test_every_rate_is_read_as_written(bps: int) -> None:
    assert parse_rate(format_rate(bps)) == bps


@given(st.integers(0, MAX_DURATION_NS))
def test_every_duration_is_read_as_written(ns: int) -> None:
    assert parse_duration(format_duration(ns)) == ns


@given(st.integers(0, MAX_SIZE_BYTES))
def test_every_size_is_read_as_written(size: int) -> None:
    assert parse_size(format_size(size)) == size


def test_quantities_are_shown_in_the_unit_that_they_fill() -> None:
    assert format_rate(1_500_000_000) == "1.5Gbps"
    assert format_rate(10_000_000_000) == "10Gbps"
    assert format_duration(2_000_000) == "2ms"
    assert format_size(32_000) == "32KB"
    assert format_size(0) == "0B"
