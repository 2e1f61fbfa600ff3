"""Rates that follow marks: equal in the end, within the link, and still where nothing arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.laws.by_marks import CALM, RECOVERY, Marked, followed, started

LINK = 1e9


def test_a_pair_begins_at_full_rate_and_halves_at_its_first_marks() -> None:
    first = followed(started(LINK), 100.0, 100.0, LINK)
    assert first.rate_bps == pytest.approx(LINK / 2)


def test_few_marks_take_little() -> None:
    pair = Marked(LINK, LINK, alpha=0.1)
    assert followed(pair, 100.0, 10.0, LINK).rate_bps == pytest.approx(0.95 * LINK)


def test_a_calm_pair_returns_to_its_rate_before_it_rises() -> None:
    pair = Marked(0.25 * LINK, 0.5 * LINK)
    for _ in range(RECOVERY):
        pair = followed(pair, 100.0, 0.0, LINK)
        assert pair.rate_bps < 0.5 * LINK
    assert pair.rate_bps == pytest.approx(0.5 * LINK, rel=0.02)
    for _ in range(2 * CALM):
        pair = followed(pair, 100.0, 0.0, LINK)
    assert pair.rate_bps > 0.6 * LINK


def test_without_packets_nothing_is_known() -> None:
    pair = Marked(0.25 * LINK, 0.5 * LINK)
    assert followed(pair, 0.0, 0.0, LINK) == pair


def test_the_larger_of_two_falls_by_more_and_rises_by_the_same() -> None:
    large, small = Marked(0.8 * LINK, 0.8 * LINK), Marked(0.1 * LINK, 0.1 * LINK)
    for turn in range(2_000):
        marks = 10.0 * (turn % 20 == 0)
        large, small = (followed(pair, 100.0, marks, LINK) for pair in (large, small))
    assert large.rate_bps == pytest.approx(small.rate_bps, rel=0.02)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 2e6)), max_size=100))
def test_a_rate_stays_above_zero_and_within_the_link(seen: list[tuple[float, float]]) -> None:
    pair = started(LINK)
    for packets, marks in seen:
        pair = followed(pair, packets, marks, LINK)
        assert 0 < pair.rate_bps <= LINK
        assert 0 <= pair.alpha <= 1
