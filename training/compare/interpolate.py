"""Interpolate a measured curve between its caps, with the errors of the result."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import interpolate

Array = npt.NDArray[np.float64]

DOUBT = 0.5
"""Standard error of an interpolated value, as a share of the distance between a smooth curve and
straight lines over logarithms. It is zero at the measured caps and on power laws, hinges included.
"""


@dataclass(frozen=True)
class Interpolated:
    """Logarithms of a curve at the requested caps."""

    logs: Array
    weights: Array
    """What each measured logarithm contributes, of shape (asked, measured)."""
    doubt: Array
    """Standard error added by the interpolation."""

    def covariance(self, measured: Array) -> Array:
        """Return the covariance of the logarithms, from that of the measured ones."""
        return np.asarray(self.weights @ measured @ self.weights.T + np.diag(self.doubt**2))


def interpolated(caps: Sequence[float], logs: Array, wanted: Sequence[float]) -> Interpolated:
    """Interpolate a curve of two measured caps or more, in CPUs and rising, within their range.

    The value comes from a monotone cubic over the logarithm of the cap, since a bent curve is above
    its chords. The weights are those of straight lines: errors of the two neighbours.
    """
    known, at = np.log(np.array(caps)), np.log(np.array(wanted))
    right = np.clip(np.searchsorted(known, at), 1, len(known) - 1)
    share = (at - known[right - 1]) / (known[right] - known[right - 1])
    weights = np.zeros((len(at), len(known)))
    rows = np.arange(len(at))
    weights[rows, right - 1], weights[rows, right] = 1 - share, share
    smooth = np.asarray(interpolate.PchipInterpolator(known, logs)(at), np.float64)
    return Interpolated(smooth, weights, DOUBT * np.abs(smooth - weights @ logs))
