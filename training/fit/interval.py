"""An estimate with its 95 % confidence interval."""

from functools import lru_cache

import msgspec
from scipy import special

CONFIDENCE = 0.95


class Interval(msgspec.Struct, frozen=True):
    """An estimate and its 95 % confidence interval (Student's t)."""

    value: float
    low: float
    high: float


def interval(value: float, error: float, freedom: float) -> Interval:
    """Return the 95 % interval of an estimate with that standard error and degrees of freedom."""
    half = quantile(max(freedom, 1.0)) * error
    return Interval(value, value - half, value + half)


@lru_cache(maxsize=1024)
def quantile(freedom: float) -> float:
    """Return Student's t for the confidence; `scipy.stats` takes a second to load."""
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def beyond(ratio: float, over: float, freedom: float) -> float:
    """Return the probability of a larger ratio of two variances, by the F distribution.

    Args:
        ratio: of the variances; one that rounding makes negative counts as 0.
        over: degrees of freedom of the upper one.
        freedom: of the lower one.
    """
    return float(special.fdtrc(over, freedom, max(ratio, 0.0)))
