"""Least squares of the four shapes: a rise that is linear in a known function of the cap, clipped.

A hinge rises with u, an affine hinge with c + u, a logarithm with c + log10(u), a power law with
u^p, where u is the cap. Each is clipped at zero and at a top. Which caps are below the rise, on it
and on the top is unknown, so every division of the caps is tried, all of them in one vectorized
step.
"""

import math
from functools import cache
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Name = Literal["hinge", "affine hinge", "logarithm", "power law"]

NAMES: Final[tuple[Name, ...]] = ("hinge", "affine hinge", "logarithm", "power law")
"""The simplest shape is the first."""
PARAMETERS: Final[dict[Name, int]] = {
    "hinge": 2,
    "affine hinge": 3,
    "logarithm": 3,
    "power law": 3,
}
FROM_ZERO: Final[tuple[Name, ...]] = ("hinge", "power law")
"""The shapes that rise from zero."""
POWERS: Final = (0.1, 4.0)
"""Exponents between which a power law is searched."""
COARSE, FINE, ZOOMS = 33, 9, 7
"""Exponents tried first, and at each refinement; the final precision is about 1e-5."""
EVEN: Final = 1e-12
"""Share of its scale below which a sum of squares about a mean is 0."""


class Line(NamedTuple):
    """A fitted shape's parameters: clip(offset + slope * f(cap), 0, top)."""

    name: Name
    slope: float
    offset: float
    top: float
    power: float
    """Exponent of the cap; 1 unless the shape is a power law."""

    def at(self, caps: Array) -> Array:
        """Return throughput at caps in CPUs."""
        basis = _basis(self.name, caps, np.array([self.power]))[0]
        return np.asarray(np.clip(self.offset + self.slope * basis, 0.0, self.top), np.float64)


def fitted(name: Name, caps: Array, rates: Array, weights: Array) -> Line:
    """Return the weighted least squares of one shape.

    Args:
        name: of the shape.
        caps: in CPUs, rising; more than the shape has parameters.
        rates: throughput at each.
        weights: weight of each squared error.
    """
    powers = np.geomspace(*POWERS, COARSE) if name == "power law" else np.ones(1)
    best = _best(name, caps, rates, weights, powers)
    ratio = (POWERS[1] / POWERS[0]) ** (1 / (COARSE - 1))
    for _ in range(ZOOMS if name == "power law" else 0):
        near = best[1].power * ratio ** np.linspace(-1.0, 1.0, FINE)
        best = min(best, _best(name, caps, rates, weights, near), key=lambda found: found[0])
        ratio **= 2 / (FINE - 1)
    return best[1]


def _basis(name: Name, caps: Array, powers: Array) -> Array:
    """Return f(cap) for each power and cap."""
    return np.log10(caps)[None, :] if name == "logarithm" else caps[None, :] ** powers[:, None]


def _best(
    name: Name, caps: Array, rates: Array, weights: Array, powers: Array
) -> tuple[float, Line]:
    """Return the least weighted sum of squares over all powers and divisions, and its line."""
    basis = _basis(name, caps, powers)
    inside, tops_from = _divisions(name, len(rates))
    slope, offset = _lines(name, basis, rates, inside * weights)
    rises = offset[..., None] + slope[..., None] * basis[:, None, :]
    tops = _tops(rates, weights, tops_from)
    tops = np.where(np.isnan(tops), rises.max(axis=2), tops)
    tops = np.maximum(tops, 0.0)
    missed = rates - np.clip(rises, 0.0, tops[..., None])
    squares = (weights * missed**2).sum(axis=2)
    power, division = np.unravel_index(int(squares.argmin()), squares.shape)
    at = power, division
    line = Line(
        *(name, float(slope[at]), float(offset[at]), float(tops[at])), power=float(powers[power])
    )
    return float(squares[at]), line


@cache
def _divisions(name: Name, count: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return, for each division of the caps, which are on the rise and where the top begins.

    A cap at the knee itself may belong to neither. Shapes that rise from zero have no caps below
    the rise.
    """
    least = 1 if name in FROM_ZERO else 2
    firsts = range(1 if name in FROM_ZERO else count - least + 1)
    found = [
        (begin, end, top)
        for begin in firsts
        for end in range(begin + least, count + 1)
        for top in {end, min(end + 1, count)}
    ]
    begins, ends, tops = np.array(found, np.int64).T
    places = np.arange(count)
    return (places >= begins[:, None]) & (places < ends[:, None]), tops


def _lines(name: Name, basis: Array, rates: Array, part: Array) -> tuple[Array, Array]:
    """Return slope and offset of each division's rise, of shape (powers, divisions).

    `basis` is of shape (powers, caps), `part` the weight of each cap in each division, of shape
    (divisions, caps).
    """
    if name in FROM_ZERO:
        slope = (basis * rates) @ part.T / np.maximum(basis**2 @ part.T, 1e-300)
        return slope, np.zeros_like(slope)
    total = part.sum(axis=1)
    middle, mean = basis @ part.T / total, (part @ rates) / total
    away = basis[:, None, :] - middle[..., None]
    squares = (part * away**2).sum(axis=2)
    least = EVEN * (part * basis[:, None, :] ** 2).sum(axis=2)
    product = (part * away * (rates - mean[:, None])).sum(axis=2)
    slope = np.where(squares > least, product / np.maximum(squares, 1e-300), 0.0)
    return slope, mean - slope * middle


def _tops(rates: Array, weights: Array, begins: npt.NDArray[np.int64]) -> Array:
    """Return the mean from each index on; nan at the end."""
    weight = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    sums = np.append(np.cumsum((weights * rates)[::-1])[::-1], 0.0)
    means = np.append(sums[:-1] / weight[:-1], math.nan)
    return np.asarray(means[begins], np.float64)
