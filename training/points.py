"""What was seen at each cap: means with intervals, the monotone curve, and the cap threshold."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from scipy import optimize, stats

from training.data import Sample

CONFIDENCE = 0.95
OWN_SAMPLES = 4
"""A cap with fewer samples than this borrows the scatter of all caps."""
THRESHOLD_SHARE = 0.01
"""What the throughput may still rise above the threshold, as a share of the top. The paper's rule
is 1 kp/s at an offered load of 100 kp/s (section 5.1): the same share."""
CHANCE = 2.0
"""Standard errors within which a cap's throughput is not below that of the caps above it."""


class Interval(msgspec.Struct, frozen=True):
    """An estimate and its 95 % confidence interval (Student's t)."""

    value: float
    low: float
    high: float


class CapPoint(msgspec.Struct, frozen=True):
    """What the samples at one cap say; throughputs in packets/s."""

    cap: float
    throughput_pps: Interval
    smoothed_pps: float
    """On the monotone curve through all means (isotonic regression)."""
    samples: int
    scatter: float
    """Standard deviation of a sample as a share of the mean; 0 for a single one."""
    binding: bool
    """Whether the cap held the router back in most samples; where nothing is known, it did."""


def interval(value: float, error: float, freedom: float) -> Interval:
    """Return the 95 % interval of an estimate with that standard error and degrees of freedom."""
    half = _quantile(max(freedom, 1.0)) * error
    return Interval(value, value - half, value + half)


@lru_cache(maxsize=1024)
def _quantile(freedom: float) -> float:
    """Return Student's t that the confidence asks for; scipy takes a tenth of a millisecond."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


def points_of(samples: Iterable[Sample]) -> tuple[CapPoint, ...]:
    """Return the points of the capped samples, by rising cap.

    The samples of one visit are not quite independent, so the intervals are somewhat too narrow
    on a host whose speed drifts.
    """
    groups: dict[float, list[Sample]] = {}
    for sample in samples:
        if sample.cap is not None:
            groups.setdefault(sample.cap, []).append(sample)
    ordered = [groups[cap] for cap in sorted(groups)]
    common, freedom = _common_scatter(ordered)
    points = [_point(group, common, freedom) for group in ordered]
    return _smoothed(points)


def standard_error(point: CapPoint) -> float:
    """Return about the standard error of a point's mean, in packets/s."""
    return (point.throughput_pps.high - point.throughput_pps.value) / 2


def pooled_scatter(points: Sequence[CapPoint]) -> float:
    """Return the standard deviation of a sample about its cap's mean, as a share, of all caps.

    That of one cap is known poorly: few samples stand behind it.
    """
    freedom = sum(point.samples - 1 for point in points)
    squares = sum((point.samples - 1) * point.scatter**2 for point in points)
    return math.sqrt(squares / max(freedom, 1))


def threshold_of(points: Sequence[CapPoint]) -> float:
    """Return the smallest cap from which on throughput rises no more, in CPUs.

    Either the monotone curve rises by less than 1 % of its top from there on, or what it lacks to
    the mean of all caps above is within the noise. One noisy cap at the top, which the curve
    follows, is only one of those caps.
    """
    least = (1 - THRESHOLD_SHARE) * points[-1].smoothed_pps
    return next(
        point.cap
        for index, point in enumerate(points)
        if point.smoothed_pps >= least or _on_plateau(points[index:])
    )


def _on_plateau(points: Sequence[CapPoint]) -> bool:
    """Whether the first of these points, two or more, is not surely below the rest of them."""
    scatter, first, rest = pooled_scatter(points), points[0], points[1:]
    count = sum(point.samples for point in rest)
    mean = sum(point.samples * point.throughput_pps.value for point in rest) / count
    doubt = scatter * mean * math.sqrt(1 / first.samples + 1 / count)
    return mean - first.smoothed_pps <= CHANCE * doubt


def _point(group: list[Sample], common: float, freedom: int) -> CapPoint:
    values = np.array([sample.throughput_pps for sample in group])
    mean = float(values.mean())
    own = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if len(values) >= OWN_SAMPLES:
        found = interval(mean, own / math.sqrt(len(values)), len(values) - 1)
    else:
        found = interval(mean, common * mean / math.sqrt(len(values)), freedom)
    free = sum(sample.binding is False for sample in group)
    return CapPoint(
        cap=float(group[0].cap or 0.0),
        throughput_pps=found,
        smoothed_pps=mean,
        samples=len(group),
        scatter=own / mean if mean > 0 else 0.0,
        binding=2 * free <= len(group),
    )


def _common_scatter(groups: Iterable[list[Sample]]) -> tuple[float, int]:
    """Return the standard deviation of a sample about its cap's mean, as a share, pooled."""
    squares, freedom = 0.0, 0
    for group in groups:
        values = np.array([sample.throughput_pps for sample in group])
        if len(values) > 1 and values.mean() > 0:
            squares += float(((values / values.mean() - 1) ** 2).sum())
            freedom += len(values) - 1
    return (math.sqrt(squares / freedom), freedom) if freedom else (0.0, 1)


def _smoothed(points: list[CapPoint]) -> tuple[CapPoint, ...]:
    """Lay the monotone curve of least squares through the means; noise grows with throughput."""
    if not points:
        return ()
    means = np.array([point.throughput_pps.value for point in points])
    least = max(float(means.max()) * 1e-3, 1e-9)
    weights = np.array([point.samples for point in points]) / np.maximum(means, least) ** 2
    curve = optimize.isotonic_regression(means, weights=weights).x
    return tuple(
        msgspec.structs.replace(point, smoothed_pps=float(rate))
        for point, rate in zip(points, curve, strict=True)
    )
