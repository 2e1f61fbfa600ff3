"""Means of the visits of caps, without transients and outliers."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from training.fit.dynamics import Dynamics, Settled, settled_of
from training.recording.recording import Phase, Sample

Array = npt.NDArray[np.float64]

SETTLED: Final = 0.5
"""Weight of its own cap in a sample, below which subtracting the rest is a guess."""
STRAY: Final = 5.0
"""Median absolute deviations, scaled as those of a normal distribution, beyond which a sample is an
outlier."""
AS_NORMAL: Final = 1.4826
LEAST_STRAY: Final = 0.02
"""A sample nearer to its visit's median than this share is no outlier, however quiet the others
are."""
UNKNOWN: Final = 100.0
"""Larger errors are limited to this share: the value is unknown either way."""
FEW: Final = 3
"""With fewer samples, the outlier cannot be identified."""
MANY: Final = 4
"""At most one in this many samples of a visit may be an outlier."""
OWN: Final = 12.0
"""Degrees of freedom that the pooled noise adds to each cap's own."""


class Outlier(msgspec.Struct, frozen=True):
    """A sample left out, since it is far from the others of its visit; packets/s."""

    at: float
    cap: float | None
    throughput_pps: float
    usual_pps: float


@dataclass(frozen=True)
class VisitMean:
    """One visit of one cap."""

    cap: float | None
    """In CPUs; None is uncapped."""
    phase: Phase
    at: float
    """The middle of its samples, in seconds."""
    mean: float
    """Packets/s, from all of its samples but outliers, without the transient of the cap before."""
    rates: tuple[float, ...]
    """Packets/s of each sample, likewise."""
    spread: tuple[float, ...]
    """Effect of the error of each sample of the sweep on the mean."""
    bound: float | None
    """The share of samples in which the cap limited the router; None if unknown."""
    offered: float | None
    """Packets/s of its first sample, if known."""
    packet_bytes: int | None = None
    """Of its first sample, if known."""
    used: float | None = None
    """CPUs used on average, if the platform counts them."""

    @property
    def squares(self) -> float:
        """The sum of squares about the mean, as shares of it."""
        mean = math.fsum(self.rates) / len(self.rates)
        return sum((rate / mean - 1) ** 2 for rate in self.rates) if mean > 0 else 0.0


@dataclass(frozen=True)
class Means:
    """The means of all visits of a sweep."""

    visits: tuple[VisitMean, ...]
    """In the order of time."""
    outliers: tuple[Outlier, ...]
    """The samples left out."""
    errors: Array
    """The covariance of their means by the noise of samples, as shares."""
    middle: float
    """The middle of the sweep, in seconds."""


def means_of(samples: Sequence[Sample], period: float, host: Dynamics | None) -> Means:
    """Return the means of all visits.

    Args:
        samples: all of a sweep, in the order of their time.
        period: seconds from one sample to the next.
        host: its lag and delay; None if not known: samples are then used as they are.
    """
    if not samples:
        return Means((), (), np.zeros((0, 0)), 0.0)
    steady = np.array([sample.phase != "settling" for sample in samples])
    first = settled_of(samples, period, host, steady)
    counted = steady & (first.own >= SETTLED)
    outliers = _outliers(samples, first, counted)
    counted[list(outliers)] = False
    found = settled_of(samples, period, host, counted)
    visits = tuple(_visits(samples, found, counted))
    middle = (samples[0].at + samples[-1].at) / 2
    return Means(visits, tuple(outliers.values()), _errors(samples, found, visits), middle)


def _errors(samples: Sequence[Sample], found: Settled, visits: Sequence[VisitMean]) -> Array:
    """Return the covariance of visits' means, as shares, by the noise of each sample's cap."""
    if not visits:
        return np.zeros((0, 0))
    noise = noise_by_cap(visits)
    levels = zip(samples, found.levels[found.visit], strict=True)
    errors = np.array([noise.get(sample.cap, 0.0) * level for sample, level in levels])
    means = np.array([max(visit.mean, 1e-9) for visit in visits])
    scaled = np.array([visit.spread for visit in visits]) * errors / means[:, None]
    size = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled *= np.minimum(1.0, UNKNOWN / np.maximum(size, 1e-300))
    return np.asarray(scaled @ scaled.T, np.float64)


def _visits(
    samples: Sequence[Sample], found: Settled, counted: npt.NDArray[np.bool_]
) -> Iterator[VisitMean]:
    """Yield the visits that have samples to count."""
    for number, level in enumerate(found.levels):
        chosen = np.flatnonzero((found.visit == number) & counted)
        if not len(chosen):
            continue
        own = [samples[int(index)] for index in chosen]
        bound = [sample.binding for sample in own if sample.binding is not None]
        used = [sample.used for sample in own if sample.used is not None]
        yield VisitMean(
            cap=own[0].cap,
            phase=own[0].phase,
            at=(own[0].at + own[-1].at) / 2,
            mean=max(float(level), 0.0),
            rates=tuple(max(float(rate), 0.0) for rate in found.rates[chosen]),
            spread=tuple(map(float, found.spread[number])),
            bound=sum(bound) / len(bound) if bound else None,
            offered=own[0].offered_pps,
            packet_bytes=own[0].packet_bytes,
            used=math.fsum(used) / len(used) if used else None,
        )


def _outliers(
    samples: Sequence[Sample], found: Settled, counted: npt.NDArray[np.bool_]
) -> dict[int, Outlier]:
    """Return the indices of the samples that are too far from the others of their visit."""
    visits = [np.flatnonzero((found.visit == n) & counted) for n in range(len(found.levels))]
    noise = _usual([found.rates[chosen].tolist() for chosen in visits])
    strays = dict[int, Outlier]()
    for chosen in visits:
        middle, far = _strays(found.rates[chosen].tolist(), noise)
        for index in chosen[far]:
            sample = samples[int(index)]
            strays[int(index)] = Outlier(sample.at, sample.cap, sample.throughput_pps, middle)
    return strays


def noise_by_cap(means: Sequence[VisitMean]) -> dict[float | None, float]:
    """Return the standard deviation of a sample at each cap, as a share of its mean.

    The estimate for one cap is imprecise, so it is pooled with that of all caps.
    """
    groups: dict[float | None, list[VisitMean]] = {}
    for mean in means:
        groups.setdefault(mean.cap, []).append(mean)
    spread = {cap: _spread(group) for cap, group in groups.items()}
    free = sum(freedom for _, freedom in spread.values())
    common = sum(squares for squares, _ in spread.values()) / max(free, 1)
    return {
        cap: math.sqrt((squares + OWN * common) / (freedom + OWN))
        for cap, (squares, freedom) in spread.items()
    }


def scatter_of(means: Sequence[VisitMean]) -> float:
    """Return the standard deviation of a sample of one cap's visits, as a share of its mean."""
    squares, freedom = _spread(means)
    return math.sqrt(squares / freedom) if freedom else 0.0


def _spread(means: Sequence[VisitMean]) -> tuple[float, int]:
    return sum(one.squares for one in means), sum(len(one.rates) - 1 for one in means)


def _usual(visits: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of a sample about its visit's median, as a share."""
    away = [
        abs(rate / middle - 1)
        for visit in visits
        if len(visit) >= FEW and (middle := statistics.median(visit)) > 0
        for rate in visit
    ]
    return AS_NORMAL * statistics.median(away) if away else 0.0


def _strays(visit: Sequence[float], noise: float) -> tuple[float, npt.NDArray[np.bool_]]:
    """Return a visit's median, and which samples are too far from it.

    The visit's own scatter counts if it is larger: small caps are noisier than large ones.
    """
    if len(visit) < FEW or (middle := statistics.median(visit)) <= 0:
        return 0.0, np.zeros(len(visit), np.bool_)
    away = np.abs(np.array(visit) - middle)
    own = AS_NORMAL * statistics.median(away.tolist())
    far = away > max(STRAY * max(noise * middle, own), LEAST_STRAY * middle)
    # If many are far, the router behaves that way at this cap.
    return middle, far if far.sum() <= max(1, len(visit) // MANY) else np.zeros(
        len(visit), np.bool_
    )
