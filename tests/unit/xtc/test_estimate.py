"""What the line learns: offset, elasticity, delay and noise, each from samples made to show it."""

import math
import random
from collections.abc import Sequence

import pytest

from xtc.control.estimate import (
    QUIETEST,
    SLOPES,
    UNSHAPED_DOUBT,
    Estimate,
    moved,
    updated,
)

STEPS = (0.0, 0.0, -0.8, -0.8, -0.2, -0.2, -0.9, -0.9, -0.1, -0.1)
"""Log caps with clear moves both ways, each held for two samples."""


def _fed(
    log_caps: Sequence[float], log_ys: Sequence[float], estimate: Estimate | None = None
) -> Estimate:
    estimate = estimate or Estimate()
    for log_cap, log_y in zip(log_caps, log_ys, strict=True):
        estimate = updated(estimate, log_cap, log_y, shaped=True)
    return estimate


def _power_law(log_caps: Sequence[float], slope: float, delay: int = 0) -> list[float]:
    """Return what a router of one elasticity answers, 10 at cap 1, some samples late."""
    late = [log_caps[max(k - delay, 0)] for k in range(len(log_caps))]
    return [math.log(10.0) + slope * log_cap for log_cap in late]


def test_the_first_sample_lies_on_the_line() -> None:
    estimate = updated(Estimate(), math.log(0.2), math.log(7.0), shaped=True)
    assert estimate.slope == 1.0
    assert estimate.level == pytest.approx(math.log(7.0))
    assert estimate.offset == pytest.approx(math.log(7.0 / 0.2))


@pytest.mark.parametrize("slope", [0.5, 1.0, 1.5, 3.0])
def test_the_elasticity_is_learned_from_clear_moves(slope: float) -> None:
    """Upwards only: a long way down may cross a knee, and teaches no slope below 1."""
    log_caps = [-3 + 0.5 * k for k in range(10)]
    estimate = _fed(log_caps, _power_law(log_caps, slope))
    assert estimate.slope == pytest.approx(slope, abs=0.02)
    assert estimate.level == pytest.approx(math.log(10) + slope * log_caps[-1], abs=0.02)


@pytest.mark.parametrize(("slope", "kept"), [(0.0, SLOPES[0]), (0.2, SLOPES[0]), (20, SLOPES[1])])
def test_the_elasticity_stays_within_what_is_trusted(slope: float, kept: float) -> None:
    log_caps = [-3 + 0.29 * k for k in range(12)]
    estimate = Estimate()
    for log_cap, log_y in zip(log_caps, _power_law(log_caps, slope), strict=True):
        estimate = updated(estimate, log_cap, log_y, shaped=True)
        assert SLOPES[0] <= estimate.slope <= SLOPES[1]
    assert estimate.slope == pytest.approx(kept)


def test_a_long_way_down_that_looks_flat_teaches_no_flat_slope() -> None:
    """From far on a flat top to the knee: what comes below the knee is proportional again."""
    estimate = _fed([0.0, -1.5], [math.log(10), math.log(9.5)])
    assert estimate.slope == 1.0


def test_moves_that_drown_in_noise_teach_no_slope() -> None:
    noise = random.Random(1)
    log_caps = [0.02 * (k % 2) for k in range(100)]
    log_ys = [math.log(10) + noise.gauss(0, 0.1) for _ in log_caps]
    assert _fed(log_caps, log_ys).slope == 1.0


def test_an_elasticity_below_1_is_forgotten_while_nothing_is_learned() -> None:
    estimate = moved(_fed([0.0], [math.log(10)]), offset=math.log(10), slope=0.4, variance=0.0)
    slopes = []
    for _ in range(30):
        estimate = updated(estimate, 0.0, math.log(10), shaped=True)
        slopes.append(estimate.slope)
        assert estimate.level == pytest.approx(math.log(10))
    assert slopes == sorted(slopes)
    assert slopes[-1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("delay", [0, 1, 2])
def test_a_delay_is_found_out(delay: int) -> None:
    estimate = _fed(STEPS * 2, _power_law(STEPS * 2, 1.0, delay))
    assert estimate.delay == delay
    assert estimate.slope == pytest.approx(1.0, abs=0.02)


def test_a_delay_that_is_known_beforehand_is_never_doubted() -> None:
    known = Estimate(delay=3)
    assert _fed(STEPS, _power_law(STEPS, 1.0, delay=1), known).delay == 3


def test_a_sample_that_was_predicted_is_no_reason_to_doubt_the_delay() -> None:
    """The model's line leads from a flat top to the setpoint: a large move and a small change."""
    estimate = moved(
        _fed([0.0], [math.log(10.7)]), offset=math.log(10.0) + 1.5, slope=1.0, variance=0.09
    )
    estimate = updated(estimate, -1.5, math.log(10.0), shaped=True)
    assert estimate.delay == 0
    assert estimate.level == pytest.approx(math.log(10.0), abs=0.02)


def test_moves_too_small_to_tell_delays_apart_tell_nothing() -> None:
    log_caps = [0.1 * (k % 3) for k in range(30)]
    estimate = _fed(log_caps, _power_law(log_caps, 1.0, delay=1))
    assert estimate.delay == 0
    assert set(estimate.misfits) == {0.0}


@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.15])
def test_the_noise_is_learned_at_a_constant_cap(sigma: float) -> None:
    noise = random.Random(2)
    log_ys = [math.log(10) + noise.gauss(0, sigma) for _ in range(300)]
    assert math.sqrt(_fed([0.0] * 300, log_ys).noise) == pytest.approx(sigma, rel=0.5)


def test_silence_is_never_taken_for_more_than_quiet() -> None:
    estimate = _fed([0.0] * 300, [math.log(10)] * 300)
    assert math.sqrt(estimate.noise) == pytest.approx(QUIETEST)


def test_the_mean_of_noise_is_followed_with_little_of_the_noise() -> None:
    noise = random.Random(3)
    estimate, levels = Estimate(), []
    for _ in range(400):
        estimate = updated(estimate, 0.0, noise.gauss(0, 0.1), shaped=True)
        levels.append(estimate.level)
    tail = levels[50:]
    assert math.fsum(tail) / len(tail) == pytest.approx(0.0, abs=0.02)
    assert max(map(abs, tail)) < 0.2


def test_one_hiccup_is_noise_and_two_are_a_change() -> None:
    noise = random.Random(5)
    noisy = _fed([0.0] * 100, [noise.gauss(0, 0.05) for _ in range(100)])
    once = updated(noisy, 0.0, -1.0, shaped=True)
    assert abs(once.level) < 0.5
    twice = updated(once, 0.0, -1.0, shaped=True)
    assert twice.level == pytest.approx(-1.0, abs=0.1)


def test_noise_that_lasts_correlates_and_noise_that_alternates_does_so_negatively() -> None:
    noise = random.Random(4)
    values = [noise.gauss(0, 0.1) for _ in range(200)]
    lasting = [value for value in values for _ in range(4)]
    alternating = [abs(value) * (-1) ** k for k, value in enumerate(values)]
    assert _fed([0.0] * len(lasting), lasting).correlation > 0.2
    assert _fed([0.0] * len(alternating), alternating).correlation < -0.2


def test_a_sample_that_no_cap_shaped_moves_the_line_but_teaches_no_slope() -> None:
    estimate = _fed([-1.0, -1.0], [0.0, 0.0])
    unshaped = updated(estimate, 0.0, 0.1, shaped=False)
    assert (unshaped.slope, unshaped.delay, unshaped.seen) == (1.0, 0, None)
    assert unshaped.variance >= UNSHAPED_DOUBT
    after = updated(unshaped, -1.0, 0.0, shaped=True)
    assert (after.slope, after.delay, after.seen) == (1.0, 0, 0.0)


def test_memory_is_bounded_however_long_it_runs() -> None:
    assert len(_fed(STEPS * 50, _power_law(STEPS * 50, 1.0)).caps) < 10
