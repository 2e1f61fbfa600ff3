"""Each term of the estimate by hand: on both sides of every bound."""

import math

import pytest
from msgspec.structs import replace

from xtc.control.estimate import (
    Estimate,
    _correlation,
    _filtered,
    _followed,
    _is_change,
    _move,
    _noise,
    _unexplained,
    _with_delay,
    _with_slope,
    moved,
    updated,
)

STEPPED = (0.0, -1.0, -1.0, -1.0)
"""Log caps, newest first: one step up by 1, with this sample."""


@pytest.mark.parametrize(("delay", "move"), [(0, 1.0), (1, 2.0), (2, 0.0), (5, 0.0)])
def test_a_move_is_felt_after_the_delay(delay: int, move: float) -> None:
    assert _move(Estimate(caps=(-1.0, -2.0, -4.0)), delay) == move


@pytest.mark.parametrize(("delay", "level"), [(0, 5.0), (1, 3.0), (2, -1.0), (4, -1.0)])
def test_the_level_is_the_lines_at_the_acting_cap(delay: int, level: float) -> None:
    assert Estimate(slope=2.0, offset=7.0, caps=(-1.0, -2.0, -4.0), delay=delay).level == level


@pytest.mark.parametrize(
    ("rise", "move", "slope", "unexplained"),
    [
        (0.5, 0.5, 1.0, 0.0),
        (0.1, 0.5, 1.0, 0.1),  # less than 0.4 of the move
        (0.2, 0.5, 1.0, 0.0),
        (0.75, 0.5, 1.0, 0.0),
        (1.0, 0.5, 1.0, 0.25),  # more than 1.5 of it
        (1.0, 0.5, 2.0, 0.0),  # unless it is known to be that steep
        (1.2, 0.5, 2.0, 0.2),
        (0.0, -0.5, 1.0, 0.2),
        (-1.0, -0.5, 1.0, 0.25),
        (0.3, 0.0, 1.0, 0.3),
        (-0.3, 0.0, 1.0, 0.3),
    ],
)
def test_what_a_move_cannot_explain(
    rise: float, move: float, slope: float, unexplained: float
) -> None:
    assert _unexplained(rise, move, slope) == pytest.approx(unexplained)


@pytest.mark.parametrize(
    ("rise", "delay", "misfits"),
    [
        (0.00, 1, (0.16, 0.0, 0.0)),
        (0.05, 1, (0.1225, 0.0025, 0.0025)),
        (0.09, 0, (0.0961, 0.0081, 0.0081)),  # better, but not by more than the square of 0.3
        (0.11, 0, (0.0841, 0.0121, 0.0121)),
        (0.50, 0, (0.0, 0.25, 0.25)),
    ],
)
def test_a_step_that_did_not_show_is_a_delay(
    rise: float, delay: int, misfits: tuple[float, ...]
) -> None:
    found = _with_delay(Estimate(caps=STEPPED, slope=1.0), rise)
    assert found.delay == delay
    assert found.misfits == pytest.approx(misfits)


@pytest.mark.parametrize(
    ("misfits", "delay"), [((0.5, 0.0, 0.9), 1), ((0.5, 0.2, 0.9), 1), ((0.5, 0.25, 0.9), 0)]
)
def test_another_delay_must_leave_less_than_a_third_unexplained(
    misfits: tuple[float, ...], delay: int
) -> None:
    """The new sample adds 0.16 to no delay, and nothing to the others."""
    found = _with_delay(Estimate(caps=STEPPED, misfits=misfits), 0.0)
    assert found.delay == delay
    old = (0.7 * misfits[0] + 0.16, 0.7 * misfits[1], 0.7 * misfits[2])
    assert found.misfits == pytest.approx(old)


@pytest.mark.parametrize(
    ("step", "rise", "tells"),
    [(0.29, 0.0, False), (0.31, 0.0, True), (0.0, 0.29, False), (0.0, -0.31, True)],
)
def test_only_a_clear_change_of_cap_or_throughput_tells_delays_apart(
    step: float, rise: float, *, tells: bool
) -> None:
    estimate = Estimate(caps=(step, 0.0, 0.0, 0.0), misfits=(0.5, 0.5, 0.5))
    assert (_with_delay(estimate, rise).misfits != estimate.misfits) is tells


def test_with_another_delay_the_slope_is_forgotten() -> None:
    """The line turns about where the router was before its last move at the new delay."""
    found = _with_delay(Estimate(caps=STEPPED, slope=1.2, offset=5.0), 0.0)
    assert (found.delay, found.slope) == (1, 1.0)
    assert found.offset == pytest.approx(5.0 - 0.2)


def test_a_delay_beyond_those_learnt_stays() -> None:
    estimate = Estimate(caps=STEPPED, delay=3, misfits=(0.0, 0.0, 0.0))
    assert _with_delay(estimate, 1.0) == estimate


@pytest.mark.parametrize(
    ("move", "rise", "before", "slope"),
    [
        (0.22, 0.44, 1.0, 1.6),  # 0.4 of the old slope and 0.6 of the new
        (-0.22, -0.44, 1.0, 1.6),
        (0.21, 0.44, 1.0, 1.0),  # within three times the noise of two samples: 0.2121
        (0.21, 0.44, 2.0, 2.0),
        (0.21, 0.44, 0.5, 0.575),  # a slope below 1 recovers by 0.15 of what it lacks
        (1.0, -3.0, 1.0, 0.4),
        (1.0, 30.0, 1.0, 10.0),
        (-0.29, 0.0, 1.5, 0.6),
        (-0.31, 0.0, 1.5, 1.5),  # a long way down that looks flat may cross a knee
        (-0.31, -0.30, 1.5, 1.5),
        (-0.31, -0.62, 1.5, 1.8),
    ],
)
def test_a_clear_move_teaches_the_slope(
    move: float, rise: float, before: float, slope: float
) -> None:
    known = Estimate(caps=(move - 1.0, -1.0), slope=before, offset=before, noise=0.0025)
    found = _with_slope(known, rise)
    assert found.slope == pytest.approx(slope)
    assert (found.offset or 0.0) - found.slope == pytest.approx(0.0)  # as before at log cap -1


@pytest.mark.parametrize(
    ("miss", "gain", "followed"),
    [
        (0.5, 0.74, math.expm1(0.5)),
        (0.5, 0.75, 0.5),
        (-0.99, 0.2, math.expm1(-0.99)),
        (0.99, 0.2, math.expm1(0.99)),
        (1.01, 0.2, 1.01),
        (-1.01, 0.2, -1.01),
    ],
)
def test_scatter_is_followed_in_shares_and_change_in_logarithms(
    miss: float, gain: float, followed: float
) -> None:
    assert _followed(miss, gain) == pytest.approx(followed)


@pytest.mark.parametrize(
    ("score", "before", "change"),
    [
        (2.6, 2.6, True),
        (-2.6, -2.6, True),
        (2.6, -2.6, False),
        (2.4, 9.0, False),
        (9.0, 2.4, False),
        (9.0, 0.0, False),
    ],
)
def test_two_surprises_on_one_side_are_a_change(
    score: float, before: float, *, change: bool
) -> None:
    assert _is_change(score, before) is change


@pytest.mark.parametrize(
    ("innovation", "correlation"),
    [(0.0, 0.475), (0.05, 0.5), (-0.05, 0.45), (0.19, 0.57), (1.0, 0.575), (-1.0, 0.375)],
)
def test_the_correlation_remembers_19_samples_of_20(innovation: float, correlation: float) -> None:
    known = Estimate(noise=0.01, innovation=0.1, correlation=0.5)
    assert _correlation(known, innovation) == pytest.approx(correlation)


@pytest.mark.parametrize(
    ("noise", "before", "innovation", "move", "learned"),
    [
        (0.0025, 0.0, 0.1, 0.0, 0.00275),
        (0.0025, 0.1, 0.1, 0.0, 0.00225),  # a constant miss is no noise
        (0.0025, -0.1, 0.1, 0.0, 0.00375),  # at most six times what was known
        (0.0025, 0.0, 1.0, 0.0, 0.00375),
        (0.0025, 0.0, 0.1, 0.049, 0.00275),
        (0.0025, 0.0, 0.1, 0.051, 0.0025),  # the cap moved: the loop's own doing
        (0.0004, 0.0, 0.0, 0.049, 0.00036),
        (0.04, 0.0, 0.0, 0.19, 0.036),
        (0.04, 0.0, 0.0, 0.21, 0.04),
        (4e-6, 0.0, 0.0, 0.0, 4e-6),
    ],
)
def test_noise_is_learned_where_the_cap_stood_still(
    noise: float, before: float, innovation: float, move: float, learned: float
) -> None:
    known = Estimate(noise=noise, innovation=before)
    assert _noise(known, innovation, move) == pytest.approx(learned)


KNOWN = Estimate(slope=1.0, offset=0.0, variance=0.01, noise=0.01, caps=(0.0, 0.0))


def test_a_sample_moves_the_line_by_its_gain() -> None:
    found = _filtered(KNOWN, 0.1)
    gain = 0.0101 / 0.0201  # with the drift of 1 % between two samples
    assert found.offset == pytest.approx(gain * math.expm1(0.1))
    assert found.variance == pytest.approx((1 - gain) * 0.0101)
    assert (found.noise, found.innovation) == (pytest.approx(0.0095), pytest.approx(0.1))


def test_a_move_of_the_cap_costs_certainty() -> None:
    found = _filtered(replace(KNOWN, caps=(0.2, 0.0)), 0.2)
    variance = 0.0101 + (0.5 * 0.2) ** 2
    assert found.variance == pytest.approx((1 - variance / (variance + 0.01)) * variance)


def test_after_two_surprises_the_line_goes_where_the_samples_are() -> None:
    sure = replace(KNOWN, variance=0.0, noise=0.0025, innovation=0.5)
    found = _filtered(sure, 0.6)
    assert found.offset == pytest.approx(0.6 * 0.36 / 0.3625)
    assert found.innovation == 0.0
    once = _filtered(replace(sure, innovation=0.0), 0.6)
    assert once.offset == pytest.approx(0.25 * math.expm1(0.6))
    assert once.innovation == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("correlation", "gain"), [(0.0, 0.25), (0.5, 0.65), (0.9, 0.7), (-0.1, 0.17), (-0.9, 0.1)]
)
def test_noise_that_lasts_is_trusted_more(correlation: float, gain: float) -> None:
    found = _filtered(replace(KNOWN, variance=0.0, correlation=correlation), 0.05)
    assert found.offset == pytest.approx(gain * math.expm1(0.05))


def test_the_first_sample_is_as_sure_as_its_noise() -> None:
    found = _filtered(Estimate(slope=2.0, caps=(-1.0,), noise=0.04), 3.0)
    assert (found.offset, found.variance) == (5.0, 0.04)


def test_another_line_begins_without_a_miss() -> None:
    found = moved(replace(KNOWN, innovation=0.3), offset=1.0, slope=2.0, variance=0.5)
    assert found == replace(KNOWN, offset=1.0, slope=2.0, variance=0.5)


@pytest.mark.parametrize(("miss", "doubted"), [(0.09, False), (0.11, True), (-0.11, True)])
def test_a_sample_near_the_line_raises_no_doubt_about_the_delay(
    miss: float, *, doubted: bool
) -> None:
    """A step down by 1 predicted a level of -1; the line was told so by a model."""
    known = Estimate(offset=0.0, caps=(0.0, 0.0), seen=-1.0)
    found = updated(known, -1.0, -1.0 + miss, shaped=True)
    assert any(found.misfits) is doubted


@pytest.mark.parametrize(
    ("before", "now", "delays", "slopes"),
    [
        (False, False, True, True),
        (True, False, False, True),
        (False, True, False, True),
        (True, True, False, False),
    ],
)
def test_what_a_starved_router_teaches(
    *, before: bool, now: bool, delays: bool, slopes: bool
) -> None:
    known = Estimate(offset=0.0, caps=(0.0, 0.0), seen=0.0, starved=before)
    found = updated(known, 1.0, 3.0, shaped=True, starved=now)
    assert found.starved is now
    assert any(found.misfits) is delays
    assert (found.slope != 1.0) is slopes


@pytest.mark.parametrize(("shaped", "least", "seen"), [(True, 0.0, 0.3), (False, 0.09, None)])
def test_a_sample_that_no_cap_shaped_leaves_doubt(
    *, shaped: bool, least: float, seen: float | None
) -> None:
    found = updated(replace(KNOWN, seen=0.0), 0.0, 0.3, shaped=shaped)
    assert found.seen == seen
    assert (found.variance == pytest.approx(0.09)) is (least > 0)


def test_as_many_caps_are_kept_as_the_longest_delay_needs() -> None:
    estimate = Estimate()
    for k in range(10):
        estimate = updated(estimate, float(k), 0.0, shaped=True)
    assert estimate.caps == (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0)
