"""The arrays of the simulators, and the sum that they use throughout."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


def sums(of: Indices, weights: Floats, length: int) -> Floats:
    """Return for each index the sum of the weights that belong to it, shape (length,).

    Indices without a weight get 0.
    """
    return np.bincount(of, weights, length).astype(np.float64, copy=False)
