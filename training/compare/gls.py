"""One value behind several measured ones whose errors are correlated: generalized least squares."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from training.fit.interval import Interval, quantile
from training.fit.points import MANY

Array = npt.NDArray[np.float64]

LEAST = 1e-8
"""Variance that every value has, so that exact ones can be weighed, too."""
PRIOR = 2.0
"""Repeated visits that the prior on a host's speed (`training.fit.levels`) counts for, where a few
values are tested: two visits of a cap alone say too little of how much visits differ."""


@dataclass(frozen=True)
class Common:
    """The one value, and whether it explains all of them."""

    value: float
    error: float
    """Standard error of the value."""
    chance: float
    """Probability that chance alone puts the values so far from one value; 1 for a single value."""
    deviations: Array
    """How far each value is from the one that the others give, in standard errors."""


def common_of(values: Array, covariance: Array, freedom: float) -> Common:
    """Return the one value behind one value or more with that covariance.

    The covariance carries what the values share, such as the speed of one sweep, so that ten
    values with one shared error count as little more than one.

    Args:
        values: logarithms.
        covariance: theirs.
        freedom: repeated visits that the covariance rests on.
    """
    over = len(values) - 1
    weight = np.linalg.inv(covariance + LEAST * np.eye(len(values)))
    summed = weight.sum(axis=1)
    precision = float(summed.sum())
    value = float(summed @ values) / precision
    missed = values - value
    pulled = weight @ missed
    own = np.diag(weight) - summed**2 / precision
    squares = float(missed @ pulled)
    return Common(
        value=value,
        error=1 / math.sqrt(precision),
        chance=float(stats.f.sf(squares / over, over, freedom + PRIOR)) if over else 1.0,
        deviations=pulled / np.sqrt(np.maximum(own, 1e-300)) if over else np.zeros(1),
    )


def ratio_interval(log: float, error: float) -> Interval:
    """Return the 95 % interval of a ratio from its logarithm and that one's standard error."""
    half = quantile(MANY) * error
    return Interval(math.exp(log), math.exp(log - half), math.exp(log + half))


def log_error(found: Interval) -> float:
    """Return the standard error of the logarithm behind an interval of `ratio_interval`'s kind."""
    return math.log(found.high / found.value) / quantile(MANY)
