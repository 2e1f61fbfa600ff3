"""What visits of caps say together: each cap's level, and how the host's speed changed meanwhile.

A mixed model of the logarithm of each visit's mean (ADR 0045):

    log mean = level of its cap + trend over time + speed at that time + noise of its samples

The speed is random: one part changes at each visit, one part drifts (exponential correlation over
time). How large the parts are is not known, and few visits tell little of it. So no one size is
chosen: everything is averaged over a grid of sizes, each weighted by how well it explains the
visits (restricted likelihood, Patterson and Thompson 1971, times a weak prior). Where nothing was
visited twice, the prior is all there is, and the intervals are as wide.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg

Array = npt.NDArray[np.float64]

SIZES: Final = (0.0, 0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.04, 0.055, 0.075, 0.1, 0.14, 0.2, 0.3)
"""Standard deviations of the speed that are averaged over, as shares."""
USUAL: Final = 0.015
"""Scale of the prior on them (half Cauchy): most hosts wander by a percent or two."""
DRIFTING: Final = (0.5, 1.0)
"""Shares of the variance that drift instead of changing at each visit; none is tried as well."""
STEADY: Final = 0.5
"""Standard deviation of the prior on the trend: hosts do not double their speed within a sweep."""
MEMORIES: Final = (1 / 50, 1 / 15, 1 / 5)
"""Times over which the drift forgets, as shares of the whole time."""
LEAST: Final = 1e-8
"""Variance that every visit has, so that exact ones can be weighed, too."""
SELECTED: Final = 0.95
"""Share of what is likely that the errors of a host whose speed changed stay below. A model is kept
where its speed seems to change little, and what seems little is more often too little than too
much: the mean error would make the intervals of the models that are kept too narrow."""
SURELY: Final = 5.99 / 2
"""Logarithm of a likelihood ratio above which a size is told from 0 (chi-square of 95 %, for size
and memory)."""


class Visit(NamedTuple):
    """One visit's mean, as the model takes it."""

    at: float
    """The middle of its samples, in seconds."""
    level: int
    """The number of its cap, from 0."""
    log_mean: float


@dataclass(frozen=True)
class Speed:
    """How the host's speed changed between visits, as shares."""

    sd: float
    """Standard deviation from one visit to another; the median of what is likely."""
    low: float
    high: float
    """Within these it lies with 95 %."""
    sure: bool
    """Whether it did change, beyond what noise of the samples explains."""
    trend: float
    """Change over the whole time, as a share of the speed at its middle."""
    trend_error: float

    @property
    def drifts(self) -> bool:
        """Whether the trend is told from none."""
        return abs(self.trend) > 2 * self.trend_error


@dataclass(frozen=True)
class Levels:
    """What each cap's level is, and how sure that is."""

    logs: Array
    """Logarithm of the packets/s at the time that the trend is counted from, one a level."""
    covariance: Array
    """Of shape (levels, levels)."""
    speed: Speed
    freedom: float
    """Degrees of freedom of what the covariance rests on."""
    selected: Array
    """Standard error of each level as a share, for intervals of models that are kept since they
    seem good (`SELECTED`); where no change of the speed is sure, it is the same as ``errors``."""

    def errors(self) -> Array:
        """Return the standard error of each level, as a share."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), np.float64)


class _Guess(NamedTuple):
    """One size of the speed's changes, and what follows from it."""

    size: float
    likelihood: float
    """Logarithm of the restricted likelihood."""
    values: Array
    covariance: Array
    prior: float


def levels_of(visits: Sequence[Visit], noise: Array, middle: float) -> Levels:
    """Fit the model.

    Args:
        visits: one or more; every level from 0 on has one.
        noise: the covariance of their means by the noise of samples, as shares.
        middle: when the host's speed is the one that levels are of, in seconds.
    """
    count = 1 + max(visit.level for visit in visits)
    logs = np.array([visit.log_mean for visit in visits])
    at = np.array([visit.at for visit in visits])
    since = (at - middle) / max(2 * float(np.abs(at - middle).max()), 1e-9)
    columns = np.zeros((len(visits), count + 1))
    columns[np.arange(len(visits)), [visit.level for visit in visits]] = 1.0
    columns[:, count] = since
    replicated = len(visits) - count
    if replicated < 2:
        columns = columns[:, :count]
    guesses = list(_guesses(logs, noise, since, columns))
    return _averaged(guesses, count, replicated)


def _guesses(logs: Array, noise: Array, since: Array, columns: Array) -> Iterator[_Guess]:
    apart = np.abs(since[:, None] - since[None, :])
    kinds = [np.eye(len(logs))]
    kinds += [
        (1 - part) * np.eye(len(logs)) + part * np.exp(-apart / memory)
        for part in DRIFTING
        for memory in MEMORIES
    ]
    root = linalg.cholesky(noise + LEAST * np.eye(len(logs)), lower=True, check_finite=False)
    whole = _Whitened(root, columns, logs, kinds[0])
    yield _Guess(0.0, *whole.fitted(0.0), prior=_prior(0))
    for number, kind in enumerate(kinds):
        scaled = whole if number == 0 else _Whitened(root, columns, logs, kind)
        for place, size in enumerate(SIZES[1:], start=1):
            yield _Guess(size, *scaled.fitted(size), prior=_prior(place) / len(kinds))


class _Whitened:
    """The visits in the coordinates in which noise and change of speed are both independent."""

    def __init__(self, root: Array, columns: Array, logs: Array, kind: Array) -> None:
        """Take the noise's Cholesky root, the model, and the correlation of the speed."""
        half = linalg.solve_triangular(root, kind, lower=True, check_finite=False)
        both = linalg.solve_triangular(root, half.T, lower=True, check_finite=False)
        self._sizes, turned = linalg.eigh((both + both.T) / 2, check_finite=False)
        data = np.column_stack((columns, logs))
        white = turned.T @ linalg.solve_triangular(root, data, lower=True, check_finite=False)
        self._columns, self._logs = white[:, :-1], white[:, -1]
        self._prior = np.zeros((columns.shape[1], columns.shape[1]))
        if not set(columns[:, -1]) <= {0.0, 1.0}:  # its last column is the trend
            self._prior[-1, -1] = STEADY**-2
        self._log_noise = 2 * float(np.log(np.diag(root)).sum())

    def fitted(self, size: float) -> tuple[float, Array, Array]:
        """Return the log of the restricted likelihood, the parameters and their covariance."""
        variance = 1 + size**2 * np.maximum(self._sizes, 0.0)
        scaled = self._columns / variance[:, None]
        normal = scaled.T @ self._columns + self._prior
        covariance = linalg.inv(normal, check_finite=False)
        values = covariance @ (scaled.T @ self._logs)
        missed = self._logs - self._columns @ values
        of_noise = self._log_noise + float(np.log(variance).sum())
        of_normal = float(np.linalg.slogdet(normal)[1])
        squares = float(missed @ (missed / variance))
        return -0.5 * (of_noise + of_normal + squares), values, covariance


def _prior(place: int) -> float:
    """Return the weight of a size: how much of the range it stands for, times a half Cauchy."""
    before = SIZES[max(place - 1, 0)]
    after = SIZES[place + 1] if place + 1 < len(SIZES) else 2 * SIZES[place] - before
    return (after - before) / 2 / (1 + (SIZES[place] / USUAL) ** 2)


def _averaged(guesses: Sequence[_Guess], count: int, replicated: int) -> Levels:
    best = max(guess.likelihood for guess in guesses)
    weights = np.array([math.exp(guess.likelihood - best) * guess.prior for guess in guesses])
    weights /= weights.sum()
    values = sum(w * guess.values for w, guess in zip(weights, guesses, strict=True))
    covariance = sum(
        w * (guess.covariance + np.outer(guess.values - values, guess.values - values))
        for w, guess in zip(weights, guesses, strict=True)
    )
    assert isinstance(values, np.ndarray)  # there is a guess or more
    assert isinstance(covariance, np.ndarray)
    still = max(guess.likelihood for guess in guesses if guess.size == 0.0)
    speed = _speed(
        guesses, weights, best - still > SURELY, values[count:], covariance[count:, count:]
    )
    errors = np.sqrt(np.diag(covariance)[:count])
    if speed.sure or speed.drifts:
        errors = np.maximum(errors, _exceeded(guesses, weights, count))
    freedom = max(float(replicated), 1.0)
    return Levels(values[:count], covariance[:count, :count], speed, freedom, errors)


def _exceeded(guesses: Sequence[_Guess], weights: Array, count: int) -> Array:
    """Return each level's standard error that is exceeded only by what `SELECTED` leaves out."""
    errors = np.sqrt([np.diag(guess.covariance)[:count] for guess in guesses])
    order = np.argsort(errors, axis=0)
    reached = np.cumsum(weights[order], axis=0) >= SELECTED
    place = np.take_along_axis(order, reached.argmax(axis=0)[None, :], axis=0)
    return np.asarray(np.take_along_axis(errors, place, axis=0)[0], np.float64)


def _speed(
    guesses: Sequence[_Guess], weights: Array, sure: bool, trend: Array, covariance: Array
) -> Speed:
    sizes = np.array([guess.size for guess in guesses])
    of_size = np.array([weights[sizes == size].sum() for size in SIZES])
    up_to = np.cumsum(of_size)
    low, middle, high = (float(np.interp(share, up_to, SIZES)) for share in (0.025, 0.5, 0.975))
    change = float(trend[0]) if len(trend) else 0.0
    error = math.sqrt(float(covariance[0, 0])) if len(trend) else math.inf
    return Speed(middle, low, high, sure, change, error)
