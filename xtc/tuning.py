"""What the self-tuning law learns of its router: lag, elasticity, noise and delay, and when.

Recursive least squares with forgetting on

    dy(k) = a·dy(k-1) + b·du(k),    b = (1 - a)·s,

where dy and du are changes of throughput and cap as shares of themselves, and s is the elasticity
d log(throughput) / d log(cap). A sample teaches only if the moves before it exceed the noise; the
others forget nothing. All quantities are dimensionless.
"""

import math

import msgspec
from msgspec.structs import replace

LAGS = (0.0, 0.95)
"""Between these lies `a` of every host that a loop of one sample can hold."""
SLOPES = (0.3, 6.0)
"""Elasticities: below, a knee, where trust would overshoot; above, steeper than any host."""
GAINS = (SLOPES[0] * (1 - LAGS[1]), SLOPES[1])
"""Between these lies b; the slope is bounded in use, where a bound cannot hold back the lag."""
FORGETTING = 0.9
"""What a lesson still weighs after the next one."""
DOUBT = (0.1, 1.0)
"""Variances of a and of b at the start, and the most that they can become."""
BEND = 0.5
"""Standard deviation of b that a move of log(cap) by 1 costs: curves bend."""
FIRST_NOISE = 0.05**2
QUIETEST = 0.002**2
"""Variances of a sample at a constant cap, as a share: the first guess, and the least."""
NOISE_MEMORY = 0.9
EXCITED = 3.0
"""A move teaches when it exceeds the noise of a difference by this factor ..."""
LEAST_MOVE = 0.02
"""... and this share."""
UNLIKELY = 4.0
"""A miss of more standard deviations than this teaches no more than one of as many."""
LONGEST_DELAY = 2
"""Samples of delay that are found out."""
TELLING = 0.3
"""A change of log(cap) or log(throughput) that can tell delays apart."""
LIKELY = (0.4, 1.5)
"""Elasticities that most hosts show."""
LIKELY_LAG = 0.6
"""Hardly a host keeps more of a step than this after one sample."""
FORETOLD = 0.1
"""A sample missed by less than this share is no reason to doubt the delay."""
DELAY_MEMORY = 0.7
CLEARLY = 0.3
"""Another delay is believed when it leaves less than this share of the squares unexplained."""


class Tuning(msgspec.Struct, frozen=True, gc=False):
    """What has been learned, and how sure that is."""

    lag: float = 0.0
    """a: the share of a change that is still missing one sample later."""
    gain: float = 1.0
    """b = (1 - a)·s: the share of a move of the cap that shows in the first sample."""
    var_lag: float = DOUBT[0]
    covariance: float = 0.0
    var_gain: float = DOUBT[1]
    noise: float = FIRST_NOISE
    """Variance of a sample at a constant cap, as a share of the throughput."""
    delay: int = 0
    """Whole samples before a move shows at all."""
    misfits: tuple[float, ...] = (0.0,) * (LONGEST_DELAY + 1)
    """How badly each delay explains the moves so far."""
    lessons: int = 0
    """Samples that taught something."""

    @property
    def slope(self) -> float:
        """The elasticity d log(throughput) / d log(cap) of the settled router."""
        return min(max(self.gain / (1 - self.lag), SLOPES[0]), SLOPES[1])


class History(msgspec.Struct, frozen=True, gc=False):
    """Throughputs (packets/s) and caps (CPUs) of samples in a row, newest first."""

    rates: tuple[float, ...] = ()
    caps: tuple[float, ...] = ()

    def with_sample(self, rate: float, cap: float) -> "History":
        """Return the history one sample later."""
        kept = LONGEST_DELAY + 1
        return History((rate, *self.rates[:2]), (cap, *self.caps[:kept]))

    def acting(self, delay: int) -> float:
        """Return the cap that shaped the newest sample; before the first it was the first."""
        return self.caps[min(delay, len(self.caps) - 1)]


def learned(tuning: Tuning, history: History) -> Tuning:
    """Return what is known after the newest of samples in a row."""
    if len(history.rates) < 2:
        return tuning
    miss = _miss(tuning, history)
    if abs(miss) > FORETOLD:
        tuning = _with_delay(tuning, history)
        miss = _miss(tuning, history)
    return _weighed(tuning, history, miss) if len(history.rates) > 2 else tuning


def _weighed(tuning: Tuning, history: History, miss: float) -> Tuning:
    """Take a sample for a lesson if the moves before it exceed the noise, else for noise."""
    _, rise_before = _rises(history)
    move = _move(tuning, history)
    spread = 2 * (1 + tuning.lag + tuning.lag**2) * tuning.noise
    if rise_before**2 + move**2 <= max(EXCITED**2 * 2 * tuning.noise, LEAST_MOVE**2):
        return replace(tuning, noise=_noise(tuning.noise, miss**2 / spread * tuning.noise))
    tuning = _doubting(tuning, history)
    most = UNLIKELY * math.sqrt(spread + _doubt(tuning, rise_before, move))
    if abs(miss) > most:
        tuning = replace(tuning, var_lag=DOUBT[0], covariance=0.0, var_gain=DOUBT[1])
        most = UNLIKELY * math.sqrt(spread + _doubt(tuning, rise_before, move))
    return _taught(tuning, rise_before, move, min(max(miss, -most), most), spread)


def _miss(tuning: Tuning, history: History) -> float:
    rise, rise_before = _rises(history)
    return rise - tuning.lag * rise_before - tuning.gain * _move(tuning, history)


def _rises(history: History) -> tuple[float, float]:
    """Return the last two changes of throughput, as shares of the largest of the samples.

    Lag mixes throughputs, not their logarithms.
    """
    newest, latest = history.rates[:2]
    before = history.rates[-1]
    scale = max(history.rates)
    return (newest - latest) / scale, (latest - before) / scale


def _move(tuning: Tuning, history: History) -> float:
    """Return the change of throughput that the cap's move makes on a host of elasticity 1."""
    newest, latest = history.rates[:2]
    settled = (newest - tuning.lag * latest) / (1 - tuning.lag)
    reached = min(max(settled, newest / 2), 2 * newest)
    before, acting = history.acting(tuning.delay + 1), history.acting(tuning.delay)
    return reached / max(history.rates) * (1 - before / acting)


def _with_delay(tuning: Tuning, history: History) -> Tuning:
    """Choose the delay that explains the moves best, if it is clearly better than the present.

    In logarithms, in which a move of any size counts as much up as down. What was learned at
    another delay is forgotten.
    """
    rise = math.log(history.rates[0] / history.rates[1])
    moves = [_log_move(history, delay) for delay in range(LONGEST_DELAY + 1)]
    if max(abs(rise), *map(abs, moves)) < TELLING or tuning.delay > LONGEST_DELAY:
        return tuning
    misfits = tuple(
        DELAY_MEMORY * misfit + _unexplained(history, move, tuning.slope) ** 2
        for misfit, move in zip(tuning.misfits, moves, strict=True)
    )
    best, present = misfits.index(min(misfits)), misfits[tuning.delay]
    if misfits[best] < CLEARLY * present and present - misfits[best] > TELLING**2:
        tuning = Tuning(noise=tuning.noise, lessons=tuning.lessons, delay=best)
    return replace(tuning, misfits=misfits)


def _log_move(history: History, delay: int) -> float:
    return math.log(history.acting(delay) / history.acting(delay + 1))


def _unexplained(history: History, move: float, slope: float) -> float:
    """Return by how much the rise of log(throughput) misses what a move can do on a likely host.

    A host with lag falls slowly however deep the cap fell, and goes on where it was going.
    """
    rise = math.log(history.rates[0] / history.rates[1])
    going_on = 1 + LIKELY_LAG * (history.rates[1] - history.rates[-1]) / history.rates[1]
    lasting = math.log(max(going_on, LIKELY_LAG**5)) if len(history.rates) > 2 else 0.0
    ends = LIKELY[0] * move, max(slope, LIKELY[1]) * move
    highest = max(*ends, math.log(LIKELY_LAG)) if move < 0 else max(ends)
    return max(min(ends) + min(lasting, 0.0) - rise, rise - highest - max(lasting, 0.0), 0.0)


def _doubting(tuning: Tuning, history: History) -> Tuning:
    """Doubt b after a move along a curve that may bend."""
    bend = (BEND * _log_move(history, tuning.delay)) ** 2
    return replace(tuning, var_gain=min(tuning.var_gain + bend, DOUBT[1]))


def _doubt(tuning: Tuning, rise: float, move: float) -> float:
    """Return the variance of a prediction that the parameters' own doubt makes."""
    return (
        tuning.var_lag * rise * rise
        + 2 * tuning.covariance * rise * move
        + tuning.var_gain * move * move
    )


def _taught(tuning: Tuning, rise: float, move: float, miss: float, spread: float) -> Tuning:
    """Return the least squares with the lesson, projected into what hosts can be."""
    of_lag = tuning.var_lag * rise + tuning.covariance * move
    of_gain = tuning.covariance * rise + tuning.var_gain * move
    share = FORGETTING * spread + _doubt(tuning, rise, move)
    lag = min(max(tuning.lag + of_lag * miss / share, LAGS[0]), LAGS[1])
    var_lag, covariance, var_gain = _bounded(
        (tuning.var_lag - of_lag * of_lag / share) / FORGETTING,
        (tuning.covariance - of_lag * of_gain / share) / FORGETTING,
        (tuning.var_gain - of_gain * of_gain / share) / FORGETTING,
    )
    return replace(
        tuning,
        lag=lag,
        gain=min(max(tuning.gain + of_gain * miss / share, GAINS[0]), GAINS[1]),
        var_lag=var_lag,
        covariance=covariance,
        var_gain=var_gain,
        lessons=tuning.lessons + 1,
    )


def _bounded(lag: float, both: float, gain: float) -> tuple[float, float, float]:
    """Shrink a covariance to what was doubted at the start, keeping it positive."""
    lag, gain = max(lag, 1e-12), max(gain, 1e-12)
    by_lag, by_gain = min(1.0, DOUBT[0] / lag) ** 0.5, min(1.0, DOUBT[1] / gain) ** 0.5
    most = 0.999 * (lag * gain) ** 0.5
    return lag * by_lag**2, min(max(both, -most), most) * by_lag * by_gain, gain * by_gain**2


def _noise(noise: float, seen: float) -> float:
    return max(NOISE_MEMORY * noise + (1 - NOISE_MEMORY) * min(seen, 6 * noise), QUIETEST)
