"""Each rule of the self-tuning law by hand: on both sides of every bound."""

import math

import pytest

from models import bundled_host
from xtc.law import Bounds, Reason, Sample
from xtc.selftuning import (
    SelfTuningLaw,
    SelfTuningState,
    _decided,
    _gap,
    _move,
    _trusted,
    _with_sample,
    _with_speed,
)
from xtc.tuning import History, Tuning
from xtc.units import CapFraction, PacketsPerSecond

BOUNDS = Bounds(CapFraction(0.01), CapFraction(1.0))
SETPOINT = PacketsPerSecond(20e3)
QUIET = Tuning(noise=0.01)


@pytest.mark.parametrize(
    ("slope", "gap", "trusted"),
    [
        (0.5, 0.29, 0.5),
        (0.5, 0.30, 1.0),
        (0.5, -0.29, 0.75),
        (0.5, -0.30, 1.0),
        (2.0, -0.10, 2.0),
        (2.0, 0.90, 2.0),
        (0.5, 0.0, 0.5),
    ],
)
def test_an_elasticity_below_1_is_trusted_near_and_half_on_the_way_down(
    slope: float, gap: float, trusted: float
) -> None:
    assert _trusted(slope, gap) == trusted


@pytest.mark.parametrize(
    ("wanted", "cap", "reason", "decided"),
    [
        (math.log(0.0099), 0.01, Reason.AT_FLOOR, None),
        (math.log(0.0101), 0.0101, Reason.ACT, 0.0101),
        (0.0, 1.0, Reason.ACT, 1.0),
        (math.log(1.01), 1.0, Reason.AT_CEILING, None),
        (1e9, 1.0, Reason.AT_CEILING, None),
    ],
)
def test_a_cap_at_a_bound_is_none_to_learn_from(
    wanted: float, cap: float, reason: Reason, decided: float | None
) -> None:
    state, decision = _decided(SelfTuningState(Tuning(), decided=0.5), wanted, BOUNDS)
    assert (decision.cap, decision.reason) == (pytest.approx(cap), reason)
    assert state.decided == (None if decided is None else pytest.approx(decided))


@pytest.mark.parametrize(
    ("noise", "before", "error", "setpoint", "speed"),
    [
        (0.0, -0.06, 0.06, 20e3, 0.3),
        (0.0, 0.06, -0.06, 20e3, 0.3),
        (0.0, -0.06, 0.049, 20e3, 0.525),
        (0.0, -0.049, 0.06, 20e3, 0.525),
        (0.0, 0.06, 0.06, 20e3, 0.525),
        (0.0, -0.06, 0.06, 30e3, 0.525),  # a new setpoint's first error is no swing
        (4e-4, -0.11, 0.11, 20e3, 0.3),  # five deviations of 2 %
        (4e-4, -0.11, 0.09, 20e3, 0.525),
    ],
)
def test_a_swing_beyond_the_noise_slows_the_loop_down(
    noise: float, before: float, error: float, setpoint: float, speed: float
) -> None:
    state = SelfTuningState(Tuning(noise=noise), setpoint=20e3, error=before, speed=0.5)
    found = _with_speed(state, error, setpoint)
    assert found.speed == pytest.approx(speed)
    assert (found.error, found.setpoint) == (error, setpoint)


@pytest.mark.parametrize(
    ("speed", "error", "after"), [(0.2, 0.9, 0.15), (0.99, 0.0, 1.0), (0.9, 0.0, 0.945)]
)
def test_the_speed_has_bounds(speed: float, error: float, after: float) -> None:
    state = SelfTuningState(Tuning(), setpoint=1.0, error=-0.9, speed=speed)
    assert _with_speed(state, error, 1.0).speed == pytest.approx(after)


@pytest.mark.parametrize(
    ("rates", "lag", "goes_to"),
    [
        ((1.5,), 0.5, 1.5),
        ((1.5, 1.0), 0.0, 1.5),
        ((1.5, 1.0), 0.5, 2.0),
        ((1.0, 1.9), 0.5, 1 / 3),  # a fall goes on to a third at most
        ((1.0, 1.3), 0.5, 0.7),
    ],
)
def test_where_the_throughput_is_going(
    rates: tuple[float, ...], lag: float, goes_to: float
) -> None:
    state = SelfTuningState(Tuning(lag=lag), history=History(rates, (0.1,) * 4))
    assert _gap(state, 6.0) == pytest.approx(math.log(6.0 / goes_to))


def calm(share: float) -> float:
    return 0.15 + 0.85 * share**4


@pytest.mark.parametrize(
    ("tuning", "gap", "before", "speed", "move"),
    [
        (QUIET, 0.8, 0.0, 1.0, 0.8),  # eight deviations: answered in full
        (QUIET, -0.8, 0.0, 1.0, -0.8),
        (QUIET, 0.8, 0.0, 0.5, 0.4),
        (QUIET, 0.4, 0.0, 1.0, calm(0.5) * -math.expm1(-0.4)),
        (QUIET, -0.4, 0.0, 1.0, calm(0.5) * -math.expm1(0.4)),
        (QUIET, 0.4, 0.2, 1.0, calm(0.8) * -math.expm1(-0.4)),  # the lesser of two, 3.2 times
        (QUIET, 0.4, 0.9, 1.0, 0.4),
        (QUIET, 0.4, -0.2, 1.0, calm(0.5) * -math.expm1(-0.4)),
        (QUIET, 0.0, 0.0, 1.0, 0.0),
        (QUIET, 9.0, 0.0, 1.0, math.log(10)),
        (Tuning(noise=0.01, gain=2.0), 0.8, 0.0, 1.0, 0.4),
        (Tuning(noise=0.01, lag=0.5, gain=0.5), 0.8, 0.0, 1.0, None),
    ],
)
def test_a_gap_is_answered_by_how_clear_it_is(
    tuning: Tuning, gap: float, before: float, speed: float, move: float | None
) -> None:
    if move is None:  # noise counts more where lag is taken out of two samples
        spread = math.sqrt(0.01 * 1.25) / 0.5
        move = calm(0.8 / (8 * spread)) * -math.expm1(-0.8)
    state = SelfTuningState(tuning, gap=before, speed=speed)
    assert _move(state, gap) == pytest.approx(move)


@pytest.mark.parametrize(
    ("cap", "decided", "starved", "samples"),
    [
        (0.1049, 0.1, False, 3),
        (0.1051, 0.1, False, 1),  # another hand put it there
        (0.0951, 0.1, False, 3),
        (0.0949, 0.1, False, 1),
        (0.1, None, False, 1),
        (0.1, 0.1, True, 1),
    ],
)
def test_only_what_follows_from_its_own_caps_is_compared(
    cap: float, decided: float | None, *, starved: bool, samples: int
) -> None:
    history = History((1e3, 1e3), (0.1, 0.1))
    state = SelfTuningState(Tuning(), history=history, decided=decided)
    found = _with_sample(state, 1e3, cap, starved=starved)
    assert len(found.history.rates) == samples
    assert found.history.caps[0] == cap


def stepped(
    throughput: float, cap: float | None, *, law: SelfTuningLaw | None = None, **known: object
) -> tuple[SelfTuningState, float, Reason]:
    law = law or SelfTuningLaw()
    sample = Sample(
        PacketsPerSecond(throughput),
        None if cap is None else CapFraction(cap),
        **known,  # type: ignore[arg-type]
    )
    state, decision = law.step(law.start(sample.cap), SETPOINT, sample, BOUNDS)
    return state, decision.cap, decision.reason


@pytest.mark.parametrize(("throughput", "rate"), [(0.0, 100.0), (99.0, 100.0), (101.0, 101.0)])
def test_under_half_a_percent_of_the_setpoint_is_far_too_little(
    throughput: float, rate: float
) -> None:
    state, cap, _ = stepped(throughput, 0.02)
    assert state.history.rates == (rate,)
    assert cap == pytest.approx(0.2)  # tenfold at most


def test_the_first_step_is_the_ratio() -> None:
    state, cap, reason = stepped(10e3, 0.2)
    assert (cap, reason) == (pytest.approx(0.4), Reason.ACT)
    assert state.gap == pytest.approx(math.log(2))
    assert state.setpoint == SETPOINT


@pytest.mark.parametrize(
    ("throughput", "cap", "used", "decided"),
    [
        (40e3, 0.5, 0.3, 0.15),
        (40e3, 0.3, 0.5, 0.15),
        (40e3, 0.5, None, 0.25),
        (40e3, None, None, 0.5),
        (40e3, None, 0.6, 0.3),
        (20e3, 0.5, 0.3, 0.3),
        (40e3, 0.5, 0.0, 0.01),
    ],
)
def test_above_its_setpoint_a_router_that_no_cap_held_is_capped_by_what_it_used(
    throughput: float, cap: float | None, used: float | None, decided: float
) -> None:
    state, found, _ = stepped(throughput, cap, used=used, binding=False)
    assert found == pytest.approx(decided)
    assert state.history == History()


@pytest.mark.parametrize(
    ("curve", "cap", "decided", "reason"),
    [
        (False, 0.3, 0.3, Reason.NOT_BINDING),
        (False, 3.0, 1.0, Reason.NOT_BINDING),
        (True, 0.3, 0.3, Reason.NOT_BINDING),
        (False, None, 1.0, Reason.NOT_BINDING),
        (True, None, None, Reason.ACT),
    ],
)
def test_below_its_setpoint_it_waits(
    cap: float | None, decided: float | None, reason: Reason, *, curve: bool
) -> None:
    paper = bundled_host("paper").curve
    law = SelfTuningLaw(paper if curve else None)
    _, found, why = stepped(3e3, cap, law=law, binding=False)
    assert (found, why) == (pytest.approx(decided or paper.cap_for(SETPOINT)), reason)


@pytest.mark.parametrize(("lag", "kept"), [(-1.0, 0.0), (0.4, 0.4), (0.99, 0.95)])
def test_it_begins_with_the_trained_lag_and_an_elasticity_of_1(lag: float, kept: float) -> None:
    state = SelfTuningLaw(lag=lag, delay=2).start(CapFraction(0.3))
    assert (state.tuning.lag, state.tuning.gain) == (kept, pytest.approx(1 - kept))
    assert (state.tuning.delay, state.decided) == (2, 0.3)
