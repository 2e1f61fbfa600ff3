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
from collections.abc import Sequence
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


class _Guesses(NamedTuple):
    """Sizes of the speed's changes, and the estimate under each: the first axis of every array."""

    sizes: Array
    likelihoods: Array
    """Logarithms of the restricted likelihoods."""
    values: Array
    """Of shape (guesses, parameters)."""
    covariances: Array
    """Of shape (guesses, parameters, parameters)."""
    priors: Array


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
    guesses = _guesses(np.column_stack((columns, logs)), noise, since, trend=replicated >= 2)
    return _averaged(guesses, count, replicated)


def _guesses(data: Array, noise: Array, since: Array, *, trend: bool) -> _Guesses:
    """Estimate the parameters under each size and kind of change, all in one vectorized step.

    Args:
        data: a column for each parameter, and the logarithms.
        noise: the covariance of the logarithms by the noise of samples.
        since: the time of each visit.
        trend: whether the last parameter is the trend.
    """
    sizes, white, log_noise = _whitened(data, noise, since)
    model, logs = white[:, None, :, :-1], white[:, None, :, -1:]
    squared = np.square(SIZES)[:, None]
    variance = (1 + squared * np.maximum(sizes, 0.0)[:, None, :])[..., None]
    across = (model / variance).swapaxes(-1, -2)
    normal = across @ model
    if trend and since.any():
        normal[..., -1, -1] += STEADY**-2
    covariances = np.linalg.inv(normal)
    values = covariances @ (across @ logs)
    missed = logs - model @ values
    squares = (missed**2 / variance).sum(axis=(-1, -2))
    of_noise = log_noise + np.log(variance).sum(axis=(-1, -2))
    likelihoods = -0.5 * (of_noise + np.linalg.slogdet(normal)[1] + squares)
    kinds, count = len(white), data.shape[1] - 1
    return _Guesses(
        sizes=np.tile(SIZES, kinds),
        likelihoods=likelihoods.ravel(),
        values=values.reshape(-1, count),
        covariances=covariances.reshape(-1, count, count),
        priors=np.tile([_prior(place) / kinds for place in range(len(SIZES))], kinds),
    )


def _whitened(data: Array, noise: Array, since: Array) -> tuple[Array, Array, float]:
    """Turn the visits into coordinates that make noise and change of speed both independent.

    Returns:
        For each kind of change its variances there, for each kind the data there, and the
        logarithm of the determinant of the noise.
    """
    alone = np.eye(len(data))
    apart = np.abs(since[:, None] - since[None, :])
    drifts = [
        (1 - part) * alone + part * np.exp(-apart / memory)
        for part in DRIFTING
        for memory in MEMORIES
    ]
    root = np.linalg.cholesky(noise + LEAST * alone)
    inverse = linalg.solve_triangular(root, alone, lower=True, check_finite=False)
    sizes, turned = np.linalg.eigh(inverse @ np.array([alone, *drifts]) @ inverse.T)
    white = turned.swapaxes(-1, -2) @ (inverse @ data)
    return sizes, white, 2 * float(np.log(np.diag(root)).sum())


def _prior(place: int) -> float:
    """Return the weight of a size: its part of the range, times a half Cauchy."""
    before = SIZES[max(place - 1, 0)]
    after = SIZES[place + 1] if place + 1 < len(SIZES) else 2 * SIZES[place] - before
    return (after - before) / 2 / (1 + (SIZES[place] / USUAL) ** 2)


def _averaged(guesses: _Guesses, count: int, replicated: int) -> Levels:
    best = guesses.likelihoods.max()
    weights = np.exp(guesses.likelihoods - best) * guesses.priors
    weights /= weights.sum()
    values = weights @ guesses.values
    away = guesses.values - values
    spread = guesses.covariances + away[:, :, None] * away[:, None, :]
    covariance = np.tensordot(weights, spread, axes=1)
    still = guesses.likelihoods[guesses.sizes == 0.0].max()
    speed = _speed(
        guesses, weights, bool(best - still > SURELY), values[count:], covariance[count:, count:]
    )
    errors = np.sqrt(np.diag(covariance)[:count])
    if speed.sure or speed.drifts:
        errors = np.maximum(errors, _exceeded(guesses, weights, count))
    freedom = max(float(replicated), 1.0)
    return Levels(values[:count], covariance[:count, :count], speed, freedom, errors)


def _exceeded(guesses: _Guesses, weights: Array, count: int) -> Array:
    """Return the `SELECTED` quantile of each level's standard error."""
    errors = np.sqrt(np.diagonal(guesses.covariances, axis1=1, axis2=2)[:, :count])
    order = np.argsort(errors, axis=0)
    reached = np.cumsum(weights[order], axis=0) >= SELECTED
    place = np.take_along_axis(order, reached.argmax(axis=0)[None, :], axis=0)
    return np.asarray(np.take_along_axis(errors, place, axis=0)[0], np.float64)


def _speed(guesses: _Guesses, weights: Array, sure: bool, trend: Array, covariance: Array) -> Speed:
    of_size = np.array([weights[guesses.sizes == size].sum() for size in SIZES])
    up_to = np.cumsum(of_size)
    low, middle, high = (float(np.interp(share, up_to, SIZES)) for share in (0.025, 0.5, 0.975))
    change = float(trend[0]) if len(trend) else 0.0
    error = math.sqrt(float(covariance[0, 0])) if len(trend) else math.inf
    return Speed(middle, low, high, sure, change, error)
