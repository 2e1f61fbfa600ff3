"""Dithering keeps its mean, its neighbours and its debts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.units import CapFraction
from xtc.control.dither import SLOTS, dither

CAPS = st.floats(1e-4, 16.0)
QUANTA = st.sampled_from([0.001, 0.003, 0.01, 0.07, 0.1])


@given(cap=CAPS, quantum=QUANTA, periods=st.integers(1, 60), slots=st.sampled_from([1, SLOTS]))
def test_the_mean_over_many_periods_is_the_cap_within_a_slot(
    cap: float, quantum: float, periods: int, slots: int
) -> None:
    owed, spent = 0.0, list[float]()
    for _ in range(periods):
        period, owed = dither(CapFraction(cap), quantum, owed, slots)
        spent.extend(period.caps)
    wanted = max(cap, quantum)
    assert math.fsum(spent) / len(spent) == pytest.approx(wanted, abs=quantum / slots / periods)


@given(caps=st.lists(CAPS, min_size=1, max_size=30), quantum=QUANTA)
def test_levels_are_neighbours_and_debts_bounded_whatever_the_caps(
    caps: list[float], quantum: float
) -> None:
    owed = 0.0
    for cap in caps:
        period, owed = dither(CapFraction(cap), quantum, owed)
        assert len(period.caps) == SLOTS
        steps = [level / quantum for level in sorted(set(period.caps))]
        assert steps == pytest.approx([round(step) for step in steps], abs=1e-6)
        assert len(steps) <= 2
        assert steps[-1] - steps[0] < 1.5
        assert steps[0] > 0.5
        assert abs(owed) <= quantum / SLOTS / 2 * (1 + 1e-6) + 1e-12


@given(cap=CAPS, owed=st.floats(-1.0, 1.0), quantum=st.sampled_from([0.0, -0.01]))
def test_without_a_quantum_every_cap_passes_through(
    cap: float, owed: float, quantum: float
) -> None:
    period, left = dither(CapFraction(cap), quantum, owed)
    assert (period.mean, set(period.caps), left) == (cap, {cap}, 0.0)
