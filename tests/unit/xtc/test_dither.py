"""Neighbouring caps within a period, by hand."""

import pytest

from common.units import CapFraction
from xtc.control.dither import SLOTS, Dithered, dither, slots_for

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


@pytest.mark.parametrize(
    ("cap", "slots"), [(0.33, SLOTS), (0.4, SLOTS), (0.5, SLOTS), (0.51, 1), (0.75, 1)]
)
def test_a_step_of_2_percent_of_the_cap_is_worth_alternating(cap: float, slots: int) -> None:
    assert slots_for(CapFraction(cap), PERCENT, slow=False) == slots


@pytest.mark.parametrize("percent", [1, 2, 7, 29, 57, 58, 100, 113])
def test_a_whole_cap_has_one_level_however_it_rounds(percent: int) -> None:
    period, _ = dither(CapFraction(percent / 100), PERCENT)
    assert period.high == period.low == pytest.approx(percent / 100)


@pytest.mark.parametrize(
    ("cap", "owed", "percents"),
    [
        (0.013, 0.0, [2] * 3 + [1] * 7),
        (0.0104, 0.0, [1] * 10),
        (0.0106, 0.0, [2] + [1] * 9),
        (0.0102, -0.0008, [1] * 10),
        (0.0102, 0.0008, [2] + [1] * 9),
        (0.0296, 0.0, [3] * 10),
        (0.0294, 0.0, [3] * 9 + [2]),
        (0.02, -0.0003, [2] * 10),
        (0.02, 0.012, [4] * 2 + [3] * 8),
    ],
)
def test_caps_by_hand(cap: float, owed: float, percents: list[int]) -> None:
    """Never a slot without a cap, whatever an earlier period owes."""
    period, left = dither(CapFraction(cap), PERCENT, owed)
    assert _percents(period) == percents
    assert left == pytest.approx(cap + owed - sum(percents) / 1000, abs=1e-12)


@pytest.mark.parametrize("owed", [-0.0005, 0.0, 0.0005])
def test_at_the_smallest_cap_nothing_is_owed(owed: float) -> None:
    period, left = dither(CapFraction(PERCENT), PERCENT, owed)
    assert (_percents(period), left) == ([1] * SLOTS, 0.0)
