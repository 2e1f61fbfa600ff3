"""Bursts: saved below the ceiling, spent above, and what was overspent is paid back first."""

import pytest

from policer.contracts.contract import Contract
from policer.decide.burst import ceiling_now, saved_after

CONTRACT = Contract(guarantee_pps=0, ceiling_pps=1e4, burst_packets=5e4)


def test_below_the_ceiling_packets_are_saved_up_to_the_burst() -> None:
    assert saved_after(0, CONTRACT, 4e3, 2) == 1.2e4
    assert saved_after(0, CONTRACT, 0, 3600) == 5e4


def test_above_it_they_are_spent() -> None:
    assert saved_after(5e4, CONTRACT, 3e4, 2) == 1e4
    assert ceiling_now(CONTRACT, 1e4) == 2e4


def test_what_was_overspent_before_the_setpoint_could_fall_is_a_debt() -> None:
    owed = saved_after(1e4, CONTRACT, 6e4, 1)
    assert owed == -4e4
    assert ceiling_now(CONTRACT, owed) == 1e4
    assert saved_after(owed, CONTRACT, 0, 4) == 0


def test_a_debt_is_one_burst_at_most() -> None:
    assert saved_after(0, CONTRACT, 1e9, 60) == -5e4


def test_a_burst_is_not_exceeded_on_average_however_late_the_setpoint_falls() -> None:
    """Flat out for two seconds of ten, for ten minutes, each fall of the ceiling a second late."""
    saved, late, forwarded = 0.0, ceiling_now(CONTRACT, 0.0), 0.0
    for second in range(600):
        rate = late if second % 10 < 2 else 0.0
        late = ceiling_now(CONTRACT, saved)
        forwarded += rate
        saved = saved_after(saved, CONTRACT, rate, 1)
    assert forwarded <= 600 * 1e4 + 2 * 5e4


@pytest.mark.parametrize("burst", [0, 5e4])
def test_without_burst_or_ceiling_nothing_is_saved(burst: float) -> None:
    free = Contract(guarantee_pps=1e3)
    assert saved_after(burst, free, 0, 60) == 0
    assert ceiling_now(free, 0) == float("inf")
