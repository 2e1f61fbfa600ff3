"""Each rule of the default law by hand: on both sides of every bound."""

import math

import pytest
from msgspec.structs import replace

from common.units import CapFraction, PacketsPerSecond
from models import ThroughputCurve, bundled_host
from xtc.control.adaptive import (
    AdaptiveLaw,
    AdaptiveState,
    Side,
    _bracketed,
    _decision,
    _effective_cap,
    _trusted_slope,
    _wanted,
    extended_cap,
    is_binding,
)
from xtc.control.estimate import Estimate
from xtc.control.law import Bounds, Reason, Sample

BOUNDS = Bounds(CapFraction(0.01), CapFraction(1.0))
PAPER = bundled_host("paper").curve
TEN = math.log(10)


def _sample(
    throughput: float,
    cap: float | None,
    *,
    used: float | None = None,
    binding: bool | None = True,
) -> Sample:
    return Sample(
        PacketsPerSecond(throughput),
        None if cap is None else CapFraction(cap),
        used=None if used is None else CapFraction(used),
        binding=binding,
    )


def _after(law: AdaptiveLaw, *seconds: tuple[float, Sample]) -> tuple[AdaptiveState, float]:
    """Return state and cap after (setpoint, sample) of some seconds."""
    state, cap = law.start(seconds[0][1].cap), 0.0
    for setpoint, sample in seconds:
        state, decision = law.step(state, PacketsPerSecond(setpoint), sample, BOUNDS)
        cap = decision.cap
    return state, cap


@pytest.mark.parametrize(
    ("slope", "gap", "trusted"),
    [
        (0.5, 0.29, 0.5),
        (0.5, 0.30, 1.0),
        (0.5, -0.29, 0.75),
        (0.5, -0.30, 1.0),
        (1.0, -0.10, 1.0),
        (2.0, 0.10, 2.0),
        (2.0, -0.10, 2.0),
        (2.0, 0.90, 2.0),
        (0.5, 0.0, 0.5),
    ],
)
def test_an_elasticity_below_1_is_trusted_near_and_half_on_the_way_down(
    slope: float, gap: float, trusted: float
) -> None:
    assert _trusted_slope(slope, gap) == trusted


@pytest.mark.parametrize(
    ("wanted", "cap", "reason"),
    [
        (math.log(0.0099), 0.01, Reason.AT_FLOOR),
        (math.log(0.0101), 0.0101, Reason.ACT),
        (0.0, 1.0, Reason.ACT),
        (math.log(1.01), 1.0, Reason.AT_CEILING),
        (1e9, 1.0, Reason.AT_CEILING),
        (-1e9, 0.01, Reason.AT_FLOOR),
    ],
)
def test_a_decision_stays_within_its_bounds(wanted: float, cap: float, reason: Reason) -> None:
    decision = _decision(wanted, BOUNDS)
    assert (decision.cap, decision.reason) == (pytest.approx(cap), reason)


HERE = Side(-1.0)


@pytest.mark.parametrize(
    ("noise", "error", "below", "above"),
    [
        (0.0, -0.021, HERE, None),
        (0.0, -0.019, None, None),
        (0.0, 0.019, None, None),
        (0.0, 0.021, None, HERE),
        (4e-4, -0.041, HERE, None),  # twice the standard deviation of 2 %
        (4e-4, -0.039, None, None),
        (4e-4, 0.039, None, None),
        (4e-4, 0.041, None, HERE),
    ],
)
def test_a_side_is_known_when_it_is_clear_of_the_noise(
    noise: float, error: float, below: Side | None, above: Side | None
) -> None:
    estimate = Estimate(caps=(-1.0,), noise=noise)
    found = _bracketed(AdaptiveState(estimate), estimate, error)
    assert (found.below, found.above) == (below, above)


@pytest.mark.parametrize(
    ("error", "other", "kept"),
    [
        (-0.5, Side(-0.5), Side(-0.5, 1)),
        (-0.5, Side(-0.5, 2), Side(-0.5, 3)),
        (-0.5, Side(-0.5, 3), None),  # forgotten after three samples
        (-0.5, Side(-1.0), None),
        (-0.5, Side(-1.5), None),  # not above this one: contradicted
        (0.5, Side(-1.5), Side(-1.5, 1)),
        (0.5, Side(-1.0), None),
        (0.5, Side(-0.5), None),
    ],
)
def test_the_other_side_is_kept_while_it_is_fresh_and_makes_sense(
    error: float, other: Side, kept: Side | None
) -> None:
    estimate = Estimate(caps=(-1.0,), noise=0.0)
    state = AdaptiveState(estimate, below=other, above=other)
    found = _bracketed(state, estimate, error)
    assert (found.above if error < 0 else found.below) == kept
    assert (found.below if error < 0 else found.above) == HERE


@pytest.mark.parametrize(
    ("slope", "gap", "error", "wanted"),
    [
        (1.0, 0.5, 0.0, 0.5),
        (1.3, 0.65, 0.0, 0.5),
        (1.31, 0.655, 0.0, 0.08),  # steep: a tenth of the bracket within its upper side
        (1.31, -2.62, 0.0, -0.88),
        (1.31, -0.655, 0.0, -0.5),
        (1.0, 0.5, -2.30, 0.5),
        (1.0, 0.5, -2.31, 0.08),  # a tenth of the setpoint: the line knows nothing near it
        (1.0, 9.0, 0.0, TEN),  # not more than tenfold in a period
    ],
)
def test_where_the_line_meets_the_setpoint(
    slope: float, gap: float, error: float, wanted: float
) -> None:
    estimate = Estimate(slope=slope, offset=0.0, caps=(0.0,))
    state = AdaptiveState(estimate, below=Side(-1.0), above=Side(0.2))
    assert _wanted(state, math.exp(gap), error, TEN) == pytest.approx(wanted)


@pytest.mark.parametrize("sides", [(None, None), (Side(-1.0), None), (None, Side(0.2))])
def test_one_side_is_no_bracket(sides: tuple[Side | None, Side | None]) -> None:
    estimate = Estimate(slope=2.0, offset=0.0, caps=(0.0,))
    state = AdaptiveState(estimate, below=sides[0], above=sides[1])
    assert _wanted(state, math.exp(1.0), 0.0, TEN) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("cap", "used", "binding", "effective"),
    [
        (0.5, 0.2, True, 0.5),
        (0.5, 0.2, False, 0.2),
        (0.2, 0.5, False, 0.2),
        (0.5, None, False, 0.5),
        (None, None, False, 1.0),
        (None, 0.3, False, 0.3),
        (None, 0.0, False, 1e-6),
    ],
)
def test_what_was_used_explains_the_throughput_where_no_cap_did(
    cap: float | None, used: float | None, *, binding: bool, effective: float
) -> None:
    sample = _sample(1.0, cap, used=used)
    assert _effective_cap(sample, BOUNDS, binding=binding) == effective


@pytest.mark.parametrize(("delay", "acting"), [(0, 0.5), (1, 0.2)])
def test_a_late_cap_is_not_learned_from_where_no_delay_explains_it(
    delay: int, acting: float
) -> None:
    law = AdaptiveLaw(delay=delay)
    sample = replace(_sample(10.0, 0.2, used=0.5), late=True)
    state, _ = law.step(law.start(CapFraction(0.2)), PacketsPerSecond(10.0), sample, BOUNDS)
    assert state.estimate.caps[0] == pytest.approx(math.log(acting))


@pytest.mark.parametrize(("throughput", "binding"), [(9.79, True), (9.8, False), (10.0, False)])
def test_a_router_that_forwards_98_percent_of_what_is_offered_is_not_held(
    throughput: float, *, binding: bool
) -> None:
    sample = Sample(PacketsPerSecond(throughput), CapFraction(0.1), PacketsPerSecond(10.0))
    assert is_binding(sample) is binding


@pytest.mark.parametrize(
    ("throughput", "starved"), [(0.0, True), (99.0, True), (100.0, False), (101.0, False)]
)
def test_under_half_a_percent_of_the_setpoint_is_far_too_little(
    throughput: float, *, starved: bool
) -> None:
    state, _ = _after(AdaptiveLaw(), (20e3, _sample(throughput, 0.02)))
    assert state.estimate.starved is starved
    assert state.estimate.seen == pytest.approx(math.log(max(throughput, 100.0)))


def test_a_lull_breaks_what_samples_can_be_compared() -> None:
    """The cap rose in the lull; that the throughput rose by less is no flat curve."""
    held, idle = _sample(20e3, 0.2), _sample(1e3, 0.2, binding=False)
    after = _sample(40e3, 0.5)
    lull, _ = _after(AdaptiveLaw(), (20e3, held), (20e3, held), (20e3, idle), (20e3, after))
    assert lull.estimate.slope == 1.0
    straight, _ = _after(AdaptiveLaw(), (20e3, held), (20e3, held), (20e3, after))
    assert straight.estimate.slope < 1.0


@pytest.mark.parametrize(
    ("curve", "cap", "decided", "reason"),
    [
        (None, 0.2, 0.2, Reason.NOT_BINDING),
        (PAPER, 0.2, 0.2, Reason.NOT_BINDING),
        (None, 2.0, 1.0, Reason.NOT_BINDING),
        (None, None, 1.0, Reason.NOT_BINDING),
        (PAPER, None, 0.2, Reason.ACT),
    ],
)
def test_an_idle_router(
    curve: ThroughputCurve | None, cap: float | None, decided: float, reason: Reason
) -> None:
    law = AdaptiveLaw(curve=curve)
    idle = _sample(3e3, cap, binding=False)
    state, decision = law.step(
        law.start(idle.cap), PacketsPerSecond(PAPER.throughput(0.2)), idle, BOUNDS
    )
    assert (decision.cap, decision.reason) == (pytest.approx(decided), reason)
    assert (state.throughput, state.estimate.seen) == (3e3, None)


def test_a_retune_in_a_lull_waits_on_the_new_line() -> None:
    held, idle = _sample(20e3, 0.2), _sample(1e3, 0.2, binding=False)
    law = AdaptiveLaw()
    state, _ = _after(law, (20e3, held), (40e3, idle))
    assert state.setpoint == 40e3


def test_a_retune_without_a_curve_doubts_the_slope() -> None:
    held = _sample(20e3, 0.2)
    same, _ = _after(AdaptiveLaw(), (20e3, held), (20e3, held))
    for setpoint in (40e3, 10e3):
        other, _ = _after(AdaptiveLaw(), (20e3, held), (setpoint, held))
        doubt = other.estimate.variance - same.estimate.variance
        assert doubt == pytest.approx((0.5 * math.log(2)) ** 2)
        assert (other.below, other.above, other.setpoint) == (None, None, setpoint)


def test_a_first_setpoint_raises_no_doubt() -> None:
    state, _ = _after(AdaptiveLaw(), (20e3, _sample(20e3, 0.2)))
    assert state.estimate.variance == pytest.approx(0.05**2)


def test_a_model_is_believed_within_30_percent() -> None:
    state, cap = _after(AdaptiveLaw(curve=PAPER), (60e3, _sample(20e3, 0.1)))
    assert state.estimate.variance == pytest.approx(0.09)
    assert cap == pytest.approx(PAPER.cap_for(PacketsPerSecond(60e3)))
    assert state.estimate.slope == max(PAPER.slope_log(cap), 1.0)


@pytest.mark.parametrize(
    ("seconds", "cap"),
    [
        (((85e3, _sample(3e3, 0.01)),), 0.30),  # the curve knows where to go at once
        (((85e3, _sample(3e3, 0.01)), (85e3, _sample(3e3, 0.01))), 0.1),
    ],
)
def test_only_a_setpoint_that_is_new_lets_a_trained_cap_rise_more_than_tenfold(
    seconds: tuple[tuple[float, Sample], ...], cap: float
) -> None:
    _, decided = _after(AdaptiveLaw(curve=PAPER), *seconds)
    assert decided == pytest.approx(cap, rel=0.05)


def test_what_was_learned_of_a_model_is_carried_to_the_next_setpoint() -> None:
    """A host that needs 1.4 times the cap of its model everywhere."""
    law, cap = AdaptiveLaw(curve=PAPER), 0.2
    state = law.start(CapFraction(cap))
    for _ in range(12):
        sample = _sample(PAPER.throughput(cap / 1.4), cap)
        state, decision = law.step(state, PacketsPerSecond(40e3), sample, BOUNDS)
        cap = decision.cap
    assert cap == pytest.approx(1.4 * PAPER.cap_for(PacketsPerSecond(40e3)), rel=0.01)
    sample = _sample(PAPER.throughput(cap / 1.4), cap)
    for setpoint in (20e3, 70e3):
        _, decision = law.step(state, PacketsPerSecond(setpoint), sample, BOUNDS)
        expected = 1.4 * PAPER.cap_for(PacketsPerSecond(setpoint))
        assert decision.cap == pytest.approx(expected, rel=0.01)


def test_the_lag_is_taken_out_of_the_second_sample_on() -> None:
    law = AdaptiveLaw(lag=0.2)
    state = replace(law.start(None), throughput=10e3)
    assert law._without_lag(state, 18e3) == pytest.approx(20e3)
    assert law._without_lag(law.start(None), 18e3) == 18e3


def test_above_its_top_a_curve_goes_on_in_proportion_and_below_it_inverts() -> None:
    top = PAPER.top
    assert extended_cap(PAPER, top) == PAPER.cap_for(top)
    assert extended_cap(PAPER, 1.5 * top) == pytest.approx(1.5 * PAPER.cap_for(top))
    assert extended_cap(PAPER, 0.5 * top) == PAPER.cap_for(PacketsPerSecond(0.5 * top))
