"""What holds of the laws on every concave router and whatever the samples say."""

import math
from typing import Any

import pytest
from concave_loop import (
    BOUNDS,
    CAPS,
    RATES,
    WALKS,
    Case,
    Walk,
    cases,
    loop,
    plant,
    way_down,
)
from hypothesis import assume, example, given
from hypothesis import strategies as st

from common.units import CapFraction, PacketsPerSecond
from models import ThroughputCurve, bundled_host
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.law import DEAD_BEAT, DEAD_BEAT_MIN3, PI, Law, PaperLaw, Reason, Sample
from xtc.simulation.closed_loop import BAND
from xtc.simulation.plant import Plant

PAPER = bundled_host("paper")
LAWS: tuple[Law[Any], ...] = (
    AdaptiveLaw(),
    AdaptiveLaw(curve=PAPER.curve, lag=PAPER.lag),
    AdaptiveLaw(delay=2, lag=0.5),
    PaperLaw(PI),
    PaperLaw(DEAD_BEAT),
    PaperLaw(DEAD_BEAT_MIN3),
)


@given(cases(), CAPS)
def test_untrained_it_converges_on_every_concave_router_and_stays(
    case: Case, start: CapFraction
) -> None:
    bound = 20 + 2 * way_down(case, start)
    run = loop([plant(case)] * (math.ceil(bound) + 60), AdaptiveLaw(), case.setpoint, start)
    assert run.settling(case.setpoint) <= bound


@given(cases(), CAPS, st.floats(0.0, 0.3))
def test_trained_it_converges_within_10_samples_from_anywhere(
    case: Case, start: CapFraction, lag: float
) -> None:
    law = AdaptiveLaw(curve=case.curve, lag=lag)
    run = loop([plant(case, lag=lag)] * 60, law, case.setpoint, start)
    assert run.settling(case.setpoint) <= 10


@given(cases(), CAPS)
def test_trained_without_lag_it_converges_in_one_step(case: Case, start: CapFraction) -> None:
    law = AdaptiveLaw(curve=case.curve)
    run = loop([plant(case)] * 60, law, case.setpoint, start)
    assert run.settling(case.setpoint) <= 1


@given(cases(share=(0.3, 0.9)), st.floats(0.75, 1.3), CAPS)
def test_a_model_that_is_a_quarter_wrong_still_converges(
    case: Case, gain: float, start: CapFraction
) -> None:
    """As from an untrained start: a wrong model must do no lasting harm."""
    bound = 20 + 2 * way_down(case, 1.0)
    law = AdaptiveLaw(curve=case.curve)
    assume(gain * case.curve.throughput(1.0) >= 1.01 * case.setpoint)
    run = loop([plant(case, gain=gain)] * (math.ceil(bound) + 60), law, case.setpoint, start)
    assert run.settling(case.setpoint) <= bound


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@given(walk=WALKS)
def test_whatever_the_samples_the_cap_is_finite_and_within_bounds(
    law: Law[Any], walk: Walk
) -> None:
    for _, decision in walk.along(law):
        assert walk.bounds.floor <= decision.cap <= walk.bounds.ceiling


@given(
    law=st.sampled_from(LAWS),
    start=CAPS,
    setpoint=st.floats(1.0, 1e8),
    rates=st.tuples(RATES, RATES).map(sorted),
)
def test_less_throughput_never_yields_less_cap_in_the_first_step(
    law: Law[Any], start: CapFraction, setpoint: PacketsPerSecond, rates: list[float]
) -> None:
    low, high = (
        law.step(
            law.start(start), setpoint, Sample(PacketsPerSecond(y), start, binding=True), BOUNDS
        )[1].cap
        for y in rates
    )
    assert low >= high * (1 - 1e-12)


@given(cases(share=(0.3, 0.95)), st.floats(0.05, 0.9), st.integers(1, 200))
@example(Case(ThroughputCurve(((0.5, 5e5), (1.0, 1e6))), PacketsPerSecond(5e5)), 0.5, 200)
def test_no_wind_up_at_the_ceiling(case: Case, reach: float, saturated: int) -> None:
    """A router that was too slow for long is back as soon as one that starts at the ceiling.

    Not within one sample of it on a flat top: the jump of the throughput counts as noise for a
    while, so that the way down, which has no more than the excess to go by, takes up to 3 times.
    """
    slow = plant(case, gain=reach * case.setpoint / case.curve.throughput(1.0))
    able = [plant(case)] * 200
    ceiling = BOUNDS.ceiling
    fresh = loop(able, AdaptiveLaw(), case.setpoint, ceiling).settling(case.setpoint)
    run = loop([slow] * saturated + able, AdaptiveLaw(), case.setpoint, ceiling)
    assert run.settling(case.setpoint, begin=saturated) <= 3 * fresh + 2


@given(st.floats(0.05, 0.9), st.integers(1, 200), st.floats(1e4, 1e7))
def test_no_wind_up_on_a_linear_router_costs_at_most_three_samples(
    share: float, saturated: int, speed: float
) -> None:
    case = Case(
        ThroughputCurve(((0.5, 0.5 * speed), (1.0, speed))), PacketsPerSecond(share * speed)
    )
    able = [plant(case)] * 60
    fresh = loop(able, AdaptiveLaw(), case.setpoint, BOUNDS.ceiling).settling(case.setpoint)
    slow = [plant(case, gain=share * 0.7)] * saturated
    run = loop(slow + able, AdaptiveLaw(), case.setpoint, BOUNDS.ceiling)
    assert run.settling(case.setpoint, begin=saturated) <= fresh + 3


@given(
    law=st.sampled_from(LAWS[:3]),
    cap=CAPS,
    rates=st.lists(st.floats(0.0, 0.999), min_size=1, max_size=60),
)
def test_a_cap_that_does_not_bind_is_held_however_long(
    law: Law[Any], cap: CapFraction, rates: list[float]
) -> None:
    setpoint = PacketsPerSecond(2e4)
    state = law.start(cap)
    for rate in rates:
        sample = Sample(PacketsPerSecond(rate * setpoint), cap, binding=False)
        state, decision = law.step(state, setpoint, sample, BOUNDS)
        assert (decision.cap, decision.reason) == (cap, Reason.NOT_BINDING)


@given(cases(share=(0.1, 0.95)), st.integers(1, 300))
def test_a_lull_of_any_length_leaves_no_mark(case: Case, lull: int) -> None:
    """Offered load returns after a lull: the first sample is at the setpoint as if none was."""
    start = CapFraction(case.target)
    able = plant(case)
    idle = Plant(case.curve, PacketsPerSecond(0.3 * case.setpoint))
    run = loop([able] * 20 + [idle] * lull + [able] * 20, AdaptiveLaw(), case.setpoint, start)
    assert run.rates[20 + lull :] == pytest.approx([case.setpoint] * 20, rel=BAND)


@given(cases(share=(0.05, 0.95)))
def test_at_rest_the_cap_rests(case: Case) -> None:
    start = CapFraction(case.target)
    run = loop([plant(case)] * 60, AdaptiveLaw(), case.setpoint, start)
    assert run.rates == pytest.approx([case.setpoint] * 60, rel=0.01)


@given(cases(share=(0.1, 0.9)), st.floats(0.998, 1.002))
def test_a_retune_by_nearly_nothing_moves_the_cap_by_nearly_nothing(
    case: Case, ratio: float
) -> None:
    """Bumpless: by no more than the elasticity's smallest trusted value, 0.4, can ask for."""
    law, cap = AdaptiveLaw(curve=case.curve), CapFraction(case.target)
    state = law.start(cap)
    for _ in range(20):
        sample = Sample(PacketsPerSecond(case.curve.throughput(cap)), cap, binding=True)
        state, decision = law.step(state, case.setpoint, sample, BOUNDS)
        cap = decision.cap
    sample = Sample(PacketsPerSecond(case.curve.throughput(cap)), cap, binding=True)
    kept = law.step(state, case.setpoint, sample, BOUNDS)[1].cap
    retuned = law.step(state, PacketsPerSecond(case.setpoint * ratio), sample, BOUNDS)[1].cap
    needed = case.curve.cap_for(min(case.setpoint * ratio, case.curve.top)) / case.target
    assert (
        abs(math.log(retuned / kept)) <= abs(math.log(needed)) + abs(math.log(ratio)) / 0.4 + 1e-6
    )
