"""A loop's estimate of its router: the line log(y) = c + s·log(cap), and its uncertainty.

A scalar Kalman filter follows the offset c: its gain rises after a move of the cap or a surprise,
and falls while samples only scatter. The elasticity s, the delay in samples and the noise are
estimated from the loop's own moves. All logarithms are natural, all quantities dimensionless shares
of their reference.
"""

import math

import msgspec
from msgspec.structs import replace

MAX_DELAY = 5
"""Samples; a cap with a longer delay is not a CPU cap."""
LEARNT_DELAY = 2
"""Maximum delay in samples that a loop can learn; a longer one must be known beforehand."""
TELLING = 0.3
"""Minimum change (in logarithms) of cap or throughput that can distinguish delays."""
ON_THE_LINE = 0.1
"""A sample this near to the line's prediction (in logarithms) gives no reason to doubt the delay: a
large move changes little on the flat top of a curve, and also before it takes effect."""

DRIFT = 0.01
"""Standard deviation of the drift of c from one sample to the next."""
SLOPE_DOUBT = 0.5
"""Standard deviation of s: how much uncertainty a move of the cap adds."""
UNSHAPED_DOUBT = 0.09
"""Variance of c after a sample not shaped by a cap: batching makes packets cheaper."""
GAIN = 0.25
"""Gain for white noise: follows slow change, hardly amplifies noise."""
GAIN_BY_CORRELATION = 0.8
GAINS = (0.1, 0.7)
"""Range of the gain: correlated noise needs a higher gain, alternating noise a lower one."""
CORRELATION_MEMORY = 0.95
SCATTER_GAIN = 0.75
"""Gain below which samples are taken to scatter ..."""
SCATTER = 1.0
"""... unless they miss the line by more than this (in logarithms)."""
SURPRISE = 2.5
"""Standard deviations at which two samples in a row on the same side mean change, not noise. A
single one may be a transient of the host: following it would double the error."""
NOISE_MEMORY = 0.9
QUIETEST = 0.002
"""Lower bound of the noise, as a share of the throughput."""
FIRST_NOISE = 0.05
SLOPES = (0.4, 10.0)
"""Below: a knee, where using the slope would overshoot. Above: no measured host is steeper."""
LIKELY_SLOPE = 1.5
"""Elasticity that measured hosts hardly exceed."""
CLEAR_MOVE = 3.0
"""A move of the cap updates the slope if it exceeds this multiple of the noise of two samples."""
BLIND_DROP = 0.3
"""Moves down by more than this (in log cap) may cross a knee, and cannot teach a slope below 1."""
SLOPE_RECOVERY = 0.15
"""Rate at which an elasticity below 1, which lengthens steps, returns to 1 while none is
learned."""
DELAY_MEMORY = 0.7
SLOPE_MEMORY = 0.4


class Estimate(msgspec.Struct, frozen=True, gc=False):
    """The line, its uncertainty, and the memory that the estimates need."""

    slope: float = 1.0
    offset: float | None = None
    """c; None until the first sample."""
    variance: float = 1.0
    """Variance of c."""
    noise: float = FIRST_NOISE**2
    """Variance of log(y) at a constant cap."""
    innovation: float = 0.0
    """Error of the line's last prediction; 0 after a change."""
    correlation: float = 0.0
    """Correlation of successive innovations, as a share of the noise; 0 for white noise."""
    delay: int = 0
    misfits: tuple[float, ...] = (0.0,) * (LEARNT_DELAY + 1)
    """Error of each candidate delay over the moves so far."""
    caps: tuple[float, ...] = ()
    """log(cap) of the latest samples, newest first."""
    seen: float | None = None
    """log(y) of the previous sample, if comparable with the next."""
    starved: bool = False
    """Whether almost nothing was forwarded in the previous sample."""

    @property
    def acting_cap(self) -> float:
        """Log of the cap that shaped the newest sample."""
        return self.caps[min(self.delay, len(self.caps) - 1)]

    @property
    def level(self) -> float:
        """Filtered log(y) at the acting cap."""
        return (self.offset or 0.0) + self.slope * self.acting_cap


def updated(
    estimate: Estimate, log_cap: float, log_y: float, *, shaped: bool, starved: bool = False
) -> Estimate:
    """Return the estimate after a sample.

    Args:
        estimate: the previous estimate.
        log_cap: log of the cap that explains the sample.
        log_y: log of the throughput, bounded below where the router was starved.
        shaped: whether the cap limited the router. If not, the sample moves the offset, but not
            slope and delay.
        starved: whether almost nothing was forwarded. A change from or to that state shows the
            router's slope, but not its delay.
    """
    estimate = replace(estimate, caps=(log_cap, *estimate.caps)[: MAX_DELAY + 2])
    if shaped and estimate.seen is not None:
        rise = log_y - estimate.seen
        predicted = abs(log_y - estimate.level) <= ON_THE_LINE
        if not (predicted or starved or estimate.starved):
            estimate = _with_delay(estimate, rise)
        if not (starved and estimate.starved):
            estimate = _with_slope(estimate, rise)
    estimate = _filtered(estimate, log_y)
    if not shaped:
        estimate = replace(estimate, variance=max(estimate.variance, UNSHAPED_DOUBT))
    return replace(estimate, seen=log_y if shaped else None, starved=starved)


def moved(estimate: Estimate, *, offset: float, slope: float, variance: float) -> Estimate:
    """Return the estimate for another line, with the variance of its new offset."""
    return replace(estimate, offset=offset, slope=slope, variance=variance, innovation=0.0)


def _move(estimate: Estimate, delay: int) -> float:
    """Return the move of the log cap that a sample with this delay reflects."""
    caps = estimate.caps
    return caps[delay] - caps[delay + 1] if len(caps) > delay + 1 else 0.0


def _with_delay(estimate: Estimate, rise: float) -> Estimate:
    """Choose the delay that explains the moves best, if it is clearly better than the current one.

    A slope learned at another delay is dropped.
    """
    moves = [_move(estimate, delay) for delay in range(LEARNT_DELAY + 1)]
    if max(abs(rise), *map(abs, moves)) < TELLING or estimate.delay > LEARNT_DELAY:
        return estimate
    misfits = tuple(
        DELAY_MEMORY * misfit + _unexplained(rise, move, estimate.slope) ** 2
        for misfit, move in zip(estimate.misfits, moves, strict=True)
    )
    best = misfits.index(min(misfits))
    present = misfits[estimate.delay]
    if misfits[best] < 0.3 * present and present - misfits[best] > TELLING**2:
        estimate = _turned(replace(estimate, delay=best), 1.0)
    return replace(estimate, misfits=misfits)


def _unexplained(rise: float, move: float, slope: float) -> float:
    """Return the part of a rise that a move cannot explain at any likely elasticity."""
    ends = SLOPES[0] * move, max(slope, LIKELY_SLOPE) * move
    return max(min(ends) - rise, rise - max(ends), 0.0)


def _turned(estimate: Estimate, slope: float) -> Estimate:
    """Rotate the line about the router's point before its last move."""
    before = estimate.caps[min(estimate.delay + 1, len(estimate.caps) - 1)]
    offset = estimate.offset
    if offset is not None:
        offset += (estimate.slope - slope) * before
    return replace(estimate, slope=slope, offset=offset)


def _with_slope(estimate: Estimate, rise: float) -> Estimate:
    """Learn the elasticity from a clear move, rotating the line about the previous point."""
    move = _move(estimate, estimate.delay)
    if move * move <= 2 * CLEAR_MOVE**2 * estimate.noise or _may_cross_a_knee(move, rise):
        return _turned(estimate, estimate.slope + SLOPE_RECOVERY * max(0.0, 1 - estimate.slope))
    slope = SLOPE_MEMORY * estimate.slope + (1 - SLOPE_MEMORY) * rise / move
    return _turned(estimate, min(max(slope, SLOPES[0]), SLOPES[1]))


def _may_cross_a_knee(move: float, rise: float) -> bool:
    """Whether a large move down looked flat, as from the flat top of a concave curve."""
    return move < -BLIND_DROP and rise > move


def _filtered(estimate: Estimate, log_y: float) -> Estimate:
    if estimate.offset is None:
        offset = log_y - estimate.slope * estimate.acting_cap
        return replace(estimate, offset=offset, variance=estimate.noise)
    move = _move(estimate, estimate.delay)
    innovation = log_y - estimate.level
    variance = estimate.variance + DRIFT**2 + (SLOPE_DOUBT * move) ** 2
    spread = math.sqrt(variance + estimate.noise)
    change = _is_change(innovation / spread, estimate.innovation / spread)
    if change:
        variance = max(variance, innovation * innovation)
    least = min(max(GAIN + GAIN_BY_CORRELATION * estimate.correlation, GAINS[0]), GAINS[1])
    gain = max(variance / (variance + estimate.noise), least)
    return replace(
        estimate,
        offset=estimate.offset + gain * _followed(innovation, gain),
        variance=(1 - gain) * variance,
        noise=_noise(estimate, innovation, move),
        innovation=0.0 if change else innovation,
        correlation=_correlation(estimate, innovation),
    )


def _followed(miss: float, gain: float) -> float:
    """Return the correction for a miss: all of it after a change, a share of it in noise.

    Logarithms would keep the geometric mean of the throughput at the setpoint, shares keep the
    mean. They differ only for noise, which dominates where the gain is low.
    """
    return math.expm1(miss) if gain < SCATTER_GAIN and abs(miss) < SCATTER else miss


def _is_change(score: float, before: float) -> bool:
    return min(abs(score), abs(before)) > SURPRISE and score * before > 0


def _correlation(estimate: Estimate, innovation: float) -> float:
    product = innovation * estimate.innovation / estimate.noise
    seen = min(max(product, -2.0), 2.0)
    return CORRELATION_MEMORY * estimate.correlation + (1 - CORRELATION_MEMORY) * seen


def _noise(estimate: Estimate, innovation: float, move: float) -> float:
    """Learn the noise at a constant cap, so that the loop's own moves do not count as noise.

    Half the squared difference of successive innovations has the noise's variance as its mean,
    independent of the line's offset (von Neumann, 1941): a steady error is not noise.
    """
    noise = estimate.noise
    if move * move >= max(noise, FIRST_NOISE**2):
        return noise
    difference = innovation - estimate.innovation
    seen = min(difference * difference / 2, 6 * noise)
    return max(NOISE_MEMORY * noise + (1 - NOISE_MEMORY) * seen, QUIETEST**2)
