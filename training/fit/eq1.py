"""Eq. 1 of the paper by least squares: y(k+1) = a·y(k) + b·u(k), u = log10(cap in percent).

`a` is the share of a step that is left one sample later, so only samples after a step show it. The
paper regresses y(k+1) on y(k) and u(k) jointly. That is right if the host follows Eq. 1, and wrong
where its curve bends: y(k) then predicts the next sample better than log(cap), and the regression
takes the bend for lag (0.15 to 0.5 on a hinge that has none, ADR 0017). Here every cap has its own
level, so that the shape of the curve cannot pass for dynamics; b then follows from the steady slope
b/(1 - a). The joint estimate is also reported.
"""

import math
from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from models.logcap import PACKETS_PER_KP, PERCENT_PER_CPU
from training.fit.dynamics import Dynamics
from training.fit.interval import Interval, beyond, interval
from training.fit.points import Rising
from training.recording.recording import Sample

Array = npt.NDArray[np.float64]

LEAST_STEPS = 3
"""Minimum number of changes of cap for an estimate of `a`."""
SLACK = 0.5
"""Tolerance for the distance of consecutive samples, as a share of a period."""
BY_CHANCE = 0.05
"""Noise does not explain a lack of fit that is less probable than this."""


class Line(msgspec.Struct, frozen=True):
    """The steady state of Eq. 1: throughput as a straight line over log10(cap in percent)."""

    gain: Interval
    """b / (1 - a), kp/s per decade of cap."""
    mean_throughput: float
    """The operating point's throughput, kp/s: the mean over the region."""
    mean_log_cap: float
    """The operating point's cap, log10 of percent."""
    r_squared: float
    points: int


class Joint(msgspec.Struct, frozen=True):
    """Eq. 1 as the paper fits it: both parameters at once, over all samples of the region."""

    a: Interval
    b: Interval
    r_squared: float


class Residual(msgspec.Struct, frozen=True):
    """One sample, and its prediction by Eq. 1 from the one before (paper, Fig. 4); kp/s."""

    cap: float
    estimated: float
    actual: float
    visit: int = 0

    @property
    def missed(self) -> float:
        """Excess of the sample over the estimate, kp/s."""
        return self.actual - self.estimated


class Missed(msgspec.Struct, frozen=True):
    """Variance that Eq. 1 does not explain, as shares of all variance; with R² they make 1.

    The classical lack-of-fit decomposition: repeated samples at one cap separate noise from a wrong
    line.
    """

    noise: float
    """Samples of one visit scatter."""
    drift: float
    """Visits of one cap differ: noise of their means, and a host that changes."""
    line: float
    """The caps' means are off the straight line over log(cap)."""
    chance: float
    """Probability that noise and the change between visits put them so far off (F test)."""


class Eq1(msgspec.Struct, frozen=True):
    """Eq. 1 of one host, in the paper's units."""

    a: Interval
    b: Interval
    """kp/s per decade of cap within one sample."""
    line: Line
    joint: Joint
    delay: int
    """Whole samples before a cap shows at all."""
    r_squared: float
    """Of the region's samples against the predictions of Eq. 1 from the samples before."""
    missed: Missed
    """Parts of the unexplained variance."""
    pairs: int
    """Number of changes of cap behind `a`."""
    residuals: tuple[Residual, ...]


class Pair(msgspec.Struct, frozen=True):
    """Two consecutive samples: kp/s before and after, and the cap of the latter."""

    before: float
    after: float
    cap: float
    moved: bool
    """Whether the cap changed between the two."""
    visit: int = 0
    """The visit of the cap that acts on the latter."""

    @property
    def log_cap(self) -> float:
        """log10 of the cap in percent."""
        return log_percent(self.cap)


def log_percent(cap: float) -> float:
    """Return the paper's u of a cap in CPUs."""
    return math.log10(cap * PERCENT_PER_CPU)


def pairs_of(samples: Sequence[Sample], period: float, below: float, delay: int = 0) -> list[Pair]:
    """Return the consecutive pairs with the latter sample under a cap below the threshold.

    Args:
        samples: in the order of their time.
        period: seconds from one sample to the next; samples across a gap are not a pair.
        below: the cap threshold in CPUs.
        delay: samples before a cap shows; with 1 the cap of the sample before acts.
    """
    found = []
    reach = max(1, delay)
    for index in range(reach, len(samples)):
        before, after, acting = (samples[index - back] for back in (1, 0, delay))
        if (
            after.at - samples[index - reach].at <= (reach + SLACK) * period
            and acting.cap is not None
            and acting.cap < below
            and after.binding is not False
        ):
            rates = before.throughput_pps / PACKETS_PER_KP, after.throughput_pps / PACKETS_PER_KP
            moved = index > delay and acting.cap != samples[index - delay - 1].cap
            found.append(Pair(*rates, acting.cap, moved, acting.visit))
    return found


def steady_line(points: Sequence[tuple[float, float]], chance: float = 0.0) -> Line:
    """Fit the steady state of Eq. 1 to points (cap in CPUs, throughput in packets/s).

    At least three points, of two caps or more. Such points alone do not determine `a`, and b only
    as b/(1 - a).

    The textbook's standard error of the slope assumes a straight line with equal noise at all
    caps. Where the curve bends, the largest residuals are at the ends, where they turn the line
    most, and that error is too small: the slope depends on which caps were measured. Where
    chance does not explain the lack of fit, the error is the heteroscedasticity-consistent one
    (HC3, MacKinnon and White 1985), or the textbook's where that is larger. The interval then
    covers the slope of the line that fits the whole region best.

    Args:
        points: the caps of the region.
        chance: the probability that noise explains the lack of fit, see `lack_of_fit`; without it,
            no straight line is assumed.
    """
    u = np.array([log_percent(cap) for cap, _ in points])
    y = np.array([rate / PACKETS_PER_KP for _, rate in points])
    columns = np.column_stack((u - u.mean(), np.ones(len(u))))
    values, errors, r_squared = _least_squares(columns, y)
    error = errors[0]
    if chance <= BY_CHANCE:
        error = max(error, _robust_errors(columns, y - columns @ np.array(values))[0])
    gain = interval(values[0], error, len(y) - 2)
    return Line(gain, float(y.mean()), float(u.mean()), r_squared, len(points))


def joint_of(pairs: Sequence[Pair]) -> Joint:
    """Return `a` and b as the paper does, about the means of the samples."""
    before = np.array([pair.before for pair in pairs])
    log_caps = np.array([pair.log_cap for pair in pairs])
    columns = np.column_stack(
        (before - before.mean(), log_caps - log_caps.mean(), np.ones(len(pairs)))
    )
    values, errors, r_squared = _least_squares(columns, np.array([pair.after for pair in pairs]))
    a, b = (interval(values[i], errors[i], len(pairs) - 3) for i in range(2))
    return Joint(a, b, r_squared)


def eq1_of(line: Line, host: Dynamics, every: Sequence[Pair], chance: float) -> Eq1:
    """Return Eq. 1 from the steady line, lag and delay, and all neighbours of the region."""
    residuals = tuple(_residual(pair, host.lag.value, line) for pair in every)
    actual = np.array([residual.actual for residual in residuals])
    missed = np.array([residual.missed for residual in residuals])
    return Eq1(
        a=host.lag,
        b=_product(line.gain, host.lag),
        line=line,
        joint=joint_of(every),
        delay=host.delay,
        r_squared=_explained(actual, missed),
        missed=missed_of(residuals, chance),
        pairs=host.changes,
        residuals=residuals,
    )


def _residual(pair: Pair, a: float, line: Line) -> Residual:
    steady = line.mean_throughput + line.gain.value * (pair.log_cap - line.mean_log_cap)
    return Residual(pair.cap, a * pair.before + (1 - a) * steady, pair.after, pair.visit)


def missed_of(residuals: Sequence[Residual], chance: float) -> Missed:
    """Return the parts of the variance that Eq. 1 does not explain."""
    visits = _levels(residuals, [(residual.cap, residual.visit) for residual in residuals])
    caps = _levels(residuals, [residual.cap for residual in residuals])
    missed = np.array([residual.missed for residual in residuals])
    squares = [float((part**2).sum()) for part in (missed - visits, visits - caps, caps)]
    actual = np.array([residual.actual for residual in residuals])
    spread = float(((actual - actual.mean()) ** 2).sum())
    noise, drift, line = (part / spread if spread > 0 else 0.0 for part in squares)
    return Missed(noise, drift, line, chance)


def lack_of_fit(rising: Rising) -> float:
    """Return the probability that chance puts the caps so far off a line over log(cap).

    Chance is the noise of samples, and the change of the host between visits (generalized least
    squares with the covariance of the mixed model). 1 if a line fits any such points.
    """
    over = len(rising.caps) - 2
    if over < 1:
        return 1.0
    u = np.array([log_percent(cap) for cap in rising.caps])
    scale = np.diag(rising.rates)
    weight = np.linalg.pinv(scale @ rising.covariance @ scale)
    columns = np.column_stack((np.ones(len(u)), u))
    values = np.linalg.lstsq(
        columns.T @ weight @ columns, columns.T @ weight @ rising.rates, rcond=None
    )[0]
    missed = rising.rates - columns @ values
    return beyond(float(missed @ weight @ missed) / over, over, rising.freedom)


def _levels(residuals: Sequence[Residual], keys: Sequence[Hashable]) -> Array:
    """Return for each residual the mean of those with its key."""
    groups: dict[Hashable, list[float]] = {}
    for residual, key in zip(residuals, keys, strict=True):
        groups.setdefault(key, []).append(residual.missed)
    means = {key: math.fsum(group) / len(group) for key, group in groups.items()}
    return np.array([means[key] for key in keys])


def _product(gain: Interval, a: Interval) -> Interval:
    """Return b = gain·(1 - a); the two come from different samples, so their errors add."""
    value = gain.value * (1 - a.value)
    of_gain = (gain.high - gain.value) * (1 - a.value)
    half = math.hypot(of_gain, gain.value * (a.high - a.value))
    return Interval(value, value - half, value + half)


def _least_squares(columns: Array, y: Array) -> tuple[list[float], list[float], float]:
    """Return the parameters, their standard errors, and R²."""
    values, _, rank, _ = np.linalg.lstsq(columns, y, rcond=None)
    missed = y - columns @ values
    freedom = max(len(y) - int(rank), 1)
    variance = float(missed @ missed) / freedom
    covariance = variance * np.linalg.pinv(columns.T @ columns)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return [float(v) for v in values], [float(e) for e in errors], _explained(y, missed)


def _robust_errors(columns: Array, missed: Array) -> list[float]:
    """Return standard errors that assume neither a correct model nor equal noise (HC3)."""
    inverse = np.linalg.pinv(columns.T @ columns)
    leverage = np.einsum("ij,jk,ik->i", columns, inverse, columns)
    # A point that the line must meet has a leverage of 1 and misses nothing.
    left_out = missed / np.maximum(1 - leverage, 1e-9)
    spread = inverse @ columns.T * left_out
    return [float(error) for error in np.linalg.norm(spread, axis=1)]


def _explained(y: Array, missed: Array) -> float:
    """Return R²: the share of the variance that is explained (paper, section 5.2)."""
    spread = float(((y - y.mean()) ** 2).sum())
    return 1 - float((missed**2).sum()) / spread if spread > 0 else 0.0
