"""What holds of the self-tuning law on every concave router, with lag, delay, noise and change."""

import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
from concave_loop import BOUNDS, CAPS, WALKS, Case, Walk, cases, loop, plant, way_down
from hypothesis import assume, given
from hypothesis import strategies as st

from models import ThroughputCurve
from xtc.law import DEAD_BEAT, PI, Bounds, Decision, PaperLaw, Reason, Sample
from xtc.plant import Plant, advanced, settled
from xtc.selftuning import SelfTuningLaw
from xtc.simulate import BAND
from xtc.tuning import DOUBT, GAINS, LAGS, SLOPES
from xtc.units import CapFraction, PacketsPerSecond, Seconds

LAWS = (SelfTuningLaw(), SelfTuningLaw(lag=0.5, delay=2), SelfTuningLaw(lag=0.95))


@given(cases(), CAPS, st.floats(0.0, 0.6))
def test_on_a_constant_router_it_settles_and_its_estimates_stay(
    case: Case, start: CapFraction, lag: float
) -> None:
    bound = math.ceil(20 + 2 * way_down(case, start) + 30 * lag)
    run = loop([plant(case, lag)] * (bound + 120), SelfTuningLaw(), case.setpoint, start)
    assert run.settling(case.setpoint) <= bound
    assert run.states[-1].tuning.lessons == run.states[bound + 40].tuning.lessons
    assert run.states[-1].tuning.lag == run.states[bound + 40].tuning.lag
    assert run.states[-1].tuning.gain == run.states[bound + 40].tuning.gain


@given(st.floats(0.0, 0.5), st.floats(1e4, 1e7), st.integers(0, 1000))
def test_its_estimates_converge_to_the_truth_on_a_linear_router(
    lag: float, speed: float, seed: int
) -> None:
    """Retuned every 15 samples, as an operator or a policer would; steps of a few times teach a
    mean slope that is off by up to a third.
    """
    curve = ThroughputCurve(((0.5, 0.5 * speed), (1.0, speed)))
    router = Plant(curve, PacketsPerSecond(5 * speed), lag)
    random_setpoint = random.Random(seed)
    law, start = SelfTuningLaw(), CapFraction(0.05)
    memory, cap, state = law.start(start), start, settled(router, start)
    for index in range(120):
        if index % 15 == 0:
            setpoint = PacketsPerSecond(speed * random_setpoint.uniform(0.1, 0.6))
        state = advanced(router, state, [cap], Seconds(1.0))
        sample = Sample(state.throughput, cap, router.offered, state.used, state.binding)
        memory, decision = law.step(memory, setpoint, sample, BOUNDS)
        cap = decision.cap
    assert memory.tuning.lag == pytest.approx(lag, abs=0.1)
    assert memory.tuning.slope == pytest.approx(1.0, abs=0.35)


@given(cases(share=(0.1, 0.9)), st.floats(0.0, 0.6), st.sampled_from([0.5, 2.0]))
def test_a_router_that_halves_or_doubles_its_speed_is_followed_within_30_samples(
    case: Case, lag: float, gain: float
) -> None:
    assume(gain * case.curve.throughput(1.0) > 1.05 * case.setpoint)
    assume(gain * case.curve.throughput(BOUNDS.floor) < 0.95 * case.setpoint)
    plants = [plant(case, lag)] * 100 + [plant(case, lag, gain)] * 60
    run = loop(plants, SelfTuningLaw(), case.setpoint)
    assert run.settling(case.setpoint, begin=100) <= 30


@given(cases(share=(0.1, 0.9)), st.floats(0.1, 0.9), st.integers(1, 100))
def test_a_load_below_the_setpoint_is_waited_out_and_teaches_nothing(
    case: Case, share: float, lull: int
) -> None:
    able = plant(case)
    idle = Plant(case.curve, PacketsPerSecond(share * case.setpoint))
    bound = math.ceil(20 + 2 * way_down(case, 0.01))
    run = loop([able] * bound + [idle] * lull + [able] * 20, SelfTuningLaw(), case.setpoint)
    before, after = run.states[bound - 1], run.states[bound + lull - 1]
    assert after.tuning == before.tuning
    assert len(set(run.caps[bound : bound + lull])) == 1
    assert run.rates[bound + lull :] == pytest.approx([case.setpoint] * 20, rel=BAND)


@dataclass(frozen=True)
class FixedGains:
    """The integral law in logarithms with a fixed gain: no one's optimum, but it holds a lot."""

    gain: float

    def start(self, cap: CapFraction | None) -> None:
        """Remember nothing."""

    def step(
        self, state: None, setpoint: PacketsPerSecond, sample: Sample, bounds: Bounds
    ) -> tuple[None, Decision]:
        assert state is None
        assert sample.cap is not None
        ratio = setpoint / max(sample.throughput, 0.01 * setpoint)
        return None, Decision(bounds.clamp(sample.cap * ratio**self.gain), Reason.ACT)


@given(cases(), st.floats(0.0, 0.5), st.integers(0, 1), st.sampled_from([0.2, 0.5, 1.0]))
def test_a_loop_that_fixed_gains_hold_is_held(
    case: Case, lag: float, delay: int, gain: float
) -> None:
    """Also with a delay of one sample that nobody told of."""
    plants = [plant(case, lag)] * 200
    fixed = loop(plants, FixedGains(gain), case.setpoint, delay=delay)
    assume(fixed.settling(case.setpoint) <= 150)
    run = loop(plants, SelfTuningLaw(), case.setpoint, delay=delay)
    assert run.settling(case.setpoint) <= 150


@given(
    cases(share=(0.6, 0.95)),
    st.floats(0.0, 0.5),
    st.integers(0, 1),
    st.sampled_from([PI, DEAD_BEAT]),
)
def test_a_loop_that_the_papers_gains_hold_within_their_dead_zone_is_held_within_5_percent(
    case: Case, lag: float, delay: int, gains: Any
) -> None:
    scale = 1e5 / case.curve.top
    curve = ThroughputCurve(tuple((cap, rate * scale) for cap, rate in case.curve.points))
    plants = [Plant(curve, PacketsPerSecond(5e5), lag)] * 200
    setpoint = case.setpoint * scale
    fixed = loop(plants, PaperLaw(gains), setpoint, delay=delay)
    assume(fixed.settling(setpoint, band=0.10) <= 150)
    run = loop(plants, SelfTuningLaw(), setpoint, delay=delay)
    assert run.settling(setpoint) <= 150


@given(
    case=cases(share=(0.2, 0.95)),
    lag=st.floats(0.0, 0.5),
    noise=st.floats(0.01, 0.1),
    seed=st.integers(0, 10_000),
)
def test_noise_is_never_amplified_beyond_its_own_size(
    case: Case, lag: float, noise: float, seed: int
) -> None:
    """The router's own throughput errs by no more than the meter's noise; median: a third."""
    run = loop([plant(case, lag)] * 300, SelfTuningLaw(), case.setpoint, noise=noise, seed=seed)
    assert run.rmse(case.setpoint, begin=140) <= 1.0 * noise + 0.02


@pytest.mark.parametrize("law", LAWS, ids=["untold", "delayed", "slow"])
@given(walk=WALKS)
def test_whatever_the_samples_the_cap_is_within_bounds_and_the_estimates_too(
    law: SelfTuningLaw, walk: Walk
) -> None:
    for state, decision in walk.along(law):
        assert walk.bounds.floor <= decision.cap <= walk.bounds.ceiling
        tuning = state.tuning
        assert LAGS[0] <= tuning.lag <= LAGS[1]
        assert SLOPES[0] <= tuning.slope <= SLOPES[1]
        assert GAINS[0] <= tuning.gain <= GAINS[1]
        assert 0 < tuning.var_lag <= DOUBT[0] + 1e-9
        assert 0 < tuning.var_gain <= DOUBT[1] + 1e-9
        assert tuning.covariance**2 < tuning.var_lag * tuning.var_gain
        assert math.isfinite(tuning.noise)
        assert 0 <= tuning.delay <= 2
