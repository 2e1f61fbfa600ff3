"""Eq. 1 by least squares, against sums written out: neighbours, lag, delay, and what is missed."""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from training.fit.dynamics import Dynamics
from training.fit.eq1 import (
    Eq1,
    Line,
    Pair,
    Residual,
    eq1_of,
    joint_of,
    lack_of_fit,
    log_percent,
    missed_of,
    pairs_of,
    steady_line,
)
from training.fit.interval import Interval
from training.fit.points import Rising
from training.recording.recording import Sample

Array = npt.NDArray[np.float64]
CAPS = (0.1, 0.2, 0.4)


def sample(at: float, cap: float | None, kpps: float, **other: object) -> Sample:
    return Sample(at=at, cap=cap, throughput_pps=1e3 * kpps, **other)  # type: ignore[arg-type]


def half_width(estimate: Interval) -> float:
    assert estimate.high - estimate.value == pytest.approx(estimate.value - estimate.low)
    return estimate.high - estimate.value


def student(freedom: int) -> float:
    return float(stats.t.ppf(0.975, freedom))


# ---- neighbours ------------------------------------------------------------------------------

FOUR = [
    sample(0.0, 0.1, 10.0, visit=1),
    sample(1.0, 0.2, 20.0, visit=2),
    sample(2.0, 0.2, 21.0, visit=3),
    sample(3.0, 0.4, 40.0, visit=4),
]


def test_a_percent_of_a_cpu_has_logarithm_zero() -> None:
    assert (log_percent(0.01), log_percent(1.0)) == (0.0, 2.0)
    assert Pair(1.0, 2.0, 0.1, moved=True).log_cap == 1.0


def test_neighbours_are_in_kilopackets_with_the_cap_that_acts() -> None:
    assert pairs_of(FOUR, 1.0, 1.0) == [
        Pair(10.0, 20.0, 0.2, True, 2),
        Pair(20.0, 21.0, 0.2, False, 3),
        Pair(21.0, 40.0, 0.4, True, 4),
    ]


def test_with_a_delay_the_cap_of_earlier_samples_acts() -> None:
    assert pairs_of(FOUR, 1.0, 1.0, delay=1) == [
        Pair(10.0, 20.0, 0.1, False, 1),
        Pair(20.0, 21.0, 0.2, True, 2),
        Pair(21.0, 40.0, 0.2, False, 3),
    ]
    assert pairs_of(FOUR, 1.0, 1.0, delay=2) == [
        Pair(20.0, 21.0, 0.1, False, 1),
        Pair(21.0, 40.0, 0.2, True, 2),
    ]


def test_only_caps_below_the_threshold_teach() -> None:
    assert [pair.cap for pair in pairs_of(FOUR, 1.0, 0.4)] == [0.2, 0.2]
    uncapped = [FOUR[0], sample(1.0, None, 90.0), sample(2.0, 0.1, 10.0)]
    assert [pair.cap for pair in pairs_of(uncapped, 1.0, 1.0)] == [0.1]


@pytest.mark.parametrize(("binding", "count"), [(True, 1), (None, 1), (False, 0)])
def test_only_samples_that_the_cap_may_have_shaped_teach(binding: bool | None, count: int) -> None:
    after = sample(1.0, 0.2, 20.0, binding=binding)
    assert len(pairs_of([FOUR[0], after], 1.0, 1.0)) == count


@pytest.mark.parametrize(
    ("delay", "last", "count"),
    [(0, 1.5, 1), (0, 1.51, 0), (1, 1.5, 1), (1, 1.51, 0), (2, 2.5, 1), (2, 2.51, 0)],
)
def test_samples_half_a_period_late_follow_each_other_and_no_later_ones(
    delay: int, last: float, count: int
) -> None:
    times = (0.0, last) if delay < 2 else (0.0, 1.0, last)
    for period in (1.0, 0.2):
        seen = [sample(at * period, 0.1, 10.0) for at in times]
        assert len(pairs_of(seen, period * (1 + 1e-9), 1.0, delay)) == count


# ---- regressions -----------------------------------------------------------------------------


def noisy_pairs(scale: float, count: int = 6, seed: int = 1) -> list[Pair]:
    """Return pairs of a host with a lag of 0.3, whose samples scatter."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        for cap in CAPS:
            before = rng.uniform(10.0, 60.0)
            after = 0.3 * before + 70.0 * cap + scale * rng.gauss(0.0, 1.0)
            pairs.append(Pair(before, after, cap, moved=True))
    return pairs


def test_a_steady_line_is_the_textbooks_regression() -> None:
    rng = random.Random(5)
    points = [(cap, 1e3 * (80 * cap + rng.uniform(0, 9))) for cap in (0.05, 0.1, 0.2, 0.4, 0.7)]
    u, y = [math.log10(100 * c) for c, _ in points], [r / 1e3 for _, r in points]
    truth = stats.linregress(u, y)
    found = steady_line(points, chance=0.5)
    assert found.gain.value == pytest.approx(truth.slope)
    assert half_width(found.gain) == pytest.approx(student(3) * truth.stderr)
    assert found.r_squared == pytest.approx(truth.rvalue**2)
    assert (found.mean_throughput, found.mean_log_cap) == pytest.approx((np.mean(y), np.mean(u)))
    assert found.points == 5


def test_a_bent_line_has_the_robust_error_of_its_slope() -> None:
    """HC3: each residual as if its own point had been left out of the fit."""
    caps = (0.05, 0.1, 0.2, 0.4, 0.7)
    u, y = np.log10(100 * np.array(caps)), 80 * np.array(caps)
    moved = u - u.mean()
    left_out = []
    for n in range(5):
        others = np.arange(5) != n
        there = stats.linregress(u[others], y[others])
        left_out.append(y[n] - (there.intercept + there.slope * u[n]))
    error = math.sqrt(sum((moved * np.array(left_out)) ** 2)) / sum(moved**2)
    found = steady_line([(cap, 80e3 * cap) for cap in caps], chance=0.01)
    assert half_width(found.gain) == pytest.approx(student(3) * error)
    assert error > stats.linregress(u, y).stderr


def test_a_point_that_the_line_must_meet_tells_no_error() -> None:
    line = steady_line([(0.1, 10e3), (0.1, 12e3), (0.4, 50e3)])
    assert math.isfinite(line.gain.high)


def slopes(truth: Callable[[Array], Array], chance: float, *, caps: int, runs: int) -> float:
    """Return how often the interval holds the slope of the line that fits the region best.

    Caps are drawn from 5 to 60 %, samples scatter by 1 %.
    """
    rng = np.random.default_rng(7)
    low, high = math.log10(5), math.log10(60)
    grid = np.linspace(low, high, 2001)
    best = stats.linregress(grid, truth(grid)).slope
    held = 0
    for _ in range(runs):
        u = rng.uniform(low, high, caps)
        rates = truth(u) * (1 + 0.01 * rng.standard_normal(caps))
        points = list(zip(10**u / 100, 1e3 * rates, strict=True))
        gain = steady_line(points, chance).gain
        held += gain.low <= best <= gain.high
    return held / runs


def test_the_interval_of_a_slope_is_honest_on_a_hinge() -> None:
    """Over log(cap) the rising part of a hinge bends; a straight line's error is too small."""

    def hinge(u: Array) -> Array:
        return np.asarray(1.7 * 10**u)

    def line(u: Array) -> Array:
        return 10 + 69 * u

    for caps in (7, 15):
        assert slopes(hinge, 0.5, caps=caps, runs=1000) < 0.87
        assert slopes(hinge, 0.0, caps=caps, runs=1000) >= 0.88
        assert 0.93 <= slopes(line, 0.5, caps=caps, runs=1000) <= 0.97
        assert slopes(line, 0.0, caps=caps, runs=1000) >= 0.94


def test_the_joint_fit_is_the_textbooks_regression() -> None:
    pairs = noisy_pairs(3.0)
    columns = np.array([[p.before, p.log_cap, 1.0] for p in pairs])
    y = np.array([p.after for p in pairs])
    inverse = np.linalg.inv(columns.T @ columns)
    values = inverse @ columns.T @ y
    rest, freedom = y - columns @ values, len(pairs) - 3
    errors = np.sqrt(rest @ rest / freedom * np.diag(inverse))
    found = joint_of(pairs)
    assert (found.a.value, found.b.value) == pytest.approx(tuple(values[:2]))
    assert half_width(found.a) == pytest.approx(student(freedom) * errors[0])
    assert half_width(found.b) == pytest.approx(student(freedom) * errors[1])
    spread = y - y.mean()
    assert found.r_squared == pytest.approx(1 - rest @ rest / (spread @ spread))


# ---- Eq. 1 -----------------------------------------------------------------------------------

LINE = Line(Interval(80.0, 70.0, 90.0), 50.0, 1.2, 0.9, 5)


HOST = Dynamics(Interval(0.3, 0.2, 0.4), 1, 18)


def fitted(scale: float) -> tuple[Eq1, list[Pair]]:
    every = noisy_pairs(scale, seed=2)
    return eq1_of(LINE, HOST, every, 0.5), every


def test_b_is_the_gain_times_what_a_leaves_and_their_errors_add() -> None:
    found, _ = fitted(2.0)
    a = HOST.lag
    assert found.a == a
    assert found.b.value == pytest.approx(80.0 * (1 - a.value))
    expected = math.sqrt((10.0 * (1 - a.value)) ** 2 + (80.0 * (a.high - a.value)) ** 2)
    assert half_width(found.b) == pytest.approx(expected)
    assert (found.line, found.delay, found.pairs) == (LINE, 1, 18)


def test_what_is_predicted_goes_from_the_last_sample_towards_the_line() -> None:
    found, every = fitted(2.0)
    a = found.a.value
    assert len(found.residuals) == len(every)
    for residual, pair in zip(found.residuals, every, strict=True):
        steady = 50.0 + 80.0 * (math.log10(100 * pair.cap) - 1.2)
        assert residual.estimated == pytest.approx(a * pair.before + (1 - a) * steady)
        assert (residual.cap, residual.actual) == (pair.cap, pair.after)
        assert residual.missed == residual.actual - residual.estimated
    actual = np.array([r.actual for r in found.residuals])
    missed = np.array([r.missed for r in found.residuals])
    spread = ((actual - actual.mean()) ** 2).sum()
    assert found.r_squared == pytest.approx(1 - (missed**2).sum() / spread)
    assert found.joint == joint_of(every)
    parts = found.missed
    assert parts.chance == 0.5
    assert parts.noise + parts.drift + parts.line == pytest.approx((missed**2).sum() / spread)


def residuals(rows: Sequence[tuple[float, int, float]]) -> list[Residual]:
    return [Residual(cap, 100 * cap, 100 * cap + missed, visit) for cap, visit, missed in rows]


ROWS = [
    (0.1, 1, 1.0),
    (0.1, 1, 3.0),
    (0.1, 2, 4.0),
    (0.2, 3, -1.0),
    (0.2, 3, -2.0),
    (0.4, 4, 2.0),
    (0.4, 5, 3.0),
]


def test_the_parts_of_what_is_missed_by_hand() -> None:
    found = missed_of(residuals(ROWS), 0.5)
    actual = np.array([100 * cap + missed for cap, _, missed in ROWS])
    spread = ((actual - actual.mean()) ** 2).sum()
    # Visit means 2, 4, -1.5, 2, 3; cap means 8/3, -1.5, 2.5.
    noise = 2 * 1.0 + 2 * 0.25
    drift = 2 * (2 - 8 / 3) ** 2 + (4 - 8 / 3) ** 2 + 2 * 0.25
    line = 3 * (8 / 3) ** 2 + 2 * 1.5**2 + 2 * 2.5**2
    assert (found.noise, found.drift, found.line) == pytest.approx(
        (noise / spread, drift / spread, line / spread)
    )
    assert found.chance == 0.5


def test_chance_is_that_of_an_f_test_by_hand() -> None:
    """Errors that are alike in packets/s make generalized least squares ordinary ones."""
    rates = np.array([10e3, 24e3, 31e3, 38e3])
    caps, error = (0.1, 0.2, 0.4, 0.8), 500.0
    u = np.array([math.log10(100 * cap) for cap in caps])
    fitted_line = stats.linregress(u, rates)
    missed = rates - fitted_line.intercept - fitted_line.slope * u
    ratio = float(missed @ missed) / error**2 / 2
    found = lack_of_fit(Rising(caps, rates, np.diag((error / rates) ** 2), 9.0))
    assert found == pytest.approx(float(stats.f.sf(ratio, 2, 9.0)))


def test_samples_that_are_all_alike_have_nothing_to_explain() -> None:
    found = missed_of([Residual(cap, 5.0, 5.0, 1) for cap in CAPS], 1.0)
    assert (found.noise, found.drift, found.line, found.chance) == (0.0, 0.0, 0.0, 1.0)
