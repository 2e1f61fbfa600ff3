"""The self-tuning law: what teaches, what does not, and the gains that come of it."""

import math
import random

import pytest
from msgspec.structs import replace

from models import bundled_host
from xtc.law import Bounds, Reason, Sample
from xtc.laws import DEFAULT, NAMES, law_named
from xtc.plant import Plant
from xtc.selftuning import SelfTuningLaw, SelfTuningState
from xtc.simulate import Scenario, run, summarise
from xtc.tuning import DOUBT, LAGS, History, Tuning, learned
from xtc.units import CapFraction, PacketsPerSecond

BOUNDS = Bounds(CapFraction(0.01), CapFraction(1.0))
SETPOINT = PacketsPerSecond(20e3)
HOSTS = ("paper", "hinge", "log")


def plant(host: str, lag: float = 0.0) -> Plant:
    curve = bundled_host(host).curve
    assert curve.offered is not None
    return Plant(curve, PacketsPerSecond(curve.offered), lag)


def history(lag: float, slope: float, caps: list[float], noise: float = 0.0) -> list[History]:
    """Return what a router of Eq. 1 around rate = cap**slope shows at those caps."""
    meter = random.Random(1)
    rate, found, seen = caps[0] ** slope, [], History()
    for cap in caps:
        rate = lag * rate + (1 - lag) * cap**slope
        seen = seen.with_sample(1e5 * rate * (1 + noise * meter.gauss(0, 1)), cap)
        found.append(seen)
    return found


def taught(
    lag: float, slope: float, caps: list[float], noise: float = 0.0, known_noise: float = 0.05
) -> Tuning:
    tuning = Tuning(noise=known_noise**2)
    for seen in history(lag, slope, caps, noise):
        tuning = learned(tuning, seen)
    return tuning


def wandering(count: int, share: float) -> list[float]:
    choice = random.Random(7)
    return [0.1 * (1 + share) ** choice.choice((-1, 0, 1)) for _ in range(count)]


def test_it_is_offered_by_name_and_not_the_default() -> None:
    host = bundled_host("paper")
    assert "self-tuning" in NAMES
    assert DEFAULT == "default"
    assert law_named("self-tuning") == SelfTuningLaw()
    assert law_named("self-tuning", host) == SelfTuningLaw(host.curve, host.lag)


@pytest.mark.parametrize("lag", [0.0, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("slope", [0.4, 1.0, 2.0])
def test_lag_and_slope_are_learned_from_moves(lag: float, slope: float) -> None:
    tuning = taught(lag, slope, wandering(300, 0.1), known_noise=1e-3)
    assert tuning.lag == pytest.approx(lag, abs=0.03)
    assert tuning.slope == pytest.approx(slope, rel=0.1)


def test_with_noise_they_are_learned_from_moves_that_exceed_it() -> None:
    tuning = taught(0.3, 1.0, wandering(300, 0.3), noise=0.02)
    assert tuning.lag == pytest.approx(0.3, abs=0.08)
    assert tuning.slope == pytest.approx(1.0, abs=0.15)


def test_noise_alone_teaches_nothing_but_its_size() -> None:
    tuning = taught(0.3, 1.0, [0.1] * 200, noise=0.03)
    assert tuning.lessons <= 2
    assert math.sqrt(tuning.noise) == pytest.approx(0.03, rel=0.4)


def test_a_router_at_rest_forgets_nothing() -> None:
    tuning = taught(0.3, 1.0, wandering(40, 0.2))
    after = tuning
    for seen in history(0.3, 1.0, [0.1] * 500)[5:]:
        after = learned(after, seen)
    assert (after.lag, after.gain, after.var_lag, after.lessons) == (
        tuning.lag,
        tuning.gain,
        tuning.var_lag,
        tuning.lessons,
    )


def test_a_router_that_changes_its_lag_is_followed_within_30_lessons() -> None:
    tuning = taught(0.1, 1.0, wandering(40, 0.2))
    for seen in history(0.6, 1.0, wandering(60, 0.2))[2:]:
        if tuning.lessons < 70:
            tuning = learned(tuning, seen)
    assert tuning.lag == pytest.approx(0.6, abs=0.06)


def test_a_half_as_fast_router_is_a_sample_that_no_move_explains() -> None:
    tuning = taught(0.2, 1.0, wandering(60, 0.3))
    moves = [0.1, 0.1, 0.1, 0.2, 0.2, 0.2]
    before = History((1e4,) * 3, (0.1,) * 4)
    rate = 1e4
    for cap in moves:
        rate = 0.2 * rate + 0.8 * 0.5e5 * cap
        before = before.with_sample(rate, cap)
        tuning = learned(tuning, before)
    assert tuning.lag == pytest.approx(0.2, abs=0.02)
    assert tuning.slope == pytest.approx(1.0, abs=0.1)


def test_a_delay_is_found_out_from_one_clear_move() -> None:
    tuning = learned(Tuning(), History((1e3, 1e3), (0.1, 0.01)))
    assert tuning.delay == 1


def test_a_deep_fall_with_lag_is_not_taken_for_a_delay() -> None:
    tuning, seen = Tuning(), History().with_sample(1e4, 1.0)
    for rate in (5e3, 2.5e3, 1.3e3, 6e2):
        seen = seen.with_sample(rate, 0.001)
        tuning = learned(tuning, seen)
    assert tuning.delay == 0


def test_the_covariance_is_bounded_however_long_one_direction_is_shown() -> None:
    tuning = Tuning()
    for index in range(2000):
        cap = 0.1 if index % 2 else 0.2
        tuning = learned(
            tuning, History((cap * 1e5, (0.3 - cap) * 1e5, cap * 1e5), (cap, 0.3 - cap))
        )
        assert tuning.var_lag <= DOUBT[0] + 1e-12
        assert tuning.var_gain <= DOUBT[1] + 1e-12


def settled_state(law: SelfTuningLaw, samples: int = 30) -> SelfTuningState:
    state = law.start(CapFraction(0.2))
    for _ in range(samples):
        sample = Sample(PacketsPerSecond(1e5 * 0.2), CapFraction(0.2), binding=True)
        state, _ = law.step(state, SETPOINT, sample, BOUNDS)
    return state


@pytest.mark.parametrize(
    "sample",
    [
        Sample(PacketsPerSecond(1e3), CapFraction(0.2), binding=False),
        Sample(PacketsPerSecond(5e4), CapFraction(0.2), used=CapFraction(0.1), binding=False),
        Sample(PacketsPerSecond(1e3), None),
        Sample(PacketsPerSecond(4e4), CapFraction(0.7), binding=True),
        Sample(PacketsPerSecond(0.0), CapFraction(0.2), binding=True),
    ],
    ids=["not binding", "not binding, above", "uncapped", "another hand", "starved"],
)
def test_what_it_did_not_cause_teaches_nothing(sample: Sample) -> None:
    law = SelfTuningLaw()
    state = settled_state(law)
    after, _ = law.step(state, SETPOINT, sample, BOUNDS)
    again, _ = law.step(after, SETPOINT, sample, BOUNDS)
    assert after.tuning == state.tuning
    assert again.tuning.lessons == state.tuning.lessons


def test_at_a_bound_nothing_is_learned() -> None:
    law = SelfTuningLaw()
    state = law.start(CapFraction(1.0))
    for rate in (1e3, 2e3, 4e3, 1e3, 5e3):
        sample = Sample(PacketsPerSecond(rate), CapFraction(1.0), binding=True)
        state, decision = law.step(state, SETPOINT, sample, BOUNDS)
        assert decision == replace(decision, cap=CapFraction(1.0), reason=Reason.AT_CEILING)
    assert state.tuning.lessons == 0


def test_a_swinging_loop_is_slowed_down_and_recovers() -> None:
    law, state = SelfTuningLaw(), settled_state(SelfTuningLaw())
    for index in range(6):
        rate, cap = SETPOINT * (1.5 if index % 2 else 0.6), CapFraction(state.decided or 0.2)
        state, _ = law.step(state, SETPOINT, Sample(PacketsPerSecond(rate), cap), BOUNDS)
    assert state.speed < 0.2
    for _ in range(60):
        cap = CapFraction(state.decided or 0.2)
        state, _ = law.step(state, SETPOINT, Sample(SETPOINT, cap), BOUNDS)
    assert state.speed == 1.0


def test_its_gains_are_the_papers_dead_beat_of_the_learned_a_and_b() -> None:
    """Eq. 2: du = (Kp + Ki)·e(k) - Kp·e(k-1) with Kp = a/b and Ki = (1 - a)/b."""
    lag, slope = 0.4, 0.8
    law = SelfTuningLaw(lag=lag)
    tuning = Tuning(lag=lag, gain=(1 - lag) * slope, noise=1e-12)
    start = law.start(CapFraction(0.2))
    state = replace_tuning(start, tuning, History((0.98e4,), (0.2,)))
    sample = Sample(PacketsPerSecond(0.99e4), CapFraction(0.2), binding=True)
    _, decision = law.step(state, PacketsPerSecond(1e4), sample, BOUNDS)
    kp, ki = lag / ((1 - lag) * slope), 1 / slope
    wanted = (kp + ki) * math.log(1 / 0.99) - kp * math.log(1 / 0.98)
    assert math.log(decision.cap / 0.2) == pytest.approx(wanted, rel=0.02, abs=1e-5)


def replace_tuning(state: SelfTuningState, tuning: Tuning, seen: History) -> SelfTuningState:
    return SelfTuningState(tuning, seen, decided=state.decided, setpoint=1e4)


@pytest.mark.parametrize("kilo", [5, 20, 60, 90])
@pytest.mark.parametrize("host", HOSTS)
def test_on_the_bundled_hosts_it_settles_and_holds(host: str, kilo: int) -> None:
    law = law_named("self-tuning", bundled_host(host))
    scenario = Scenario(PacketsPerSecond(kilo * 1e3), duration=90)
    summary = summarise(run(plant(host, bundled_host(host).lag), law, scenario), scenario)
    assert summary.settling_samples is not None
    assert summary.settling_samples <= 15
    assert summary.mean_error <= 0.01


@pytest.mark.parametrize("kilo", [5, 20, 60])
def test_whole_percent_caps_are_no_other_hand(kilo: int) -> None:
    scenario = Scenario(PacketsPerSecond(kilo * 1e3), quantum=0.01, bounds=BOUNDS, duration=90)
    summary = summarise(run(plant("paper"), SelfTuningLaw(), scenario), scenario)
    assert summary.mean_error <= 0.02


def test_a_thief_is_made_good() -> None:
    scenario = Scenario(PacketsPerSecond(40e3), stolen=0.15, stolen_from=40, duration=90)
    summary = summarise(run(plant("paper"), SelfTuningLaw(), scenario), scenario)
    assert summary.recovery_samples is not None
    assert summary.recovery_samples <= 5


def test_a_lag_out_of_all_bounds_is_brought_within() -> None:
    assert SelfTuningLaw(lag=0.99).start(None).tuning.lag == LAGS[1]
