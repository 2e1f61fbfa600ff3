"""The arrays of the simulators, with the sum and the index of fairness that they share."""

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


def jain(values: Floats) -> float:
    """Return Jain's index, (sum x)^2 / (n sum x^2); 1 where all are 0, and so the same."""
    squares = float((values**2).sum()) * len(values)
    return float(values.sum()) ** 2 / squares if squares else 1.0
