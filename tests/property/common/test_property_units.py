"""Whatever is typed, it becomes a quantity in range or a UnitError."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UnitError
from common.units import (
    MAX_RATE,
    format_cap,
    format_rate,
    parse_cap,
    parse_duration,
    parse_fraction,
    parse_rate,
)

TYPED = st.one_of(st.text(), st.from_regex(r"\A\s?[0-9.e+-]{0,9} ?(k|M|%|m|)?(pp?s|p/s|h|s|)\Z"))


def _read(parse: Callable[[str], float], text: str) -> float | None:
    try:
        return parse(text)
    except UnitError:
        return None


@given(TYPED)
def test_every_text_is_a_rate_in_range_or_refused(text: str) -> None:
    rate = _read(parse_rate, text)
    assert rate is None or 0 < rate <= MAX_RATE


@pytest.mark.parametrize("parse", [parse_fraction, parse_cap, parse_duration])
@given(text=TYPED)
def test_every_text_is_a_finite_quantity_or_refused(
    parse: Callable[[str], float], text: str
) -> None:
    value = _read(parse, text)
    assert value is None or (math.isfinite(value) and value >= 0)


@given(st.floats(1e-3, MAX_RATE))
def test_a_rate_that_is_shown_can_be_read_back(rate: float) -> None:
    assert parse_rate(format_rate(rate)) == pytest.approx(rate, rel=0.0051)


@given(st.floats(1e-4, 1024.0))
def test_a_cap_that_is_shown_can_be_read_back(cap: float) -> None:
    assert parse_cap(format_cap(cap)) == pytest.approx(cap, rel=0.0051)


@given(st.floats(1.0, MAX_RATE))
def test_no_rate_is_shown_with_an_exponent(rate: float) -> None:
    assert "e" not in format_rate(rate)
