"""Joint estimate from all visits: each cap's level, and the change of the host's speed.

A mixed model of the logarithm of each visit's mean (ADR 0045):

    log mean = level of its cap + trend over time + speed at that time + noise of its samples

The speed is random: one part changes at each visit, one part drifts (exponential correlation over
time). The sizes of the parts are unknown, and few visits say little about them. So all results are
averaged over a grid of sizes, each weighted by how well it explains the visits (restricted
likelihood, Patterson and Thompson 1971, times a weak prior). If no cap was visited twice, only the
prior remains, and the intervals are as wide.
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
"""Grid of standard deviations of the speed, as shares."""
USUAL: Final = 0.015
"""Scale of the prior on them (half Cauchy): most hosts vary by a percent or two."""
DRIFTING: Final = (0.5, 1.0)
"""Shares of the variance that drift instead of changing at each visit; 0 is tried as well."""
STEADY: Final = 0.5
"""Standard deviation of the prior on the trend: hosts do not double their speed within a sweep."""
MEMORIES: Final = (1 / 50, 1 / 15, 1 / 5)
"""Correlation times of the drift, as shares of the whole time."""
LEAST: Final = 1e-8
"""Variance added to every visit, so that exact ones can be weighted, too."""
SELECTED: Final = 0.95
"""Quantile of the likely errors that is reported for a host with a changed speed. Models are kept
if the speed seems to change little, and such an estimate is more often too small than too large:
with the mean error, the intervals of kept models would be too narrow."""
SURELY: Final = 5.99 / 2
"""Logarithm of the likelihood ratio above which a size differs from 0 (chi-square of 95 %, for size
and memory)."""


class Visit(NamedTuple):
    """One visit's mean, as input to the model."""

    at: float
    """The middle of its samples, in seconds."""
    level: int
    """The number of its cap, from 0."""
    log_mean: float


@dataclass(frozen=True)
class Speed:
    """Change of the host's speed between visits, as shares."""

    sd: float
    """Standard deviation from one visit to another; the median of what is likely."""
    low: float
    high: float
    """Its 95 % interval."""
    sure: bool
    """Whether it changed by more than the noise of the samples explains."""
    trend: float
    """Change over the whole time, as a share of the speed at its middle."""
    trend_error: float

    @property
    def drifts(self) -> bool:
        """Whether the trend is significant."""
        return abs(self.trend) > 2 * self.trend_error


@dataclass(frozen=True)
class Levels:
    """Each cap's level and its uncertainty."""

    logs: Array
    """Logarithm of the packets/s at the reference time of the trend, one per level."""
    covariance: Array
    """Of shape (levels, levels)."""
    speed: Speed
    freedom: float
    """Degrees of freedom behind the covariance."""
    selected: Array
    """Standard error of each level as a share, for intervals of models that are kept since they
    seem good (`SELECTED`); if no change of the speed is certain, equal to ``errors``."""

    def errors(self) -> Array:
        """Return the standard error of each level, as a share."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), np.float64)


class _Guess(NamedTuple):
    """One size of the speed's changes, and the estimate under it."""

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
        middle: reference time of the levels, in seconds.
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
    """The visits in coordinates that make noise and change of speed both independent."""

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
    """Return the weight of a size: its part of the range, times a half Cauchy."""
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
    assert isinstance(values, np.ndarray)  # there is at least one guess
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
    """Return the `SELECTED` quantile of each level's standard error."""
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
