"""Gains by pole placement: the paper's to its digits, and the loops that they make."""

import cmath
import math
from typing import Any

import control
import numpy as np
import pytest

from training.design import gains as module
from training.design.gains import (
    Loop,
    as_row,
    design,
    gains_of,
    largest_gain,
    loop_of,
    placed,
    poles_of,
)
from training.errors import DesignError

A, B = 0.0915, 63.0051
PAPER_PI = (-1.747e-3, 11.311e-3)
PAPER_DEAD_BEAT = (1.452e-3, 14.419e-3)


def radii(g: float, a: float, b: float, kp: float, ki: float) -> float:
    roots = np.roots([1, (kp + ki) * b * g - (a + 1), a - kp * b * g])
    return float(np.abs(roots).max())


def test_the_papers_pi_gains_come_out_of_5_s_and_8_percent_to_every_printed_digit() -> None:
    found = design(A, B, settling_s=5.0, overshoot=0.08).pi
    assert (round(found.kp, 6), round(found.ki, 6)) == PAPER_PI
    assert [pole.radius for pole in found.poles] == pytest.approx([0.449, 0.449])


def test_the_papers_dead_beat_gains_come_out_to_every_printed_digit() -> None:
    found = design(A, B).dead_beat
    assert (round(found.kp, 6), round(found.ki, 6)) == PAPER_DEAD_BEAT


def test_the_papers_loop_settles_in_5_s_by_its_own_equations_and_not_in_10() -> None:
    loop = loop_of(A, B, PAPER_PI)
    assert loop.settling_s == 5.0
    assert all(abs(value - 1) <= 0.02 for value in loop.step[5:])
    assert abs(loop.step[4] - 1) > 0.02
    assert loop.overshoot == pytest.approx(0.084, abs=1e-3)


def test_dead_beat_reaches_the_setpoint_after_one_sample_and_stays() -> None:
    loop = design(A, B).dead_beat
    assert loop.step[0] == 0
    assert loop.step[1:] == pytest.approx([1.0] * (len(loop.step) - 1))
    assert (loop.settling_s, loop.overshoot) == (1.0, pytest.approx(0.0, abs=1e-12))
    assert sorted(p.radius for p in loop.poles) == pytest.approx([0.0, A], abs=1e-9)
    assert loop.zero == pytest.approx(A)


def test_both_poles_in_the_origin_would_be_slower_than_the_papers_dead_beat() -> None:
    loop = loop_of(A, B, gains_of(A, B, (0j, 0j)))
    assert loop.settling_s == 2.0
    assert loop.overshoot == pytest.approx(A)
    assert loop.ki == pytest.approx(1 / B)


@pytest.mark.parametrize("gains", [PAPER_PI, PAPER_DEAD_BEAT, (0.0, 5e-3), (5e-3, 1e-3)])
def test_the_largest_gain_is_where_the_poles_leave_the_circle(gains: tuple[float, float]) -> None:
    limit = largest_gain(A, B, *gains)
    assert radii(0.999 * limit, A, B, *gains) < 1 < radii(1.001 * limit, A, B, *gains)
    for factor in (1e-3, 0.1, 0.5, 0.9):
        assert radii(factor * limit, A, B, *gains) < 1


def test_dead_beat_bears_twice_the_gain_and_pi_four_times() -> None:
    found = design(A, B)
    assert found.dead_beat.largest_gain == pytest.approx(2.0)
    assert found.pi.largest_gain == pytest.approx(4.43, abs=0.01)


@pytest.mark.parametrize("spec", [(30.0, 0.02), (20.0, 0.0)])
def test_the_gain_margin_agrees_with_the_librarys_where_it_sees_one(
    spec: tuple[float, float],
) -> None:
    """It does not see a loop leave the circle at z = -1, as the paper's loops do."""
    kp, ki = gains_of(A, B, poles_of(*spec))
    opened = control.tf([kp + ki, -kp], [1, -1], 1.0) * control.tf([B], [1, -A], 1.0)
    assert control.margin(opened)[0] == pytest.approx(largest_gain(A, B, kp, ki), rel=1e-6)


def test_the_phase_margin_is_the_textbooks() -> None:
    """F = 1/z opens to 1/(z - 1), which has gain 1 at 60 degrees, with 60 degrees to spare."""
    assert design(A, B).dead_beat.phase_margin_deg == pytest.approx(60.0, abs=1e-3)
    assert loop_of(A, B, PAPER_PI).phase_margin_deg == pytest.approx(58.333, abs=1e-3)


@pytest.mark.parametrize("a", [0.0, 0.0915, 0.5, 0.9])
@pytest.mark.parametrize("spec", [(1.0, 0.0), (3.0, 0.01), (5.0, 0.08), (20.0, 0.3), (1000.0, 0.0)])
def test_the_closed_loop_has_the_poles_that_were_asked_for(
    a: float, spec: tuple[float, float]
) -> None:
    wanted = poles_of(*spec)
    loop = loop_of(a, B, gains_of(a, B, wanted))
    for pole in loop.poles:
        at = complex(pole.re, pole.im)
        assert min(abs(at - w) for w in wanted) < 1e-5


@pytest.mark.parametrize(
    "poles", [(0j, 0j), (0.449 + 0j, 0.449 + 0j), (0.2 + 0j, 0.5 + 0j), poles_of(5, 0.08)]
)
def test_the_librarys_placement_agrees_with_the_algebra(poles: tuple[complex, complex]) -> None:
    assert placed(A, B, poles) == pytest.approx(gains_of(A, B, poles), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
def test_whatever_shape_the_library_gives_its_gains_are_a_row(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert as_row(np.array([1.0, 2.0]).reshape(shape)).shape == (1, 2)
    genuine = control.place_acker

    def shaped(*args: Any) -> Any:
        return np.asarray(genuine(*args)).reshape(shape)

    monkeypatch.setattr(module.control, "place_acker", shaped)
    assert placed(A, B, (0j, 0j)) == pytest.approx(gains_of(A, B, (0j, 0j)))


def test_slower_specifications_settle_later_about_when_they_say() -> None:
    for wanted in (3.0, 5.0, 10.0, 30.0):
        assert design(A, B, settling_s=wanted, overshoot=0.02).pi.settling_s <= 1.5 * wanted + 1


def test_on_a_fast_host_a_slow_loop_bears_less_gain_and_says_so() -> None:
    """Slow poles on a host without lag take a negative Kp, which undoes part of Ki at once."""
    slow, fast = (design(A, B, settling_s=s, overshoot=0.02).pi for s in (30.0, 3.0))
    assert slow.kp < 0
    assert slow.largest_gain < 1.5 < fast.largest_gain


def test_the_period_scales_the_time_and_not_the_loop() -> None:
    slow, fast = (design(A, B, settling_s=5 * period, period_s=period).pi for period in (1.0, 0.1))
    assert (slow.kp, slow.ki) == (fast.kp, fast.ki)
    assert fast.settling_s == pytest.approx(slow.settling_s / 10)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("a", {"a": 1.0}),
        ("a", {"a": math.nan}),
        ("b", {"b": 0.0}),
        ("b", {"b": math.nan}),
        ("settling_s", {"settling_s": 0.0}),
        ("settling_s", {"settling_s": math.nan}),
        ("settling_s", {"settling_s": 0.5, "overshoot": 0.5}),
        ("overshoot", {"overshoot": 1.0}),
        ("period_s", {"period_s": math.inf}),
    ],
)
def test_what_cannot_be_met_is_refused_with_a_way_out(
    field: str, arguments: dict[str, float]
) -> None:
    with pytest.raises(DesignError) as caught:
        design(**({"a": A, "b": B} | arguments))  # type: ignore[arg-type]
    assert caught.value.field == field
    assert caught.value.fix


@pytest.mark.parametrize("seconds", [2e4, 1e9, 1e300])
def test_a_specification_too_slow_to_be_a_loop_names_the_time(seconds: float) -> None:
    with pytest.raises(DesignError, match="does not settle within") as caught:
        design(A, B, settling_s=seconds)
    assert caught.value.field == "settling_s"
    assert design(A, B, settling_s=float(caught.value.fix.split()[1])).pi.settling_s > 0


def test_an_error_can_be_told_as_it_was_typed() -> None:
    with pytest.raises(DesignError) as caught:
        poles_of(0.1, 0.08)
    assert str(caught.value).startswith("settling_s: 0.1 s swings faster than samples come")
    typed = caught.value.typed("--settling", "100ms")
    assert str(typed).startswith("--settling: 100ms swings faster than samples come (allow ")


def test_unstable_and_endless_loops_are_refused() -> None:
    with pytest.raises(DesignError, match="unstable"):
        loop_of(A, B, (0.0, 1.0))
    with pytest.raises(DesignError, match="not settle"):
        loop_of(A, B, (0.0, 1e-9))
    with pytest.raises(DesignError, match="conjugate"):
        gains_of(A, B, (0.5j, 0.2 + 0j))


def test_a_loop_that_would_swing_faster_than_samples_come_is_told_the_least_time() -> None:
    with pytest.raises(DesignError) as caught:
        poles_of(1.0, 0.5)
    least = float(caught.value.fix.split()[1])
    assert isinstance(loop_of(A, B, gains_of(A, B, poles_of(least * 1.05, 0.5))), Loop)


def test_poles_are_at_the_radius_and_angle_of_the_textbook() -> None:
    pole, _ = poles_of(5.0, 0.08)
    assert abs(pole) == pytest.approx(math.exp(-0.8), abs=5e-4)
    assert cmath.phase(pole) == pytest.approx(math.pi * 0.8 / -math.log(0.08), abs=5e-4)


@pytest.mark.parametrize("period", [0.1, 0.2, 1.0, 2.0, 60.0])
def test_margins_do_not_depend_on_how_long_a_sample_is(period: float) -> None:
    found = design(0.6, 25, settling_s=5 * period, overshoot=0.08, period_s=period)
    assert found.pi.phase_margin_deg == pytest.approx(42.05, abs=0.05)
    assert found.dead_beat.phase_margin_deg == pytest.approx(60.0, abs=0.05)
