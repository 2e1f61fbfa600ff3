"""What the notebook on truth counts is right: intervals as errors, and both ways to make them."""

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.training.coverage_host import Case
from benchmarks.training.truth import (
    Compared,
    at_cap,
    by_samples,
    by_the_fit,
    compared,
    curve_errors,
    held,
    independent,
    trial,
)
from training.fit.interval import Interval

CHANGING = Case(visit_sd=0.05)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.02, 1.0), st.floats(0.5, 2.0), st.floats(0.01, 0.5))
def test_an_interval_holds_exactly_when_it_holds_the_truth(
    cap: float, off: float, half: float
) -> None:
    truth = 100e3 * min(cap, 0.8)
    found = compared(Case(), cap, Interval(off * truth, (off - half) * truth, (off + half) * truth))
    assert found.value == pytest.approx(off - 1, abs=1e-9)
    if abs(abs(off - 1) - half) > 1e-6:
        assert found.holds == (abs(off - 1) <= half)


def test_independent_samples_are_held_nineteen_times_in_twenty() -> None:
    chance = random.Random(1)
    sweeps = [[chance.gauss(100, 3) for _ in range(12)] for _ in range(1000)]
    found = [independent(rates) for rates in sweeps]
    assert sum(one.low <= 100 <= one.high for one in found) / 1000 == pytest.approx(0.95, abs=0.02)
    assert found[0].value == statistics.fmean(sweeps[0])


def test_the_nearest_cap_is_taken() -> None:
    some = [Compared(cap, 0.0, -0.1, 0.1) for cap in (0.1, 0.2, 0.4)]
    assert at_cap(some, 0.27).cap == 0.2
    assert held([*some, Compared(0.5, 0.2, 0.1, 0.3)]) == 3


def test_the_mixed_model_holds_where_independent_samples_fail() -> None:
    trials = [trial(CHANGING, seed) for seed in range(8)]
    mixed = [found for one in trials for found in by_the_fit(one)]
    naive = [found for one in trials for found in by_samples(one)]
    assert len(mixed) == len(naive)
    assert held(mixed) / len(mixed) >= 0.85
    assert held(naive) / len(naive) <= 0.7


def test_samples_of_the_settling_spoil_the_mean_and_not_the_fit() -> None:
    late = trial(Case(lag=0.6), 1)
    assert max(abs(one.value) for one in by_samples(late, settled=False)) > 1
    assert max(abs(one.value) for one in by_the_fit(late)) < 0.05


def test_the_errors_of_a_curve_are_shares_of_the_truth() -> None:
    one = trial(Case(noise=0.001), 1)
    errors = curve_errors(one, [point.cap for point in one.found.points])
    assert max(map(abs, errors)) < 0.01
    assert all(math.isfinite(error) for error in errors)
