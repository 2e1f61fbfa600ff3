"""One value behind several with correlated errors: generalized least squares."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from training.fit.interval import Interval, beyond, quantile
from training.fit.points import MANY

Array = npt.NDArray[np.float64]

LEAST = 1e-8
"""Variance added to every value, so that exact ones can be weighted, too."""
PRIOR = 2.0
"""Repeated visits that the prior on a host's speed (`training.fit.levels`) is worth in tests of a
few values: two visits of one cap say too little about how much visits differ."""


@dataclass(frozen=True)
class Common:
    """The common value, and whether it explains all values."""

    value: float
    error: float
    """Standard error of the value."""
    chance: float
    """Probability that chance alone scatters the values so far; 1 for a single value."""
    deviations: Array
    """Distance of each value from the one that the others give, in standard errors."""


def common_of(values: Array, covariance: Array, freedom: float) -> Common:
    """Return the common value behind one value or more with that covariance.

    The covariance includes shared errors, such as the speed of one sweep. Ten values with one
    shared error count as little more than one.

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
        chance=beyond(squares / over, over, freedom + PRIOR) if over else 1.0,
        deviations=pulled / np.sqrt(np.maximum(own, 1e-300)) if over else np.zeros(1),
    )


def ratio_interval(log: float, error: float) -> Interval:
    """Return the 95 % interval of a ratio from its logarithm and the standard error of that."""
    half = quantile(MANY) * error
    return Interval(math.exp(log), math.exp(log - half), math.exp(log + half))


def log_error(found: Interval) -> float:
    """Return the standard error of the logarithm behind an interval of `ratio_interval`'s kind."""
    return math.log(found.high / found.value) / quantile(MANY)
