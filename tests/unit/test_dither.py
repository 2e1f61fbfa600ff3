"""Neighbouring caps within a period, by hand."""

import pytest

from xtc.dither import SLOTS, Dithered, dither, slots_for
from xtc.units import CapFraction

PERCENT = 0.01


def _percents(period: Dithered) -> list[int]:
    return [round(cap * 100) for cap in period.caps]


def test_a_whole_cap_fills_the_period() -> None:
    period, owed = dither(CapFraction(0.07), PERCENT)
    assert _percents(period) == [7] * SLOTS
    assert owed == pytest.approx(0.0, abs=1e-12)


def test_three_tenths_above_a_whole_cap_is_three_slots_of_the_next() -> None:
    period, owed = dither(CapFraction(0.073), PERCENT)
    assert _percents(period) == [8] * 3 + [7] * 7
    assert period.mean == pytest.approx(0.073)
    assert owed == pytest.approx(0.0, abs=1e-12)


def test_what_a_slot_cannot_express_is_owed() -> None:
    period, owed = dither(CapFraction(0.0734), PERCENT)
    assert _percents(period) == [8] * 3 + [7] * 7
    assert owed == pytest.approx(0.0004)


def test_what_is_owed_is_paid() -> None:
    period, owed = dither(CapFraction(0.0734), PERCENT, owed=0.0004)
    assert _percents(period) == [8] * 4 + [7] * 6
    assert owed == pytest.approx(-0.0002)


def test_a_debt_that_fills_the_period_leaves_one_level() -> None:
    period, _ = dither(CapFraction(0.0798), PERCENT)
    assert period.mean == pytest.approx(0.08)


@pytest.mark.parametrize("cap", [1e-9, 0.004, 0.01])
def test_below_one_quantum_there_is_one_quantum(cap: float) -> None:
    period, owed = dither(CapFraction(cap), PERCENT)
    assert (period.high, period.low, owed) == (PERCENT, PERCENT, 0.0)


def test_without_a_quantum_the_cap_passes_through() -> None:
    period, owed = dither(CapFraction(0.012345), 0.0, owed=0.5)
    assert set(period.caps) == {0.012345}
    assert (period.mean, owed) == (0.012345, 0.0)


@pytest.mark.parametrize("slots", range(1, SLOTS + 1))
def test_the_mean_is_that_of_the_slots(slots: int) -> None:
    period = Dithered(CapFraction(0.5), CapFraction(0.4), slots)
    assert period.mean == pytest.approx(sum(period.caps) / SLOTS)


def test_in_one_slot_the_whole_period_is_one_of_the_neighbours() -> None:
    low, owed = dither(CapFraction(0.073), PERCENT, slots=1)
    assert _percents(low) == [7] * SLOTS
    high, owed = dither(CapFraction(0.073), PERCENT, owed, slots=1)
    assert _percents(high) == [8] * SLOTS
    assert owed == pytest.approx(-0.004)


@pytest.mark.parametrize(
    ("cap", "slow", "slots"), [(0.05, False, SLOTS), (0.05, True, 1), (0.6, False, 1)]
)
def test_periods_are_cut_where_a_step_matters_and_the_actuator_bears_it(
    cap: float, *, slow: bool, slots: int
) -> None:
    assert slots_for(CapFraction(cap), PERCENT, slow=slow) == slots
