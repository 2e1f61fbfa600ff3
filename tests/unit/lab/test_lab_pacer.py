"""Pacing is exact on average, makes short lags good and forgets long ones."""

import pytest

from lab.programs.pacer import MAX_LAG_S, Pacer
from lab.programs.source import BATCH, LONGEST_TICK_S, SHORTEST_TICK_S, tick


@pytest.mark.parametrize("rate", [7.0, 1_000.0, 60_000.0, 333_333.3])
def test_irregular_ticks_still_give_the_exact_count(rate: float) -> None:
    pacer, now, total = Pacer(rate, 0.0), 0.0, 0
    for step in range(2_000):
        now += 0.0005 + 0.001 * (step % 7) / 7
        total += pacer.due(now)
    assert rate * now - 1 <= total <= rate * now


def test_a_lag_below_the_limit_is_made_good() -> None:
    pacer = Pacer(10_000.0, 0.0)
    assert pacer.due(MAX_LAG_S / 2) == 500


def test_a_longer_lag_is_forgotten_and_pacing_goes_on() -> None:
    pacer = Pacer(10_000.0, 0.0)
    assert pacer.due(60.0) <= 10_000.0 * MAX_LAG_S + 1
    assert pacer.due(60.0625) == 625


def test_another_rate_holds_from_its_instant_on() -> None:
    pacer = Pacer(1_000.0, 0.0)
    pacer.due(0.0625)
    pacer.set_rate(100_000.0, 0.0625)
    assert pacer.due(0.125) == 6_250


def test_a_rate_of_nothing_owes_nothing() -> None:
    assert Pacer(0.0, 0.0).due(3600.0) == 0


@pytest.mark.parametrize("rate", [0.0, 1.0, 60e3, 150e3, 300e3, 1e9])
def test_a_tick_sends_about_one_batch_within_its_bounds(rate: float) -> None:
    assert SHORTEST_TICK_S <= tick(rate) <= LONGEST_TICK_S
    if SHORTEST_TICK_S < tick(rate) < LONGEST_TICK_S:
        assert tick(rate) * rate == pytest.approx(BATCH)
