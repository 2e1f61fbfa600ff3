"""The default law: learns the router's efficiency in operation, and computes the cap from it.

On every linear or concave host, throughput depends on the cap with an elasticity s = d log(y) / d
log(cap) in [0, 1]. The law follows the line log(y) = c + s·log(cap) (`xtc.control.estimate`) and
applies the cap at which that line meets the setpoint. With s = 1 and full trust in the last sample
this is cap ← cap · setpoint/throughput: dead-beat on a linear host without training, and never past
the setpoint on a concave one. A trained curve makes its first step exact. The law always learns
from the cap that the plant really got, so there is no integrator windup.
"""

import math
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from common.units import MAX_RATE, CapFraction, PacketsPerSecond
from models import ThroughputCurve
from xtc.control.binding import Evidence, binds
from xtc.control.estimate import FIRST_NOISE, SLOPE_DOUBT, UNSHAPED_DOUBT, Estimate, moved, updated
from xtc.control.law import Bounds, Decision, Reason, Sample
from xtc.control.prior import MISSED, Prior

NEAR = 0.3
"""|log(setpoint / throughput)| within which an elasticity below 1 is trusted."""
STARVED = 0.005
"""Share of the setpoint below which throughput only means "far too little"."""
FASTEST_RISE = math.log(10)
"""Maximum rise of a cap (in log cap) per period; falls are unlimited."""
STEEP = 1.3
"""Elasticity above which a step may overshoot, so that it is limited by the known sides."""
BRACKET_AGE = 3
"""Samples after which a known side of the setpoint is forgotten."""
MODEL_DOUBT = 0.09
"""Variance of a model's log throughput: another host of its kind is within 30 %."""


class Side(msgspec.Struct, frozen=True, gc=False):
    """A log cap on one side of the setpoint, and its age in samples."""

    log_cap: float
    age: int = 0


class AdaptiveState(msgspec.Struct, frozen=True, gc=False):
    """The state of the law."""

    estimate: Estimate
    setpoint: float | None = None
    throughput: float | None = None
    """Throughput of the last sample, for the plant's lag."""
    below: Side | None = None
    above: Side | None = None
    prior: Prior | None = None
    """Prior knowledge, until a sample shaped by the cap has confirmed or refuted it."""


@dataclass(frozen=True, slots=True)
class AdaptiveLaw:
    """The default law; curve, lag and delay of a trained host are optional."""

    curve: ThroughputCurve | None = None
    lag: float = 0.0
    """`a` of Eq. 1: the share of the last sample's throughput that is still in this one."""
    delay: int = 0
    """Samples until a cap affects the throughput, where known beforehand."""
    noise: float = FIRST_NOISE
    """Standard deviation of a sample at a constant cap, as a share, until it is learned."""

    def start(self, cap: CapFraction | None, prior: Prior | None = None) -> AdaptiveState:
        """Begin at the cap in force, with prior knowledge of the router only."""
        caps = () if cap is None else (math.log(cap),)
        line = Estimate(caps=caps, delay=self.delay, noise=self.noise**2)
        return AdaptiveState(line, prior=prior)

    def step(
        self, state: AdaptiveState, setpoint: float, sample: Sample, bounds: Bounds
    ) -> tuple[AdaptiveState, Decision]:
        """Learn from the sample, then choose the cap at which the learned line meets the setpoint.

        A sample not shaped by the cap adds little. Below the setpoint, the offered load is the
        limit, and the cap is held. Above it, or behind a shield, the CPU really used replaces the
        cap.
        """
        binding = is_binding(sample)
        if not binding and sample.needed is not None:
            return self._shown(state, setpoint, sample, sample.needed, bounds)
        if not binding and sample.throughput < setpoint:
            return self._idle(state, setpoint, sample, bounds)
        state, error = self._learned(state, setpoint, sample, binding=binding, bounds=bounds)
        fastest = FASTEST_RISE
        if setpoint != state.setpoint:
            state = self._retuned(state, setpoint)
            fastest = FASTEST_RISE if self.curve is None else math.inf
        return state, _decision(_wanted(state, setpoint, error, fastest), bounds)

    def _idle(
        self, state: AdaptiveState, setpoint: float, sample: Sample, bounds: Bounds
    ) -> tuple[AdaptiveState, Decision]:
        """Hold while too little is offered; only a trained curve allows a cap beforehand."""
        estimate = replace(state.estimate, seen=None)
        held = replace(state, throughput=sample.throughput, estimate=estimate)
        if setpoint != state.setpoint:
            held = self._retuned(held, setpoint)
        if sample.cap is not None:
            return held, Decision(bounds.clamp(sample.cap), Reason.NOT_BINDING)
        if self.curve is not None:
            return held, _decision(math.log(extended_cap(self.curve, setpoint)), bounds)
        return held, Decision(bounds.ceiling, Reason.NOT_BINDING)

    def _shown(
        self,
        state: AdaptiveState,
        setpoint: float,
        sample: Sample,
        needed: CapFraction,
        bounds: Bounds,
    ) -> tuple[AdaptiveState, Decision]:
        """Fit the line to the CPU cost of the throughput; work per packet has elasticity 1."""
        if setpoint != state.setpoint:
            state = self._retuned(state, setpoint)
        log_y = math.log(min(max(STARVED * setpoint, sample.throughput), MAX_RATE))
        log_needed = math.log(max(needed, 1e-6))
        wanted = log_needed + min(math.log(setpoint) - log_y, FASTEST_RISE)
        slope = state.estimate.slope
        estimate = moved(
            replace(state.estimate, caps=(wanted,), seen=None, starved=False),
            offset=log_y - slope * log_needed,
            slope=slope,
            variance=UNSHAPED_DOUBT,
        )
        return AdaptiveState(estimate, setpoint, sample.throughput), _decision(wanted, bounds)

    def _retuned(self, state: AdaptiveState, setpoint: float) -> AdaptiveState:
        """Carry the line over to another setpoint: along the trained curve if there is one."""
        estimate, before = state.estimate, state.setpoint
        if self.curve is not None and before is None:
            estimate = self._line_of_model(estimate, setpoint, 0.0)
        elif self.curve is not None and before is not None:
            fit = (math.log(before) - (estimate.offset or 0.0)) / estimate.slope
            estimate = self._line_of_model(
                estimate, setpoint, fit - math.log(extended_cap(self.curve, before))
            )
        elif before is not None and estimate.offset is not None:
            doubt = (SLOPE_DOUBT * math.log(setpoint / before)) ** 2
            estimate = replace(estimate, variance=estimate.variance + doubt)
        return AdaptiveState(estimate, setpoint, state.throughput, prior=state.prior)

    def _line_of_model(self, estimate: Estimate, setpoint: float, bias: float) -> Estimate:
        """Lay the line through the curve's cap for the setpoint, shifted by what was learned."""
        assert self.curve is not None  # both callers have checked
        cap = extended_cap(self.curve, setpoint)
        slope = min(max(self.curve.slope_log(cap), 1.0), 10.0)
        offset = math.log(setpoint) - slope * (math.log(cap) + bias)
        return moved(estimate, offset=offset, slope=slope, variance=MODEL_DOUBT)

    def _learned(
        self,
        state: AdaptiveState,
        setpoint: float,
        sample: Sample,
        *,
        binding: bool,
        bounds: Bounds,
    ) -> tuple[AdaptiveState, float]:
        """Return the state after the sample, and the sample's own log(throughput/setpoint)."""
        steady = self._without_lag(state, sample.throughput)
        starved = steady < STARVED * setpoint
        log_y = math.log(min(max(STARVED * setpoint, steady), MAX_RATE))
        late = state.estimate.delay == 0 and sample.late
        log_cap = math.log(_effective_cap(sample, bounds, binding=binding, late=late))
        state = _believed(state, log_cap, log_y, setpoint)
        estimate = updated(state.estimate, log_cap, log_y, shaped=binding, starved=starved)
        error = log_y - math.log(setpoint)
        state = replace(
            _bracketed(state, estimate, error),
            estimate=estimate,
            throughput=sample.throughput,
        )
        return state, error

    def _without_lag(self, state: AdaptiveState, throughput: float) -> float:
        """Return the steady state of Eq. 1: (y(k) - a·y(k-1)) / (1 - a)."""
        if state.throughput is None:
            return throughput
        return (throughput - self.lag * state.throughput) / (1 - self.lag)


def is_binding(sample: Sample) -> bool:
    """Whether the cap shaped the sample; judged by the offered load if not judged yet."""
    if sample.cap is None or sample.binding is None:
        offered = None if sample.offered is None else PacketsPerSecond(sample.offered)
        return binds(Evidence(sample.cap, PacketsPerSecond(sample.throughput), offered))
    return sample.binding


def extended_cap(curve: ThroughputCurve, throughput: float) -> float:
    """Return the curve's cap for a throughput; above its top, extrapolate proportionally."""
    if throughput <= curve.top:
        return curve.cap_for(PacketsPerSecond(throughput))
    return curve.cap_for(curve.top) * throughput / curve.top


def _effective_cap(sample: Sample, bounds: Bounds, *, binding: bool, late: bool = False) -> float:
    """Return the cap that explains the throughput: the CPU used, where the cap does not."""
    cap = bounds.ceiling if sample.cap is None else sample.cap
    if sample.used is not None and (late or not binding):
        cap = sample.used if late else min(cap, sample.used)
    return max(cap, 1e-6)


def _believed(state: AdaptiveState, log_cap: float, log_y: float, setpoint: float) -> AdaptiveState:
    """Start from prior knowledge, unless this first sample contradicts it."""
    prior = state.prior
    if prior is None or state.estimate.offset is not None:
        return state
    offset, slope = prior.towards(setpoint)
    if abs(log_y - offset - slope * log_cap) > MISSED:
        return replace(state, prior=None)
    doubt = prior.doubt_at(setpoint)
    line = moved(state.estimate, offset=offset, slope=slope, variance=doubt)
    return replace(state, estimate=line, prior=None)


def _bracketed(state: AdaptiveState, estimate: Estimate, error: float) -> AdaptiveState:
    """Remember on which side of the setpoint the acting cap lay, if it is clear."""
    below, above = _aged(state.below), _aged(state.above)
    band = max(0.02, 2 * math.sqrt(estimate.noise))
    here = Side(estimate.acting_cap)
    if error < -band:
        below = here
        above = above if above and above.log_cap > here.log_cap else None
    elif error > band:
        above = here
        below = below if below and below.log_cap < here.log_cap else None
    return replace(state, below=below, above=above)


def _aged(side: Side | None) -> Side | None:
    if side is None or side.age >= BRACKET_AGE:
        return None
    return Side(side.log_cap, side.age + 1)


def _wanted(state: AdaptiveState, setpoint: float, error: float, fastest: float) -> float:
    """Return the log cap at which the line meets the setpoint, limited by the known sides."""
    estimate = state.estimate
    gap = min(math.log(setpoint) - estimate.level, fastest)
    wanted = estimate.acting_cap + gap / _trusted_slope(estimate.slope, gap)
    if state.below is None or state.above is None:
        return wanted
    if estimate.slope <= STEEP and error > -FASTEST_RISE:
        return wanted
    margin = 0.1 * (state.above.log_cap - state.below.log_cap)
    return min(max(wanted, state.below.log_cap + margin), state.above.log_cap - margin)


def _trusted_slope(slope: float, gap: float) -> float:
    """An elasticity below 1 lengthens the step: trust it when near, and half of it downwards."""
    if abs(gap) >= NEAR:
        return max(slope, 1.0)
    return (slope + 1) / 2 if gap < 0 and slope < 1 else slope


def _decision(wanted: float, bounds: Bounds) -> Decision:
    cap = math.exp(min(wanted, 50.0))
    if cap < bounds.floor:
        return Decision(bounds.floor, Reason.AT_FLOOR)
    if cap > bounds.ceiling:
        return Decision(bounds.ceiling, Reason.AT_CEILING)
    return Decision(CapFraction(cap), Reason.ACT)
