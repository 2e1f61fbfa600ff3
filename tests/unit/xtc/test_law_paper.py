"""Eq. 2 as published: to the digit, in its linear loop, and where it stalls."""

import math

import control
import numpy as np
import pytest

from common.errors import ConfigError
from common.units import CapFraction, PacketsPerSecond
from models import ControlGains, HostModel, paper_host
from xtc.control.law import (
    DEAD_BEAT,
    DEAD_BEAT_MIN3,
    PI,
    Bounds,
    PaperGains,
    PaperLaw,
    PaperState,
    Reason,
    Sample,
)
from xtc.control.laws import NAMES, law_named
from xtc.simulation.closed_loop import Scenario, SecondOfRun, run
from xtc.simulation.plant import Plant

XEN = Bounds(CapFraction(0.01), CapFraction(1.0))


def _sample(kilo: float, cap: float = 0.1) -> Sample:
    return Sample(PacketsPerSecond(kilo * 1e3), CapFraction(cap))


def _on_the_paper_host(law: PaperLaw, kilo: float) -> list[SecondOfRun]:
    host = paper_host()
    plant = Plant(host.curve, PacketsPerSecond(100e3), host.lag)
    return run(plant, law, Scenario(PacketsPerSecond(kilo * 1e3), bounds=XEN))


def test_the_gains_are_the_printed_ones() -> None:
    assert (PI.kp, PI.ki) == (-1.747e-3, 11.311e-3)
    assert (DEAD_BEAT.kp, DEAD_BEAT.ki) == (1.452e-3, 14.419e-3)
    assert (DEAD_BEAT.min_cap, DEAD_BEAT_MIN3.min_cap) == (0.01, 0.03)
    assert {PI.dead_zone, DEAD_BEAT.dead_zone, DEAD_BEAT_MIN3.dead_zone} == {0.10}


def test_eq_2_by_hand() -> None:
    """Setpoint 40: errors 8, then 1.6 in the dead zone of 4, then 10; caps 12, 12, 15."""
    law = PaperLaw(PI)
    setpoint = PacketsPerSecond(40e3)
    state = law.start(CapFraction(0.10))
    assert state == PaperState(1.0, 0.0)
    # u = 1 + (-1.747e-3 + 11.311e-3)·8 = 1.076512, and 10**u = 11.93
    state, decision = law.step(state, setpoint, _sample(32.0), XEN)
    assert (decision.cap, decision.reason) == (0.12, Reason.ACT)
    assert state == PaperState(math.log10(12), 8.0)
    state, decision = law.step(state, setpoint, _sample(38.4), XEN)
    assert (round(decision.cap, 12), decision.reason) == (0.12, Reason.DEAD_ZONE)
    assert state.error == pytest.approx(1.6)
    # u = log10(12) + 9.564e-3·10 + 1.747e-3·1.6 = 1.177616, and 10**u = 15.05
    state, decision = law.step(state, setpoint, _sample(30.0), XEN)
    assert decision.cap == 0.15
    assert state == PaperState(math.log10(15), 10.0)


def test_eq_2_downwards_by_hand() -> None:
    """u = log10(30) + 15.871e-3·(-20) = 1.159701: cap 14, after which Kp takes 20 back."""
    law = PaperLaw(DEAD_BEAT)
    state = law.start(CapFraction(0.30))
    state, decision = law.step(state, PacketsPerSecond(50e3), _sample(70.0), XEN)
    assert decision.cap == 0.14
    # u = log10(14) + 15.871e-3·6 - 1.452e-3·(-20) = 1.270394, and 10**u = 18.64
    _, decision = law.step(state, PacketsPerSecond(50e3), _sample(44.0), XEN)
    assert decision.cap == 0.19


@pytest.mark.parametrize(("kilo", "reason"), [(44.0, Reason.DEAD_ZONE), (44.1, Reason.ACT)])
def test_the_dead_zone_is_a_tenth_of_the_setpoint_edge_included(
    kilo: float, reason: Reason
) -> None:
    law = PaperLaw(PI)
    _, decision = law.step(law.start(CapFraction(0.13)), PacketsPerSecond(40e3), _sample(kilo), XEN)
    assert decision.reason is reason


@pytest.mark.parametrize("kilo", [0.0, 1e-9, 1e9])
@pytest.mark.parametrize("gains", [PI, DEAD_BEAT, DEAD_BEAT_MIN3])
def test_caps_are_whole_percents_within_bounds(gains: PaperGains, kilo: float) -> None:
    law = PaperLaw(gains)
    bounds = Bounds(CapFraction(0.045), CapFraction(0.555))
    state = law.start(None)
    for _ in range(5):
        state, decision = law.step(state, PacketsPerSecond(1e9), _sample(kilo), bounds)
        assert 0.05 <= decision.cap <= 0.55
        assert decision.cap * 100 == pytest.approx(round(decision.cap * 100), abs=1e-9)


def test_the_dead_zone_maintains_no_cap_that_is_out_of_bounds() -> None:
    law = PaperLaw(PI)
    bounds = Bounds(CapFraction(0.05), CapFraction(0.50))
    _, decision = law.step(law.start(None), PacketsPerSecond(40e3), _sample(40.0), bounds)
    assert decision.cap == 0.50


@pytest.mark.parametrize("kilo", [3.0, 5.0, 10.0, 15.0, 18.0])
def test_pi_is_stuck_at_cap_1_below_20(kilo: float) -> None:
    assert {s.next_cap for s in _on_the_paper_host(PaperLaw(PI), kilo)} == {0.01}


def test_pi_moves_at_20() -> None:
    samples = _on_the_paper_host(PaperLaw(PI), 20.0)
    assert [round(s.next_cap * 100) for s in samples[:7]] == [1, 2, 3, 4, 5, 6, 6]
    assert samples[-1].throughput_pps == pytest.approx(20e3, rel=0.1)


@pytest.mark.parametrize("kilo", [3.0, 5.0, 10.0, 14.0])
def test_dead_beat_is_stuck_at_cap_1_below_15(kilo: float) -> None:
    assert {s.next_cap for s in _on_the_paper_host(PaperLaw(DEAD_BEAT), kilo)} == {0.01}


def test_dead_beat_leaves_cap_1_at_15_and_stops_short_of_it() -> None:
    """Cap 4 gives 12.8 kp/s: the increment to cap 5 rounds to nothing."""
    last = _on_the_paper_host(PaperLaw(DEAD_BEAT), 15.0)[-1]
    assert round(last.next_cap * 100) == 4
    assert last.throughput_pps == pytest.approx(12_800)


@pytest.mark.parametrize("kilo", [3.0, 5.0, 8.0])
def test_a_minimum_cap_of_3_cannot_go_below_10(kilo: float) -> None:
    last = _on_the_paper_host(PaperLaw(DEAD_BEAT_MIN3), kilo)[-1]
    assert last.next_cap == pytest.approx(0.03)
    assert last.throughput_pps == pytest.approx(9600)


def test_the_dead_zone_leaves_an_error_of_up_to_its_width() -> None:
    last = _on_the_paper_host(PaperLaw(DEAD_BEAT_MIN3), 90.0)[-1]
    assert last.reason is Reason.DEAD_ZONE
    assert last.throughput_pps == pytest.approx(98e3, rel=1e-3)


def _closed_loop(gains: PaperGains) -> control.TransferFunction:
    """Eq. 3: Eq. 2 around Eq. 1, both as transfer functions of z."""
    model = paper_host().log_model
    assert model is not None
    law = control.tf([gains.kp + gains.ki, -gains.kp], [1, -1], 1.0)
    return control.feedback(law * control.tf([model.b], [1, -model.a], 1.0), 1)


def test_the_poles_of_pi() -> None:
    poles = sorted(control.poles(_closed_loop(PI)), key=lambda pole: pole.imag)
    assert poles == pytest.approx([0.2445 - 0.3766j, 0.2445 + 0.3766j], abs=5e-5)


def test_dead_beat_answers_the_setpoint_as_1_over_z() -> None:
    """Of the poles 0 and a, the zero of Eq. 3 cancels a: F(z) = 1/z, to the printed digits.

    The paper says that all poles are at the origin; that holds for F(z) only. A disturbance still
    dies out with the pole a.
    """
    loop = _closed_loop(DEAD_BEAT)
    a = paper_host().lag
    assert sorted(abs(control.poles(loop))) == pytest.approx([0.0, a], abs=3e-4)
    assert control.zeros(loop) == pytest.approx([a], abs=3e-4)
    assert control.poles(control.minreal(loop, tol=1e-3, verbose=False)) == pytest.approx(
        [0.0], abs=3e-4
    )


@pytest.mark.parametrize(("gains", "samples"), [(PI, 5), (DEAD_BEAT, 1)])
def test_the_linear_loop_settles_to_2_percent(gains: PaperGains, samples: int) -> None:
    _, output = control.step_response(_closed_loop(gains), 30)
    outside = np.flatnonzero(np.abs(output - 1) > 0.02)
    assert outside[-1] + 1 == samples


def test_laws_by_name() -> None:
    assert law_named("pi") == PaperLaw(PI)
    assert law_named("dead-beat") == PaperLaw(DEAD_BEAT)
    assert law_named("dead-beat-min3") == PaperLaw(DEAD_BEAT_MIN3)
    with pytest.raises(ConfigError, match=r"router\.a\.law: there is no law 'pid'"):
        law_named("pid", where="router.a.law")
    for name in NAMES:
        assert law_named(name, paper_host()) == law_named(name, paper_host())


def test_a_model_brings_its_own_gains() -> None:
    own = ControlGains(kp=1e-3, ki=2e-3, dead_zone=0.05, min_cap=0.02)
    model = HostModel(name="own", log_model=paper_host().log_model, pi=own, dead_beat=own)
    assert law_named("pi", model) == PaperLaw(PaperGains(1e-3, 2e-3, 0.05, CapFraction(0.02)))
    assert law_named("dead-beat-min3", model) == PaperLaw(
        PaperGains(1e-3, 2e-3, 0.05, CapFraction(0.03))
    )


def test_an_uncapped_router_begins_at_one_whole_cpu() -> None:
    assert PaperLaw(PI).start(None) == PaperState(2.0, 0.0)


@pytest.mark.parametrize(
    ("floor", "cap", "percent"),
    [(0.001, 0.001, 1), (0.01, 0.004, 1), (0.031, 0.02, 4), (0.07, 0.02, 7), (0.07, 0.29, 29)],
)
def test_a_law_begins_at_a_whole_percent_not_below_its_minimum(
    floor: float, cap: float, percent: int
) -> None:
    law = PaperLaw(PaperGains(1e-3, 1e-2, min_cap=CapFraction(floor)))
    assert law.start(CapFraction(cap)).log_cap == pytest.approx(math.log10(percent))


@pytest.mark.parametrize(
    ("floor", "ceiling", "kilo", "percent"),
    [
        (0.0, 64.0, 0.0, 6400),  # far below any setpoint: all that there is
        (0.0, 0.29, 0.0, 29),
        (0.0, 0.299, 0.0, 29),
        (0.0, 0.001, 0.0, 1),
        (0.0, 1.0, 1e9, 1),
        (0.07, 1.0, 1e9, 7),
        (0.071, 1.0, 1e9, 8),
    ],
)
def test_the_bounds_are_whole_percents_within_those_given(
    floor: float, ceiling: float, kilo: float, percent: int
) -> None:
    law = PaperLaw(PaperGains(1e-3, 1e-2))
    bounds = Bounds(CapFraction(floor), CapFraction(ceiling))
    _, decision = law.step(law.start(None), PacketsPerSecond(1e9), _sample(kilo), bounds)
    assert decision.cap == pytest.approx(percent / 100)


@pytest.mark.parametrize(("cap", "clamped"), [(0.1, 0.2), (0.2, 0.2), (0.3, 0.3), (0.9, 0.8)])
def test_bounds_draw_a_cap_in(cap: float, clamped: float) -> None:
    assert Bounds(CapFraction(0.2), CapFraction(0.8)).clamp(cap) == clamped


def test_the_dead_zone_remembers_the_cap_that_it_keeps() -> None:
    law = PaperLaw(PI)
    bounds = Bounds(CapFraction(0.05), CapFraction(0.50))
    state, _ = law.step(law.start(None), PacketsPerSecond(40e3), _sample(38.0), bounds)
    assert state == PaperState(math.log10(50), 2.0)
