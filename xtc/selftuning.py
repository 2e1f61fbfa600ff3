"""The self-tuning law: the paper's dead-beat law, designed anew each second from what it learned.

The paper gave its self-tuning regulator up because it never settled. It fitted Eq. 1 to
throughput over log(cap), which is a line near one operating point only, and learned from every
sample, also from those that showed nothing but noise. This one differs in both.

Coordinates. Throughput and cap both count as shares of themselves, that is in logarithms: where
throughput is proportional to the cap, as on every measured host at small caps, the slope s is 1 at
every cap and every speed of the host; on a concave curve it lies in [0, 1]. Changes have no offset,
so that a host which becomes half as fast is a single sample that no move explains, and not another
pair of parameters. The law itself is Eq. 2 with the dead-beat gains Kp = a/b and Ki = (1 - a)/b of
the learned a and b (`xtc.tuning`), which is (setpoint - where the throughput is going)/s.

Nothing is learned where the cap did not shape the sample, where it stood at a bound, where another
hand had put it (as in a pause), and where next to nothing is forwarded. What is within the noise is
answered in part. When the loop swings all the same, it is slowed down until it is still.
"""

import math
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from models import ThroughputCurve
from xtc.adaptive import FASTEST_RISE, NEAR, STARVED, extended_cap, is_binding
from xtc.law import Bounds, Decision, Reason, Sample
from xtc.tuning import LAGS, History, Tuning, learned
from xtc.units import MAX_RATE, CapFraction

SURPRISE = 8.0
"""Standard deviations of the noise beyond which a gap is answered in full."""
LASTING = 3.2
"""How much more the lesser of two gaps in a row on the same side counts: one alone may be a hiccup
of the host, and chasing it would double the harm."""
CALM_GAIN = 0.15
"""Share of a gap within the noise that is answered."""
SWING = 0.05
"""An error that changes sign and exceeds this share of the setpoint ..."""
SWING_NOISE = 5.0
"""... and so many standard deviations of the noise is a swing."""
SLOWER = 0.6
"""What a swing leaves of the speed."""
FASTER = 1.05
"""By how much the speed recovers in a sample without swing."""
SLOWEST = 0.15
ELSEWHERE = 0.05
"""A cap further than this share from what was decided was put there by another hand."""


class SelfTuningState(msgspec.Struct, frozen=True, gc=False):
    """All that the law remembers."""

    tuning: Tuning
    history: History = History()
    decided: float | None = None
    """The cap that was asked for; None where it stood at a bound."""
    setpoint: float | None = None
    error: float = 0.0
    """log(setpoint / throughput) of the sample before."""
    gap: float = 0.0
    """log(setpoint / where the throughput was going) of the sample before."""
    speed: float = 1.0
    """Share of the full answer that is given; less while the loop swings."""


@dataclass(frozen=True, slots=True)
class SelfTuningLaw:
    """Dead-beat on what it has learned; a trained host's lag and delay are where it starts."""

    curve: ThroughputCurve | None = None
    lag: float = 0.0
    """`a` of Eq. 1 to begin with."""
    delay: int = 0
    """Samples until a cap shows in the throughput, where it is known beforehand."""

    def start(self, cap: CapFraction | None) -> SelfTuningState:
        """Begin with the trained lag and an elasticity of 1."""
        lag = min(max(self.lag, LAGS[0]), LAGS[1])
        return SelfTuningState(Tuning(lag=lag, gain=1 - lag, delay=self.delay), decided=cap)

    def step(
        self,
        state: SelfTuningState,
        setpoint: float,
        sample: Sample,
        bounds: Bounds,
    ) -> tuple[SelfTuningState, Decision]:
        """Learn from the sample, then give the cap that Eq. 2 asks for."""
        if sample.cap is None or not is_binding(sample):
            return self._unshaped(state, setpoint, sample, bounds)
        starved = sample.throughput <= STARVED * setpoint
        rate = min(max(sample.throughput, STARVED * setpoint), MAX_RATE)
        state = _with_sample(state, rate, max(sample.cap, 1e-6), starved=starved)
        state = _with_speed(state, math.log(setpoint / rate), setpoint)
        gap = _gap(state, setpoint)
        wanted = math.log(state.history.acting(state.tuning.delay)) + _move(state, gap)
        return _decided(replace(state, gap=gap), wanted, bounds)

    def _unshaped(
        self, state: SelfTuningState, setpoint: float, sample: Sample, bounds: Bounds
    ) -> tuple[SelfTuningState, Decision]:
        """Learn nothing where no cap shaped the sample: hold below the setpoint, cap above it.

        Where a shield held the router, the CPU that it needed stands in for the cap.
        """
        forgot = replace(state, history=History(), decided=None, setpoint=setpoint, gap=0.0)
        if sample.needed is not None and sample.throughput > 0:
            rise = min(math.log(setpoint / sample.throughput), FASTEST_RISE)
            return _decided(forgot, math.log(max(sample.needed, 1e-6)) + rise, bounds)
        if sample.throughput >= setpoint:
            given = bounds.ceiling if sample.cap is None else sample.cap
            used = given if sample.used is None else min(given, sample.used)
            rate = min(sample.throughput, MAX_RATE)
            return _decided(forgot, math.log(max(used, 1e-6) * setpoint / rate), bounds)
        if sample.cap is not None:
            return forgot, Decision(bounds.clamp(sample.cap), Reason.NOT_BINDING)
        if self.curve is not None:
            return _decided(forgot, math.log(extended_cap(self.curve, setpoint)), bounds)
        return forgot, Decision(bounds.ceiling, Reason.NOT_BINDING)


def _with_sample(
    state: SelfTuningState, rate: float, cap: float, *, starved: bool
) -> SelfTuningState:
    """Learn from the sample if it follows from the two before it, and keep it for the next."""
    history = state.history
    elsewhere = state.decided is None or abs(cap / state.decided - 1) > ELSEWHERE
    if elsewhere or starved:
        history = History()
    history = history.with_sample(rate, cap)
    return replace(state, tuning=learned(state.tuning, history), history=history)


def _with_speed(state: SelfTuningState, error: float, setpoint: float) -> SelfTuningState:
    """Slow down while the loop swings about its setpoint beyond the noise, else recover."""
    clear = max(SWING, SWING_NOISE * math.sqrt(state.tuning.noise))
    swings = (
        state.setpoint == setpoint
        and error * state.error < 0
        and min(abs(error), abs(state.error)) > clear
    )
    speed = max(SLOWEST, SLOWER * state.speed) if swings else min(1.0, FASTER * state.speed)
    return replace(state, speed=speed, error=error, setpoint=setpoint)


def _gap(state: SelfTuningState, setpoint: float) -> float:
    """Return log(setpoint / where the throughput goes at the acting cap), without the lag."""
    rate, lag = state.history.rates[0], state.tuning.lag
    if len(state.history.rates) > 1:
        rate = max((rate - lag * state.history.rates[1]) / (1 - lag), rate / 3)
    return math.log(setpoint / rate)


def _move(state: SelfTuningState, gap: float) -> float:
    """Return by how much Eq. 2 moves log(cap): the gap over the slope, or a share of it in noise.

    A gap that lasts is no noise: what the last move left of it counts more.
    """
    lag = state.tuning.lag
    spread = math.sqrt(state.tuning.noise * (1 + lag * lag)) / (1 - lag)
    lasting = min(abs(gap), abs(state.gap)) if gap * state.gap > 0 else 0.0
    clear = min(max(abs(gap), LASTING * lasting) / (SURPRISE * spread), 1.0)
    answer = state.speed * (CALM_GAIN + (1 - CALM_GAIN) * clear**4)
    # Of noise, logarithms keep the geometric mean at the setpoint, and shares the mean.
    followed = gap if clear == 1.0 else -math.expm1(-gap)
    return min(answer * followed / _trusted(state.tuning.slope, gap), FASTEST_RISE)


def _trusted(slope: float, gap: float) -> float:
    """An elasticity below 1 lengthens the step: trust it near, and half on the way down."""
    if abs(gap) >= NEAR:
        return max(slope, 1.0)
    return (slope + 1) / 2 if gap < 0 and slope < 1 else slope


def _decided(
    state: SelfTuningState, wanted: float, bounds: Bounds
) -> tuple[SelfTuningState, Decision]:
    """Keep the cap within its bounds; one that they changed is not one to learn from."""
    cap = math.exp(min(wanted, 50.0))
    if cap < bounds.floor:
        return replace(state, decided=None), Decision(bounds.floor, Reason.AT_FLOOR)
    if cap > bounds.ceiling:
        return replace(state, decided=None), Decision(bounds.ceiling, Reason.AT_CEILING)
    return replace(state, decided=cap), Decision(CapFraction(cap), Reason.ACT)
