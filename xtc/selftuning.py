"""The self-tuning law: the paper's dead-beat law, designed anew each second from what it learned.

The paper gave its self-tuning regulator up because it never settled. It fitted Eq. 1 to
throughput over log(cap), which is a line near one operating point only, and learned from every
sample, also from those that showed nothing but noise. This one differs in both.

Coordinates. It learns `a` and the elasticity s = d log(y) / d log(cap), in

    dy(k) = a·dy(k-1) + (1 - a)·s·du(k),

where dy is the change of the throughput and du that of the cap, each as a share of itself. Where
throughput is proportional to the cap, as on every measured host at small caps, s is 1 at every cap
and every speed of the host; on a concave curve it lies in [0, 1]. Differences have no offset, so
that a host which becomes half as fast is a single sample that no move explains, not another pair
of parameters. The law itself is Eq. 2 with the dead-beat gains Kp = a/b and Ki = (1 - a)/b of the
learned a and b = (1 - a)·s.

Learning is recursive least squares with forgetting. A sample teaches only if the moves before it
exceed the noise (excitation), the cap shaped it, and the cap stood where the law had put it, within
its bounds. What is learned is projected into what hosts can be, and its covariance never exceeds
that of the start. When the loop swings, it is slowed down until it is still.
"""

import math
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from models import ThroughputCurve
from xtc.adaptive import FASTEST_RISE, NEAR, STARVED, extended_cap, is_binding
from xtc.law import Bounds, Decision, Reason, Sample
from xtc.units import MAX_RATE, CapFraction, PacketsPerSecond

LAGS = (0.0, 0.95)
"""Between these lies `a` of every host that a loop of one sample can hold."""
SLOPES = (0.3, 6.0)
"""Elasticities: below, a knee, where trust would overshoot; above, steeper than any host."""
FORGETTING = 0.9
"""What a lesson still weighs after the next one; samples that teach nothing forget nothing."""
DOUBT = (0.1, 1.0)
"""Variances of a and of (1 - a)·s at the start, and the most that they can become."""
BEND = 0.5
"""Standard deviation of the elasticity that a move of log(cap) by 1 costs: curves bend."""
FIRST_NOISE = 0.05**2
QUIETEST = 0.002**2
"""Variances of a sample at a constant cap, as a share: the first guess, and the least."""
NOISE_MEMORY = 0.9
EXCITED = 3.0
"""A move teaches when it exceeds the noise of a difference by this factor ..."""
LEAST_MOVE = 0.02
"""... and this share."""
UNLIKELY = 4.0
"""A miss of so many standard deviations is a change of the host, and no lesson."""
SURPRISE = 5.0
"""Standard deviations of the noise beyond which an error is answered in full."""
LASTING = 2.0
"""How much more the lesser of two gaps in a row on the same side counts."""
CALM_GAIN = 0.15
"""Share of an error within the noise that is answered."""
SWING = 0.05
"""An error that changes sign and exceeds this share of the setpoint is a swing."""
SLOWER = 0.6
"""What a swing leaves of the speed."""
FASTER = 1.05
"""By how much the speed recovers in a sample without swing."""
SLOWEST = 0.15
ELSEWHERE = 0.05
"""A cap further than this share from what was decided was set by another hand."""


class Tuning(msgspec.Struct, frozen=True, gc=False):
    """What has been learned: a, (1 - a)·s, and how sure that is."""

    lag: float = 0.0
    gain: float = 1.0
    """(1 - a)·s: the share of a move of the cap that shows in the same sample."""
    var_lag: float = DOUBT[0]
    covariance: float = 0.0
    var_gain: float = DOUBT[1]
    noise: float = FIRST_NOISE
    """Variance of a sample at a constant cap, as a share of the throughput."""
    lessons: int = 0
    """Samples that taught something."""

    @property
    def slope(self) -> float:
        """The elasticity d log(throughput) / d log(cap) of the settled router."""
        return self.gain / (1 - self.lag)


class Seen(msgspec.Struct, frozen=True, gc=False):
    """A sample that may be compared with the next."""

    throughput: float
    cap: float


class SelfTuningState(msgspec.Struct, frozen=True, gc=False):
    """All that the law remembers."""

    tuning: Tuning
    latest: Seen | None = None
    before: Seen | None = None
    decided: float | None = None
    """The cap that was asked for, where it was within the bounds."""
    error: float = 0.0
    """log(setpoint / throughput) of the sample before."""
    gap: float = 0.0
    """The same of where the throughput was going."""
    setpoint: float | None = None
    speed: float = 1.0
    """Share of the full answer that is given; less while the loop swings."""


@dataclass(frozen=True, slots=True)
class SelfTuningLaw:
    """Dead-beat on what it has learned; a trained host's curve and lag are where it starts."""

    curve: ThroughputCurve | None = None
    lag: float = 0.0
    """`a` of Eq. 1 to begin with."""

    def start(self, cap: CapFraction | None) -> SelfTuningState:
        """Begin with the trained lag and an elasticity of 1."""
        lag = min(max(self.lag, LAGS[0]), LAGS[1])
        return SelfTuningState(Tuning(lag=lag, gain=1 - lag), decided=cap)

    def step(
        self,
        state: SelfTuningState,
        setpoint: PacketsPerSecond,
        sample: Sample,
        bounds: Bounds,
    ) -> tuple[SelfTuningState, Decision]:
        """Learn from the sample, then give the cap that Eq. 2 asks for."""
        if sample.cap is None or not is_binding(sample):
            return self._unshaped(state, setpoint, sample, bounds)
        here = Seen(_bounded(sample.throughput, setpoint), max(sample.cap, 1e-6))
        state = _with_sample(state, here)
        state = _with_speed(state, math.log(setpoint / here.throughput), setpoint)
        gap = _gap(state, setpoint)
        move = _move(state, gap)
        return _decided(replace(state, gap=gap), here.cap * math.exp(move), bounds)

    def _unshaped(
        self, state: SelfTuningState, setpoint: float, sample: Sample, bounds: Bounds
    ) -> tuple[SelfTuningState, Decision]:
        """Learn nothing where no cap shaped the sample: hold below the setpoint, cap above it."""
        forgot = replace(state, latest=None, before=None, decided=None, setpoint=setpoint)
        if sample.throughput >= setpoint:
            given = bounds.ceiling if sample.cap is None else sample.cap
            used = given if sample.used is None else min(given, sample.used)
            return _decided(forgot, max(used, 1e-6) * setpoint / sample.throughput, bounds)
        if sample.cap is not None:
            return forgot, Decision(bounds.clamp(sample.cap), Reason.NOT_BINDING)
        if self.curve is not None:
            return _decided(forgot, extended_cap(self.curve, setpoint), bounds)
        return forgot, Decision(bounds.ceiling, Reason.NOT_BINDING)


def _bounded(throughput: float, setpoint: float) -> float:
    return min(max(throughput, STARVED * setpoint), MAX_RATE)


def _with_sample(state: SelfTuningState, here: Seen) -> SelfTuningState:
    """Learn from the sample if it follows from the two before it, and keep it for the next."""
    latest, before = state.latest, state.before
    own = state.decided is not None and abs(here.cap / state.decided - 1) <= ELSEWHERE
    if not own:
        latest = before = None
    tuning = state.tuning
    if latest is not None and before is not None:
        tuning = learned(tuning, before, latest, here)
    return replace(state, tuning=tuning, latest=here, before=latest)


def learned(tuning: Tuning, before: Seen, latest: Seen, here: Seen) -> Tuning:
    """Return what is known after three samples in a row.

    All changes are shares of one throughput, the largest of the three: lag mixes throughputs, not
    their logarithms.
    """
    scale = max(before.throughput, latest.throughput, here.throughput)
    rise = (here.throughput - latest.throughput) / scale
    rise_before = (latest.throughput - before.throughput) / scale
    move = _reached(tuning, latest, here) / scale * (1 - latest.cap / here.cap)
    miss = rise - tuning.lag * rise_before - tuning.gain * move
    bend = (BEND * math.log(here.cap / latest.cap)) ** 2
    tuning = replace(tuning, var_gain=min(tuning.var_gain + bend, DOUBT[1]))
    spread = 2 * (1 + tuning.lag + tuning.lag**2) * tuning.noise
    # The differences of two samples, each with its own noise, are what a move must exceed.
    if rise_before**2 + move**2 <= max(EXCITED**2 * 2 * tuning.noise, LEAST_MOVE**2):
        return replace(tuning, noise=_noise(tuning.noise, miss**2 / spread * tuning.noise))
    expected = spread + _doubt(tuning, rise_before, move)
    if miss**2 > UNLIKELY**2 * expected:
        tuning = replace(tuning, var_lag=DOUBT[0], covariance=0.0, var_gain=DOUBT[1])
        most = UNLIKELY * math.sqrt(spread + _doubt(tuning, rise_before, move))
        miss = min(max(miss, -most), most)
    return _taught(tuning, rise_before, move, miss, spread)


def _reached(tuning: Tuning, latest: Seen, here: Seen) -> float:
    """Return about where the throughput goes at the present cap, without the lag."""
    settled = (here.throughput - tuning.lag * latest.throughput) / (1 - tuning.lag)
    return min(max(settled, here.throughput / 2), 2 * here.throughput)


def _doubt(tuning: Tuning, rise: float, move: float) -> float:
    """Return the variance of a prediction that the parameters' own doubt makes."""
    return (
        tuning.var_lag * rise * rise
        + 2 * tuning.covariance * rise * move
        + tuning.var_gain * move * move
    )


def _taught(tuning: Tuning, rise: float, move: float, miss: float, spread: float) -> Tuning:
    """Recursive least squares with forgetting, projected into what hosts can be."""
    of_lag = tuning.var_lag * rise + tuning.covariance * move
    of_gain = tuning.covariance * rise + tuning.var_gain * move
    share = FORGETTING * spread + _doubt(tuning, rise, move)
    lag = min(max(tuning.lag + of_lag * miss / share, LAGS[0]), LAGS[1])
    gain = tuning.gain + of_gain * miss / share
    least, most = (slope * (1 - lag) for slope in SLOPES)
    var_lag, covariance, var_gain = _bounded_covariance(
        (tuning.var_lag - of_lag * of_lag / share) / FORGETTING,
        (tuning.covariance - of_lag * of_gain / share) / FORGETTING,
        (tuning.var_gain - of_gain * of_gain / share) / FORGETTING,
    )
    return Tuning(
        lag=lag,
        gain=min(max(gain, least), most),
        var_lag=var_lag,
        covariance=covariance,
        var_gain=var_gain,
        noise=tuning.noise,
        lessons=tuning.lessons + 1,
    )


def _bounded_covariance(lag: float, both: float, gain: float) -> tuple[float, float, float]:
    """Shrink a covariance to what was doubted at the start, keeping it positive."""
    lag, gain = max(lag, 1e-12), max(gain, 1e-12)
    by_lag, by_gain = min(1.0, DOUBT[0] / lag) ** 0.5, min(1.0, DOUBT[1] / gain) ** 0.5
    most = 0.999 * (lag * gain) ** 0.5
    return lag * by_lag**2, min(max(both, -most), most) * by_lag * by_gain, gain * by_gain**2


def _noise(noise: float, seen: float) -> float:
    return max(NOISE_MEMORY * noise + (1 - NOISE_MEMORY) * min(seen, 6 * noise), QUIETEST)


def _with_speed(state: SelfTuningState, error: float, setpoint: float) -> SelfTuningState:
    """Slow down while the loop swings about its setpoint beyond the noise, else recover."""
    clear = max(SWING, SURPRISE * math.sqrt(state.tuning.noise))
    swings = (
        state.setpoint == setpoint
        and error * state.error < 0
        and min(abs(error), abs(state.error)) > clear
    )
    speed = max(SLOWEST, SLOWER * state.speed) if swings else min(1.0, FASTER * state.speed)
    return replace(state, speed=speed, error=error, setpoint=setpoint)


def _gap(state: SelfTuningState, setpoint: float) -> float:
    """Return log(setpoint / where the throughput goes at the present cap)."""
    assert state.latest is not None  # the caller has just stored it
    y, lag = state.latest.throughput, state.tuning.lag
    if state.before is not None:
        y = max((y - lag * state.before.throughput) / (1 - lag), y / 3)
    return math.log(setpoint / y)


def _move(state: SelfTuningState, gap: float) -> float:
    """Return by how much Eq. 2 moves log(cap): the gap over the slope, or a share of it in noise.

    A gap that lasts is no noise: what the last move left of it counts twice.
    """
    lag = state.tuning.lag
    spread = math.sqrt(state.tuning.noise * (1 + lag * lag)) / (1 - lag)
    lasting = min(abs(gap), abs(state.gap)) if gap * state.gap > 0 else 0.0
    clear = min(max(abs(gap), LASTING * lasting) / (SURPRISE * spread), 1.0)
    answer = state.speed * (CALM_GAIN + (1 - CALM_GAIN) * clear**4)
    return min(answer * gap / _trusted(state.tuning.slope, gap), FASTEST_RISE)


def _trusted(slope: float, gap: float) -> float:
    """An elasticity below 1 lengthens the step: trust it near, and half on the way down."""
    slope = min(max(slope, SLOPES[0]), SLOPES[1])
    if abs(gap) >= NEAR:
        return max(slope, 1.0)
    return (slope + 1) / 2 if gap < 0 and slope < 1 else slope


def _decided(
    state: SelfTuningState, cap: float, bounds: Bounds
) -> tuple[SelfTuningState, Decision]:
    """Keep the cap within its bounds; a cap that they changed is not one to learn from."""
    if cap < bounds.floor:
        return replace(state, decided=None), Decision(bounds.floor, Reason.AT_FLOOR)
    if cap > bounds.ceiling:
        return replace(state, decided=None), Decision(bounds.ceiling, Reason.AT_CEILING)
    return replace(state, decided=cap), Decision(CapFraction(cap), Reason.ACT)
