"""Confidence intervals of repetitions, by Student's t distribution."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scipy.stats import t

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and the bounds of its 95 % interval; None: one value has no interval."""

    mean: float
    low: float | None
    high: float | None


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent repetitions with its interval.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("an interval needs at least one value")
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Interval(mean, None, None)
    error = statistics.stdev(values) / math.sqrt(len(values))
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * error
    return Interval(mean, mean - half, mean + half)
