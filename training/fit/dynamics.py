"""Lag and delay: how a change of cap decays from sample to sample, estimated from all visits.

The host is a first-order filter between cap and throughput, after a delay of some whole samples:
x(k+1) = a·x(k) + (1 - a)·L(k - delay), where L is the level of the visit (Eq. 1 of the paper with
the curve left free, ADR 0045). For a given lag and delay the samples are linear in the levels, so
least squares for the levels leave two parameters to search. Each visit of a cap is a step response,
even if samples of it were discarded: the clock says how many. Noise of the meter does not bias `a`
towards 0, as it does in a regression of each sample on the one before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import optimize

from models.host import MAX_DELAY
from training.errors import UnfitError
from training.fit.interval import Interval, interval
from training.recording.recording import Sample

Array = npt.NDArray[np.float64]

LARGEST: Final = 0.97
"""A host that keeps more of a step after a sample cannot be distinguished from one that never
answers."""
COARSE: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.94)
"""Lags tried for each delay before the best is refined."""
LONGEST_GAP: Final = 60
"""Samples of a gap in the recording after which any host has settled."""
LARGEST_GRID: Final = 50_000_000
"""Periods times visits at most: each array of them takes 400 MB. A sweep of an hour at a period of
1 s has a few per cent of that."""
LEAST_RATE: Final = 0.1
"""Throughputs below this share of the largest are raised to it to compute relative errors."""
ROUNDS: Final = 2
"""Iterations that recompute the weights from the levels."""
RIDGE: Final = 1e-12
"""Regularization of the least squares, as a share of the largest squares."""
TINY: Final = 1e-100
"""Squares used if no sample counts: the levels are then 0."""
EXACT: Final = 1e-24
"""Squares below this share are rounding errors."""


class Dynamics(msgspec.Struct, frozen=True):
    """Response of a host to a change of cap."""

    lag: Interval
    """`a` of Eq. 1: the share of a step that is left one sample later."""
    delay: int
    """Whole samples before a cap has any effect."""
    changes: int
    """Number of changes of cap that were followed."""

    def settling(self, share: float) -> int:
        """Return the samples after a change of cap until surely less than a share is left."""
        a = min(max(self.lag.high, 0.0), LARGEST)
        return self.delay + (1 if a < share else math.ceil(math.log(share) / math.log(a)))


@dataclass(frozen=True)
class Grid:
    """A recording on the grid of its periods: the visit in force, and the periods with a sample."""

    acting: npt.NDArray[np.int64]
    """For each period the index of the visit with the cap in force."""
    sampled: npt.NDArray[np.int64]
    """The periods that have a sample."""
    rates: Array
    """Packets/s of each sample."""

    @property
    def visits(self) -> int:
        """Number of visits."""
        return int(self.acting[-1]) + 1


def grid_of(samples: Sequence[Sample], period: float) -> Grid:
    """Lay samples, one or more and in the order of their time, on the grid of periods.

    A cap comes into force right after the last sample of the one before.

    Raises:
        UnfitError: there are too many periods and visits.
    """
    forced = [(sample.visit, sample.cap) for sample in samples]
    changed = [0, *(before != after for before, after in pairwise(forced))]
    gaps = np.diff(np.array([sample.at for sample in samples])) / period
    steps = np.append(1, np.clip(np.rint(gaps), 1, LONGEST_GAP).astype(np.int64))
    _check_grid(int(steps.sum()), sum(changed) + 1)
    rates = np.array([sample.throughput_pps for sample in samples])
    return Grid(np.repeat(np.cumsum(changed), steps), np.cumsum(steps) - 1, rates)


def _check_grid(periods: int, visits: int) -> None:
    if periods * visits > LARGEST_GRID:
        problem = f"{visits} visits in {periods} periods are too many to fit"
        fix = "look at at_s and visit: a sweep has some samples of each visit, and few gaps"
        raise UnfitError("samples", problem, fix)


def shares(grid: Grid, lag: float, delay: int) -> Array:
    """Return the weight of each visit's level in each sample, of shape (samples, visits)."""
    return _delayed(grid, _filtered(grid, lag), delay)


def _filtered(grid: Grid, lag: float) -> Array:
    """Return the weight of each visit's level in each period without a delay.

    It rises towards 1 while the visit lasts, and decays after that. The first visit's is 1 from the
    beginning.
    """
    periods, visits = np.arange(len(grid.acting)), np.arange(grid.visits)
    begun = np.searchsorted(grid.acting, visits, side="left")
    ended = np.searchsorted(grid.acting, visits, side="right")
    left = np.maximum(lag, 0.0) ** np.arange(len(periods) + 1.0)
    found = left[np.maximum(periods[:, None] + 1 - ended, 0)]
    found[:, 1:] -= left[np.maximum(periods[:, None] + 1 - begun[1:], 0)]
    return np.asarray(found, np.float64)


def _delayed(grid: Grid, filtered: Array, delay: int) -> Array:
    """Return the rows that have samples; the host had settled before the first."""
    return np.asarray(filtered[np.maximum(grid.sampled - delay, 0)], np.float64)


def dynamics_of(samples: Sequence[Sample], period: float) -> Dynamics | None:
    """Return lag and delay; None if there is no sample after a change of cap."""
    if not samples:
        return None
    grid = grid_of(samples, period)
    if grid.visits < 2 or len(grid.rates) < grid.visits + 2:
        return None
    weights = _weights(grid, grid.rates)
    lag, delay = _coarse(grid, weights)
    for _ in range(ROUNDS):
        lag, delay = _refined(grid, weights, lag, delay)
        weights = _weights(grid, shares(grid, lag, delay) @ _levels(grid, weights, lag, delay)[0])
    return Dynamics(_interval(grid, weights, lag, delay), delay, grid.visits - 1)


class Settled(NamedTuple):
    """Samples without their transients, and the levels used for that."""

    rates: Array
    """Packets/s of each sample as if its cap had been in force for long."""
    own: Array
    """Weight of its own cap in each sample, 0 to 1."""
    levels: Array
    """Packets/s of each visit."""
    spread: Array
    """Effect of each sample's error on each level, of shape (visits, samples)."""
    visit: npt.NDArray[np.int64]
    """The visit of each sample, counted in the order of time."""


def settled_of(
    samples: Sequence[Sample], period: float, host: Dynamics | None, counted: npt.NDArray[np.bool_]
) -> Settled:
    """Subtract what is left of earlier caps, which follows from lag, delay and levels.

    Args:
        samples: one or more, in the order of their time.
        period: seconds from one sample to the next.
        host: its lag and delay; None means neither.
        counted: the samples used for the levels.
    """
    grid = grid_of(samples, period)
    lag = 0.0 if host is None else min(max(host.lag.value, 0.0), LARGEST)
    part = shares(grid, lag, 0 if host is None else host.delay)
    weights = _weights(grid, grid.rates) * counted
    visit = grid.acting[grid.sampled]
    for _ in range(ROUNDS):
        scaled = part * weights[:, None]
        spread = np.linalg.solve(_normal(scaled), scaled.T) * weights
        levels = np.asarray(spread @ grid.rates, np.float64)
        weights = _weights(grid, part @ levels) * counted
    rates = grid.rates + levels[visit] - part @ levels
    return Settled(rates, part[np.arange(len(part)), visit], levels, spread, visit)


def _weights(grid: Grid, rates: Array) -> Array:
    """Return the weights that make errors relative to throughput, as noise mostly is."""
    least = max(LEAST_RATE * float(grid.rates.max()), 1e-9)
    return 1.0 / np.maximum(rates, least)


def _coarse(grid: Grid, weights: Array) -> tuple[float, int]:
    """Return the best of some lags and all delays."""
    tried = list[tuple[float, float, int]]()
    for lag in COARSE:
        filtered = _filtered(grid, lag)
        for delay in range(MAX_DELAY + 1):
            squares = _solved(grid, weights, _delayed(grid, filtered, delay))[1]
            tried.append((_price(grid, squares, delay), lag, delay))
    _, lag, delay = min(tried)
    return lag, delay


def _refined(grid: Grid, weights: Array, lag: float, delay: int) -> tuple[float, int]:
    """Return the lag and the delay with the least squares near given ones."""
    known = sum(coarse < lag for coarse in COARSE)
    bounds = COARSE[max(known - 2, 0)], (*COARSE, LARGEST)[min(known + 1, len(COARSE))]
    tried = [(_cost(grid, weights, 0.0, delay), 0.0, delay)]
    for near in {delay, max(delay - 1, 0)}:
        found = optimize.minimize_scalar(
            lambda lag, delay=near: _cost(grid, weights, lag, delay),
            bounds=bounds,
            method="bounded",
            options={"xatol": 1e-8},
        )
        tried.append((float(found.fun), float(found.x), near))
    _, lag, delay = min(tried)
    return lag, delay


def _cost(grid: Grid, weights: Array, lag: float, delay: int) -> float:
    return _price(grid, _levels(grid, weights, lag, delay)[1], delay)


def _price(grid: Grid, squares: float, delay: int) -> float:
    """Return n·ln(squares), with a penalty for a delay (Schwarz's criterion)."""
    count = len(grid.rates)
    return count * math.log(max(squares, EXACT * count)) + (math.log(count) if delay else 0.0)


def _levels(grid: Grid, weights: Array, lag: float, delay: int) -> tuple[Array, float]:
    """Return each visit's level and the weighted residual squares."""
    return _solved(grid, weights, shares(grid, lag, delay))


def _solved(grid: Grid, weights: Array, part: Array) -> tuple[Array, float]:
    scaled, rates = part * weights[:, None], grid.rates * weights
    levels = np.linalg.solve(_normal(scaled), scaled.T @ rates)
    missed = rates - scaled @ levels
    return np.asarray(levels, np.float64), float(missed @ missed)


def _normal(part: Array) -> Array:
    """Return the matrix to invert; a visit that ended before its cap showed has level 0."""
    normal = part.T @ part
    ridge = RIDGE * max(float(np.trace(normal)), TINY)
    return np.asarray(normal + ridge * np.eye(len(normal)), np.float64)


def _interval(grid: Grid, weights: Array, lag: float, delay: int) -> Interval:
    """Return the lag's 95 % interval, from how fast the squares rise on either side."""
    _, squares = _levels(grid, weights, lag, delay)
    freedom = len(grid.rates) - grid.visits - 1
    step = 0.02 if lag <= LARGEST - 0.02 else -0.02
    rise = _levels(grid, weights, lag + step, delay)[1] - squares
    bend = max(rise, 1e-12) / step**2
    return interval(lag, math.sqrt(max(squares, 0.0) / max(freedom, 1) / bend), freedom)
