"""Figures that rate a run, from (instant, value) samples: one definition for all."""

import math
from collections.abc import Sequence

BAND = 0.05
WINDOW = 10.0
"""Seconds that must have a mean within the band for a loop to count as settled at their start."""

Samples = Sequence[tuple[float, float]]


def mean(samples: Samples) -> float:
    """Return the mean value."""
    return math.fsum(value for _, value in samples) / len(samples)


def relative_rmse(samples: Samples) -> float:
    """Return the RMSE about the mean, as a share of the mean (paper, section 7.1)."""
    centre = mean(samples)
    square = math.fsum((value - centre) ** 2 for _, value in samples) / len(samples)
    return math.sqrt(square) / centre if centre else math.inf


def settling(samples: Samples, start: float, setpoint: float) -> float | None:
    """Return the seconds from start until the mean of the next ten is within 5 % of the setpoint.

    A sample belongs to the second that ends with it, so a loop that is right from its first cap
    on has settled after 0 s. None: it did not settle while ten seconds were left.
    """
    later = [sample for sample in samples if sample[0] > start + 0.5]
    for index, (at, _) in enumerate(later):
        window = [s for s in later[index:] if s[0] < at + WINDOW - 0.5]
        if len(window) < WINDOW:
            return None
        if abs(mean(window) / setpoint - 1) <= BAND:
            return max(0.0, round(at - start - 1.0, 1))
    return None
