"""Designs number by number: poles, steps and margins by hand, every bound from both sides."""

import cmath
import math

import control
import pytest

from training.design import gains as module
from training.design.gains import Loop, Pole, design, gains_of, largest_gain, loop_of, poles_of
from training.errors import DesignError

A, B = 0.0915, 63.0


def pole_of(settling_s: float, overshoot: float, period_s: float = 1.0) -> tuple[float, float]:
    pole, conjugate = poles_of(settling_s, overshoot, period_s)
    assert conjugate == pole.conjugate()
    return abs(pole), cmath.phase(pole)


@pytest.mark.parametrize(
    ("spec", "radius", "angle"),
    [
        ((5.0, 0.08), 0.449, 0.995),  # three digits, as the paper's
        ((5.0, 0.0), 0.449, 0.0),
        ((0.5, 0.08, 0.1), 0.449, 0.995),
        ((395.0, 0.0), 0.990, 0.0),
        ((400.0, 0.0), math.exp(-0.01), 0.0),  # from a radius of 0.99 on, all of them
        ((4e4, 0.5), math.exp(-1e-4), math.pi * 1e-4 / math.log(2)),
    ],
)
def test_poles_have_three_digits_below_a_radius_of_0_99(
    spec: tuple[float, ...], radius: float, angle: float
) -> None:
    assert pole_of(*spec) == pytest.approx((radius, angle), abs=1e-11)


@pytest.mark.parametrize(("overshoot", "least"), [(0.5, 5.7708), (0.08, 1.58369)])
def test_the_least_time_to_settle_in_is_where_the_angle_is_pi(
    overshoot: float, least: float
) -> None:
    assert pole_of(1.001 * least, overshoot)[1] == pytest.approx(math.pi, rel=2e-3)
    for period in (1.0, 0.1):
        with pytest.raises(DesignError) as caught:
            poles_of(0.999 * least * period, overshoot, period)
        assert caught.value.fix == f"allow {least * period:.3g} s or less overshoot"


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("settling_s", (0.0, 0.08)),
        ("settling_s", (-1.0, 0.08)),
        ("settling_s", (math.inf, 0.08)),
        ("overshoot", (5.0, -1e-9)),
        ("overshoot", (5.0, 1.0)),
        ("overshoot", (5.0, math.nan)),
    ],
)
def test_a_specification_out_of_bounds_is_named(field: str, spec: tuple[float, float]) -> None:
    with pytest.raises(DesignError) as caught:
        poles_of(*spec)
    assert caught.value.field == field


def test_a_specification_on_its_bounds_has_poles() -> None:
    assert pole_of(1e-3, 0.0) == (0.0, 0.0)
    assert pole_of(1e6, 0.999)[0] < 1
    assert pole_of(5.0, 1e-300)[1] == pytest.approx(0.004, abs=1e-3)


@pytest.mark.parametrize(
    ("field", "host"),
    [
        ("a", (-1e-9, B, 1.0)),
        ("a", (1.0, B, 1.0)),
        ("b", (A, 0.0, 1.0)),
        ("b", (A, -1.0, 1.0)),
        ("b", (A, math.inf, 1.0)),
        ("period_s", (A, B, 0.0)),
        ("period_s", (A, B, -1.0)),
        ("period_s", (A, B, math.nan)),
    ],
)
def test_a_host_out_of_bounds_is_named(field: str, host: tuple[float, float, float]) -> None:
    with pytest.raises(DesignError) as caught:
        design(host[0], host[1], period_s=host[2], settling_s=5 * (abs(host[2]) or 1.0))
    assert caught.value.field == field


def test_a_design_says_what_it_was_made_from() -> None:
    found = design(0.0, 2.0)
    assert (found.a, found.b, found.period_s) == (0.0, 2.0, 1.0)
    assert (found.wanted_settling_s, found.wanted_overshoot) == (5.0, 0.08)
    other = design(0.5, 3.0, settling_s=0.9, overshoot=0.0, period_s=0.1)
    assert (other.a, other.b, other.period_s) == (0.5, 3.0, 0.1)
    assert (other.wanted_settling_s, other.wanted_overshoot) == (0.9, 0.0)
    assert (other.dead_beat.kp, other.dead_beat.ki) == pytest.approx((0.5 / 3, 0.5 / 3))
    assert other.dead_beat.settling_s == pytest.approx(0.1)


def test_gains_are_those_of_the_denominator() -> None:
    # (z - 0.2)(z - 0.5) = z² - 0.7z + 0.1
    assert gains_of(0.3, 2.0, (0.2 + 0j, 0.5 + 0j)) == pytest.approx((0.1, 0.2))
    # (z - 0.3)² + 0.4² = z² - 0.6z + 0.25
    assert gains_of(0.3, 2.0, (0.3 + 0.4j, 0.3 - 0.4j)) == pytest.approx((0.025, 0.325))
    for pair in ((0.3 + 0.4j, 0.3 + 0.4j), (0.3 + 0.4j, 0.5 + 0j), (0.4j, 0.4j)):
        with pytest.raises(DesignError, match="conjugate"):
            gains_of(0.3, 2.0, pair)


# On a host without lag, Ki = 0.4 alone leaves six tenths of an error after each sample.
FIRST_ORDER = loop_of(0.0, 1.0, (0.0, 0.4), 0.5)


def test_a_loop_of_first_order_by_hand() -> None:
    loop = FIRST_ORDER
    assert loop.step == pytest.approx([1 - 0.6**n for n in range(17)])
    assert loop.settling_s == 8 * 0.5  # 0.6^8 is within 2 %, 0.6^7 is not
    assert (loop.overshoot, loop.zero) == (0.0, 0.0)
    assert sorted(pole.radius for pole in loop.poles) == pytest.approx([0.0, 0.6])
    assert loop.largest_gain == pytest.approx(5.0)


def test_a_step_is_followed_for_eleven_samples_at_least() -> None:
    assert len(loop_of(0.0, 1.0, (0.0, 1.0)).step) == 11
    assert loop_of(0.0, 1.0, (0.0, 1.0)).settling_s == 1.0


def test_a_loop_that_overshoots_by_hand() -> None:
    loop = loop_of(0.0, 1.0, (0.0, 1.5))
    assert loop.step[:5] == pytest.approx([0.0, 1.5, 0.75, 1.125, 0.9375])
    assert loop.overshoot == pytest.approx(0.5)
    lagging = loop_of(0.5, 2.0, (0.1, 0.2))
    # The law remembers its last error; the host half of its last throughput.
    assert lagging.step[:4] == pytest.approx([0.0, 0.6, 0.94, 1.066])
    assert lagging.zero == pytest.approx(1 / 3)


def test_gains_that_cancel_have_no_zero() -> None:
    assert loop_of(0.5, 1.0, (-0.1, 0.1)).zero is None


@pytest.mark.parametrize(("ki", "settles"), [(7.9e-4, True), (7.7e-4, False)])
def test_a_loop_settles_within_half_of_ten_thousand_samples_or_not_at_all(
    ki: float, settles: bool
) -> None:
    if settles:
        assert loop_of(0.0, 1.0, (0.0, ki)).settling_s == pytest.approx(3.912 / ki, abs=3)
    else:
        with pytest.raises(DesignError, match="does not settle"):
            loop_of(0.0, 1.0, (0.0, ki))


@pytest.mark.parametrize(
    ("host", "gains", "limit"),
    [
        ((0.5, 2.0), (0.1, 0.2), 3.75),
        ((0.5, 2.0), (0.0, 0.2), 7.5),
        ((0.5, 2.0), (-0.1, 0.3), 2.5),
        ((0.5, 2.0), (-0.1, 2.0), 5 / 6),
        ((0.5, 2.0), (-0.1, 0.2), 2.5),  # at z = -1 nothing limits it
        ((0.5, 2.0), (-0.1, 0.1), 2.5),
    ],
)
def test_the_largest_gain_by_hand(
    host: tuple[float, float], gains: tuple[float, float], limit: float
) -> None:
    assert largest_gain(*host, *gains) == pytest.approx(limit)


def test_a_loop_is_refused_from_where_it_is_unstable() -> None:
    assert isinstance(loop_of(0.0, 1.0, (0.0, 1.9)), Loop)
    with pytest.raises(DesignError, match="unstable"):
        loop_of(0.0, 1.0, (0.0, 2.0 + 1e-9))
    with pytest.raises(DesignError, match="unstable"):
        loop_of(0.0, 1.0, (0.0, -0.1))


def test_margins_of_phase_by_hand() -> None:
    # 0.4/(z - 1) has gain 1 where 2·sin(w/2) = 0.4; its phase there is -90° - w/2.
    at = 2 * math.asin(0.2)
    assert FIRST_ORDER.phase_margin_deg == pytest.approx(90 - math.degrees(at / 2), abs=1e-2)
    slow = loop_of(0.0, 1.0, (0.0, 1e-3))
    assert slow.phase_margin_deg == pytest.approx(90 - math.degrees(1e-3 / 2), abs=1e-3)


def test_what_never_has_gain_one_has_all_the_margin() -> None:
    assert module._phase_margin(control.tf([0.5], [1, 0], 1.0)) == 180.0


def test_a_radius_is_of_both_parts() -> None:
    assert Pole(0.3, -0.4).radius == pytest.approx(0.5)


def test_a_loop_too_slow_is_the_fault_of_the_time_asked_for() -> None:
    with pytest.raises(DesignError) as caught:
        design(A, B, settling_s=2e3, period_s=0.1)
    assert (caught.value.field, caught.value.fix) == ("settling_s", "give 100 s or less")
    assert design(A, B, settling_s=100.0, period_s=0.1).pi.settling_s > 50
