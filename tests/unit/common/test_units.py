"""Quantities as operators write and read them."""

import math

import pytest

from common.errors import UnitError
from common.units import (
    check_bit_rate,
    check_rate,
    format_bit_rate,
    format_cap,
    format_rate,
    parse_bit_rate,
    parse_cap,
    parse_duration,
    parse_fraction,
    parse_rate,
    short_bit_rate,
    short_rate,
)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("20kpps", 20e3),
        ("20 kp/s", 20e3),
        ("20k", 20e3),
        ("1.5M", 1.5e6),
        (" 1.5Mpps ", 1.5e6),
        ("0.25 Mp/s", 250e3),
        ("20000", 20e3),
        ("2e4", 2e4),
        ("2e+4 p/s", 2e4),
        ("5e-1kpps", 500.0),
        ("7 pps", 7.0),
        ("1000Mpps", 1e9),
    ],
)
def test_a_rate_is_read(text: str, rate: float) -> None:
    assert parse_rate(text) == pytest.approx(rate, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        *("", "kpps", "0", "0kpps", "-1", "nan", "inf", "1e30", "1e-400", "1001Mpps", "9" * 400),
        *(
            "1.2.3",
            ".",
            "20 Kpps",
            "20K",
            "20m",
            "k",
            "20 kb/s",
            "20kpps!",
            "20\u0660",
            "0x10",
            "1_000",
            "2 kpps 3",
        ),
    ],
)
def test_what_is_no_rate_is_refused_and_the_field_named(text: str) -> None:
    with pytest.raises(UnitError, match=r"^--setpoint: ") as caught:
        parse_rate(text, field="--setpoint")
    assert caught.value.field == "--setpoint"


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf, 1.0000001e9])
def test_check_rate_refuses(value: float) -> None:
    with pytest.raises(UnitError):
        check_rate(value)


@pytest.mark.parametrize("value", [5e-324, 1.0, 1e9])
def test_check_rate_returns_what_it_was_given(value: float) -> None:
    assert check_rate(value) == value


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0.0, "0 p/s"),
        (999.0, "999 p/s"),
        (999.9, "1000 p/s"),
        (1e3, "1 kp/s"),
        (20_000.0, "20 kp/s"),
        (12_345.0, "12.3 kp/s"),
        (999_999.0, "1000 kp/s"),
        (1e6, "1 Mp/s"),
        (1e9, "1000 Mp/s"),
    ],
)
def test_a_rate_is_shown_without_an_exponent(rate: float, shown: str) -> None:
    assert format_rate(rate) == shown


@pytest.mark.parametrize(
    ("text", "cap"),
    [("35%", 0.35), ("0.35", 0.35), (" 35 % ", 0.35), ("250%", 2.5), ("1e-1%", 1e-3)],
)
def test_a_cap_is_read(text: str, cap: float) -> None:
    assert parse_cap(text) == pytest.approx(cap, rel=1e-15)


@pytest.mark.parametrize("text", ["0", "0%", "-1%", "", "%", "35%%", "nan", "inf%", "1e400", "x"])
def test_what_is_no_cap_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match=r"^floor: "):
        parse_cap(text, field="floor")


@pytest.mark.parametrize(
    ("cap", "shown"),
    [(None, "uncapped"), (0.35, "35%"), (0.0624, "6.24%"), (1.0, "100%"), (12.0, "1200%")],
)
def test_a_cap_is_shown_in_percent_of_one_cpu(cap: float | None, shown: str) -> None:
    assert format_cap(cap) == shown


def test_a_fraction_may_be_zero() -> None:
    assert parse_fraction("0%") == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60.0), ("60", 60.0), ("100ms", 0.1), ("2min", 120.0), ("1.5 h", 5400.0), ("0", 0.0)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 d", "1e3s", "1m", "1.2.3s", "nan", "9" * 400])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UnitError, match=r"^ttl: "):
        parse_duration(text, field="ttl")


def test_the_error_tells_field_text_and_remedy() -> None:
    with pytest.raises(UnitError) as caught:
        parse_rate("fast", field="router.a.setpoint")
    assert str(caught.value) == (
        "router.a.setpoint: 'fast' is not a packet rate such as 20kpps or 20000"
    )


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0"),
        (7.0, "7"),
        (999.0, "999"),
        (19.23e3, "19.2k"),
        (1.234e6, "1.23M"),
        (1e9, "1000M"),
    ],
)
def test_a_short_rate_can_be_read_again(rate: float, text: str) -> None:
    assert short_rate(rate) == text
    if rate:
        assert parse_rate(text) == pytest.approx(rate, rel=0.005)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50Mb/s", 50e6),
        (" 50 Mbit/s ", 50e6),
        ("1.5Gb/s", 1.5e9),
        ("1kb/s", 1e3),
        ("64000b/s", 64e3),
        ("5e4 kb/s", 50e6),
        ("1000Gb/s", 1e12),
    ],
)
def test_a_bit_rate_is_read(text: str, rate: float) -> None:
    assert parse_bit_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    ["", "50", "50M", "50Mb", "50MB/s", "-1Mb/s", "nanb/s", "infb/s", "1e400b/s", "1.2.3Mb/s",
     "999b/s", "1001Gb/s", "50mb/s", "50Mb/s/s", "50 kpps"],
)  # fmt: skip
def test_what_is_no_bit_rate_is_refused(text: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_bit_rate(text, field="x")
    assert caught.value.field == "x"


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, 999.9, 1.0001e12])
def test_what_is_no_bit_rate_in_numbers_is_refused(value: float) -> None:
    with pytest.raises(UnitError, match=r"is not a bit rate from 1kb/s to 1000Gb/s"):
        check_bit_rate(value)


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0.0, "0 b/s"),
        (999.0, "999 b/s"),
        (1e3, "1 kb/s"),
        (12_345.0, "12.3 kb/s"),
        (50e6, "50 Mb/s"),
        (1.5e9, "1.5 Gb/s"),
        (1e12, "1000 Gb/s"),
    ],
)
def test_a_bit_rate_is_shown_with_its_unit(rate: float, shown: str) -> None:
    assert format_bit_rate(rate) == shown
    assert short_bit_rate(rate) == shown.replace(" ", "")
