"""What holds of the laws on every concave router and whatever the samples say."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from models import ThroughputCurve, bundled_host
from xtc.adaptive import AdaptiveLaw
from xtc.law import DEAD_BEAT, DEAD_BEAT_MIN3, PI, Bounds, Law, PaperLaw, Reason, Sample
from xtc.plant import Plant, advanced, settled
from xtc.simulate import BAND
from xtc.units import CapFraction, PacketsPerSecond, Seconds

BOUNDS = Bounds(CapFraction(0.001), CapFraction(1.0))
PAPER = bundled_host("paper")
LAWS: tuple[Law[Any], ...] = (
    AdaptiveLaw(),
    AdaptiveLaw(curve=PAPER.curve, lag=PAPER.lag),
    AdaptiveLaw(delay=2, lag=0.5),
    PaperLaw(PI),
    PaperLaw(DEAD_BEAT),
    PaperLaw(DEAD_BEAT_MIN3),
)


@dataclass(frozen=True)
class Case:
    """A concave router, and a setpoint that it can reach within the caps."""

    curve: ThroughputCurve
    setpoint: PacketsPerSecond

    @property
    def target(self) -> float:
        """The cap that the setpoint takes."""
        return self.curve.cap_for(self.setpoint)


@st.composite
def cases(draw: st.DrawFn, share: tuple[float, float] = (0.0, 0.99)) -> Case:
    """Any concave curve up to a cap of 0.2 to 1.5, from hinges to nearly logarithms.

    `share` is where the setpoint may lie between what the smallest and the largest cap give.
    """
    widths = draw(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=8))
    scale = draw(st.floats(0.2, 1.5)) / sum(widths)
    falls = draw(st.lists(st.floats(0.0, 1.0), min_size=len(widths), max_size=len(widths)))
    slopes = [1.0, *accumulate(falls[1:], lambda slope, fall: slope * fall, initial=falls[0])]
    caps = list(accumulate(width * scale for width in widths))
    rates = accumulate(w * s for w, s in zip(widths, slopes, strict=False))
    speed = draw(st.floats(1e4, 1e7))
    curve = ThroughputCurve(tuple((c, r * speed) for c, r in zip(caps, rates, strict=True)))
    low, high = curve.throughput(BOUNDS.floor), curve.throughput(BOUNDS.ceiling)
    at = draw(st.floats(*share))
    return Case(curve, PacketsPerSecond(low * (high / low) ** at))


CAPS = st.floats(-3.0, 0.0).map(lambda exponent: CapFraction(10**exponent))


def _loop(
    plants: Iterable[Plant], law: Law[Any], setpoint: PacketsPerSecond, start: CapFraction
) -> list[float]:
    """Return the throughput of each second of a closed loop on a router that may change."""
    plants = list(plants)
    memory, cap, state = law.start(start), start, settled(plants[0], start)
    throughputs = list[float]()
    for plant in plants:
        state = advanced(plant, state, [cap], Seconds(1.0))
        sample = Sample(state.throughput, cap, plant.offered, state.used, state.binding)
        memory, decision = law.step(memory, setpoint, sample, BOUNDS)
        cap = decision.cap
        throughputs.append(state.throughput)
    return throughputs


def _plant(case: Case, gain: float = 1.0, lag: float = 0.0) -> Plant:
    return Plant(case.curve, PacketsPerSecond(2 * case.curve.top), lag, gain)


def _settling(throughputs: Sequence[float], setpoint: float) -> int:
    outside = [t for t, y in enumerate(throughputs) if abs(y / setpoint - 1) > BAND]
    return outside[-1] + 1 if outside else 0


def _samples_down(start: float, target: float) -> float:
    """Return how many steps of the band's width lie between two caps.

    On a flat top the throughput exceeds the setpoint by little more than the band all the way, and
    an untrained law has no more than that to go by.
    """
    return max(0.0, math.log(start / target)) / math.log(1 + BAND)


@given(cases(), CAPS)
def test_untrained_it_converges_on_every_concave_router_and_stays(
    case: Case, start: CapFraction
) -> None:
    bound = 20 + 2 * _samples_down(start, case.target)
    values = _loop([_plant(case)] * (math.ceil(bound) + 60), AdaptiveLaw(), case.setpoint, start)
    assert _settling(values, case.setpoint) <= bound


@given(cases(), CAPS, st.floats(0.0, 0.3))
def test_trained_it_converges_within_10_samples_from_anywhere(
    case: Case, start: CapFraction, lag: float
) -> None:
    law = AdaptiveLaw(curve=case.curve, lag=lag)
    values = _loop([_plant(case, lag=lag)] * 60, law, case.setpoint, start)
    assert _settling(values, case.setpoint) <= 10


@given(cases(), CAPS)
def test_trained_without_lag_it_converges_in_one_step(case: Case, start: CapFraction) -> None:
    law = AdaptiveLaw(curve=case.curve)
    values = _loop([_plant(case)] * 60, law, case.setpoint, start)
    assert _settling(values, case.setpoint) <= 1


@given(cases(share=(0.3, 0.9)), st.floats(0.75, 1.3), CAPS)
def test_a_model_that_is_a_quarter_wrong_still_converges(
    case: Case, gain: float, start: CapFraction
) -> None:
    """As from an untrained start: a wrong model must do no lasting harm."""
    bound = 20 + 2 * _samples_down(1.0, case.target)
    law = AdaptiveLaw(curve=case.curve)
    assume(gain * case.curve.throughput(1.0) >= 1.01 * case.setpoint)
    values = _loop([_plant(case, gain)] * (math.ceil(bound) + 60), law, case.setpoint, start)
    assert _settling(values, case.setpoint) <= bound


RATES = st.one_of(
    st.floats(0.0, 1e9), st.sampled_from([0.0, 5e-324, 1e-9, 1e9, 1e18, 1e300, 1.7e308])
)
SAMPLES = st.builds(
    Sample,
    throughput=RATES,
    cap=st.one_of(st.none(), st.floats(1e-6, 1024.0), st.sampled_from([0.0, 5e-324, 1e308])),
    offered=st.one_of(st.none(), RATES),
    used=st.one_of(st.none(), st.floats(0.0, 1024.0), st.sampled_from([5e-324, 1e308])),
    binding=st.sampled_from([None, True, False]),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@given(
    start=st.one_of(st.none(), st.floats(1e-6, 1024.0)),
    steps=st.lists(st.tuples(st.floats(1.0, 1e9), SAMPLES), min_size=1, max_size=25),
    bounds=st.tuples(st.integers(1, 100), st.integers(100, 400)),
)
def test_whatever_the_samples_the_cap_is_finite_and_within_bounds(
    law: Law[Any],
    start: CapFraction | None,
    steps: list[tuple[PacketsPerSecond, Sample]],
    bounds: tuple[int, int],
) -> None:
    limits = Bounds(CapFraction(bounds[0] / 100), CapFraction(bounds[1] / 100))
    state = law.start(start)
    for setpoint, sample in steps:
        state, decision = law.step(state, setpoint, sample, limits)
        assert limits.floor <= decision.cap <= limits.ceiling


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
    slow = _plant(case, gain=reach * case.setpoint / case.curve.throughput(1.0))
    able = [_plant(case)] * 200
    ceiling = BOUNDS.ceiling
    fresh = _settling(_loop(able, AdaptiveLaw(), case.setpoint, ceiling), case.setpoint)
    values = _loop([slow] * saturated + able, AdaptiveLaw(), case.setpoint, ceiling)
    assert _settling(values[saturated:], case.setpoint) <= 3 * fresh + 2


@given(st.floats(0.05, 0.9), st.integers(1, 200), st.floats(1e4, 1e7))
def test_no_wind_up_on_a_linear_router_costs_at_most_three_samples(
    share: float, saturated: int, speed: float
) -> None:
    case = Case(
        ThroughputCurve(((0.5, 0.5 * speed), (1.0, speed))), PacketsPerSecond(share * speed)
    )
    able = [_plant(case)] * 60
    fresh = _settling(_loop(able, AdaptiveLaw(), case.setpoint, BOUNDS.ceiling), case.setpoint)
    slow = [_plant(case, gain=share * 0.7)] * saturated
    values = _loop(slow + able, AdaptiveLaw(), case.setpoint, BOUNDS.ceiling)
    assert _settling(values[saturated:], case.setpoint) <= fresh + 3


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
    able = _plant(case)
    idle = Plant(case.curve, PacketsPerSecond(0.3 * case.setpoint))
    values = _loop([able] * 20 + [idle] * lull + [able] * 20, AdaptiveLaw(), case.setpoint, start)
    assert values[20 + lull :] == pytest.approx([case.setpoint] * 20, rel=BAND)


@given(cases(share=(0.05, 0.95)))
def test_at_rest_the_cap_rests(case: Case) -> None:
    start = CapFraction(case.target)
    values = _loop([_plant(case)] * 60, AdaptiveLaw(), case.setpoint, start)
    assert values == pytest.approx([case.setpoint] * 60, rel=0.01)


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
