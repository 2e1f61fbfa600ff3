"""The curve: each cap's throughput with its interval, the monotone curve, its top and threshold.

Caps that limit the router form the rising part. From the threshold on they do not: all samples
there, uncapped ones included, are one plateau. Each part has its own mixed model
(`training.fit.levels`), since a load that limits the top hides the host's speed.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import optimize

from training.fit.interval import Interval, quantile
from training.fit.levels import Levels, Speed, Visit, levels_of
from training.fit.means import Means, means_of, scatter_of
from training.recording.recording import Phase, Sample

Array = npt.NDArray[np.float64]

THRESHOLD_SHARE: Final = 0.01
"""Rise of the throughput allowed above the threshold, as a share of the top. The paper's rule is 1
kp/s at an offered load of 100 kp/s (section 5.1): the same share."""
NEARLY: Final = 0.1
"""Largest shortfall of a cap on the plateau, however uncertain its mean is."""
CHANCE: Final = 2.0
"""Standard errors within which a cap's throughput counts as equal to that of the caps above it."""
SILENT: Final = 1e-4
"""Share of the largest throughput below which a cap counts as forwarding nothing."""
FREE: Final = 0.05
"""Largest difference between the uncapped router and the largest caps on one plateau."""
LOADED: Final = 0.95
"""Share of the offered load from which on the load limits the top."""
MANY: Final = 60.0
"""Degrees of freedom of the noise, estimated from all samples."""


class CapPoint(msgspec.Struct, frozen=True):
    """Estimate at one cap; throughputs in packets/s."""

    cap: float
    throughput_pps: Interval
    smoothed_pps: float
    """On the monotone curve through all means (isotonic regression)."""
    samples: int
    scatter: float
    """Standard deviation of a sample as a share of the mean; 0 for a single one."""
    binding: bool
    """Whether the cap limited the router in most samples; assumed if unknown."""
    error_pps: float
    """The likely standard error of the mean. The interval is wider if the host's speed changed: it
    corrects for the selection of models that seem good (`training.fit.levels.SELECTED`)."""


@dataclass(frozen=True)
class Rising:
    """The caps that limit the router, in the mixed model."""

    caps: tuple[float, ...]
    rates: Array
    """Packets/s of each."""
    covariance: Array
    """Of the rates' logarithms."""
    freedom: float
    """Degrees of freedom of the change between visits."""


@dataclass(frozen=True)
class Curve:
    """Throughput against cap, from a sweep."""

    points: tuple[CapPoint, ...]
    """Of the steady caps, by rising cap."""
    single: tuple[tuple[float, Interval], ...]
    """Each steady cap by itself, in packets/s, those of the plateau as well."""
    top: Interval
    """The largest throughput of the router, in packets/s."""
    knee: tuple[float, float]
    """The largest cap below the plateau, and the smallest on it (the last cap without a
    plateau)."""
    held_out: tuple[CapPoint, ...]
    speed: Speed | None
    """Change of the host's speed; None if no cap below the plateau was visited."""
    visits: int
    """Number of visits below the plateau, the basis of the above."""
    rising: Rising

    @property
    def threshold(self) -> float:
        """The smallest measured cap from which on throughput no longer rises, in CPUs."""
        return self.knee[1]


def points_of(samples: Sequence[Sample]) -> tuple[CapPoint, ...]:
    """Return the points of settled samples of one load, whatever their phase, by rising cap."""
    means = means_of([sample for sample in samples if sample.cap is not None], 1.0, None)
    visits = tuple(replace(visit, phase="steady") for visit in means.visits)
    return curve_of(replace(means, visits=visits)).points if visits else ()


def standard_error(found: Interval) -> float:
    """Return the approximate standard error behind an interval."""
    return (found.high - found.low) / 2 / quantile(MANY)


def curve_of(means: Means, offered: float | None = None) -> Curve:
    """Return the curve through visits of one load (packets/s, if known), of which one is steady."""
    return _Fitting(means, offered).curve()


class _Fitting:
    """The visits of a sweep by cap, while the curve is fitted to them."""

    def __init__(self, means: Means, offered: float | None) -> None:
        self._means, self._offered = means, offered
        self._groups: dict[float | None, list[int]] = {}
        for number, visit in enumerate(means.visits):
            self._groups.setdefault(visit.cap, []).append(number)
        self._steady = sorted(self._caps("steady"))
        self._most = max(map(self._rate, self._groups))
        loud = [cap for cap in self._groups if not self._silent(cap)]
        self._loud = sorted(cap for cap in loud if cap is not None)

    def curve(self) -> Curve:
        """Return the curve."""
        caps = [cap for cap in self._steady if cap in self._loud]
        each = self._levels([[cap] for cap in caps])
        flat = self._plateau(caps, each)
        start = min((cap for cap in flat if cap is not None), default=math.inf)
        below = [cap for cap in self._loud if cap < start]
        beyond = [cap for cap in self._loud if cap >= start and cap not in flat]
        low: list[list[float | None]] = [[cap] for cap in below]
        high: list[list[float | None]] = [[cap] for cap in beyond]
        high += [flat] if flat else []
        if flat and self._limited_by_load(flat):
            rising, top, first = self._levels(low), self._levels(high), 0
        else:
            rising = top = self._levels([*low, *high])
            first = len(low)
        places = {cap: (rising, number) for number, cap in enumerate(below)}
        places |= {cap: (top, first + number) for number, cap in enumerate(beyond)}
        places |= {cap: (top, -1) for cap in flat if cap is not None}
        known = {cap: _selected(*place) for cap, place in places.items()}
        likely = {cap: _interval(*place) for cap, place in places.items()}
        most = self._ceiling()
        steady = [self._point(cap, known, likely) for cap in self._steady]
        points = _smoothed(steady, set(flat), most)
        under = [cap for cap in self._steady if cap not in flat]
        on = [cap for cap in self._steady if cap in flat]
        return Curve(
            points=points,
            single=tuple((cap, _interval(each, number)) for number, cap in enumerate(caps)),
            top=_below(_selected(top, -1) if flat else points[-1].throughput_pps, most),
            knee=(max(under, default=0.0), min(on, default=self._steady[-1])),
            held_out=tuple(
                self._point(cap, known, likely) for cap in sorted(self._caps("held_out"))
            ),
            speed=None if rising is None or not below else rising.speed,
            visits=sum(len(self._groups[cap]) for cap in below),
            rising=self._rising(below, rising),
        )

    def _caps(self, phase: Phase) -> set[float]:
        visits = self._means.visits
        return {one.cap for one in visits if one.phase == phase and one.cap is not None}

    def _levels(self, kinds: Sequence[Sequence[float | None]]) -> Levels | None:
        """Fit the mixed model with a level for each kind of caps."""
        visits, numbers = list[Visit](), list[int]()
        for level, caps in enumerate(kinds):
            for number in (n for cap in caps for n in self._groups[cap] if self._forwards(n)):
                one = self._means.visits[number]
                visits.append(Visit(one.at, level, math.log(one.mean)))
                numbers.append(number)
        if not visits:
            return None
        return levels_of(visits, self._means.errors[np.ix_(numbers, numbers)], self._means.middle)

    def _plateau(self, caps: Sequence[float], levels: Levels | None) -> list[float | None]:
        """Return the caps from which on throughput no longer rises; empty if it still rises.

        Those are caps that do not bind, and caps that lack next to nothing. If the platform does
        not report binding caps, they start at the first cap that is not significantly below all
        caps above it: one noisy cap at the top is only one of those.
        """
        first = len(caps)
        while first and not self._binds(caps[first - 1]):
            first -= 1
        unknown = all(one.bound is None for one in self._means.visits if one.cap is not None)
        if levels is not None:
            compared = range(min(first, len(caps) - 1))  # above the last cap there is none
            level = (n for n in compared if _is_level(levels, n, by_chance=unknown))
            first = next(level, first)
        found: list[float | None] = list(caps[first:])
        if not found or levels is None:
            return []
        mean = float(np.mean(levels.logs[first:]))
        return [*found, None] if self._is_free(mean) else found

    def _is_free(self, plateau: float) -> bool:
        """Whether the uncapped router has the throughput that caps of that logarithm have."""
        if None not in self._groups or self._silent(None):
            return False
        return abs(math.log(self._rate(None)) - plateau) <= FREE

    def _limited_by_load(self, flat: Sequence[float | None]) -> bool:
        rates = [self._means.visits[number].mean for cap in flat for number in self._groups[cap]]
        return self._offered is not None and statistics.fmean(rates) >= LOADED * self._offered

    def _ceiling(self) -> float:
        """Return the upper bound of all levels: the offered load, or the largest visit.

        If the host's speed changed much, the level at the middle of the sweep is an extrapolation,
        which ignores the load.
        """
        if self._offered is None:
            return math.inf
        return max(self._offered, *(visit.mean for visit in self._means.visits))

    def _rate(self, cap: float | None) -> float:
        """Return the mean throughput of a cap's visits, in packets/s."""
        return statistics.fmean(self._means.visits[number].mean for number in self._groups[cap])

    def _silent(self, cap: float | None) -> bool:
        return not any(self._forwards(number) for number in self._groups[cap])

    def _forwards(self, number: int) -> bool:
        """Whether the logarithm of a visit's mean is meaningful."""
        return self._means.visits[number].mean > SILENT * self._most

    def _binds(self, cap: float) -> bool:
        visits = (self._means.visits[number] for number in self._groups[cap])
        shares = [visit.bound for visit in visits if visit.bound is not None]
        return not shares or 2 * sum(shares) >= len(shares)

    def _point(
        self, cap: float, known: Mapping[float, Interval], likely: Mapping[float, Interval]
    ) -> CapPoint:
        rates = [r for number in self._groups[cap] for r in self._means.visits[number].rates]
        mean = self._rate(cap)
        found = known.get(cap, Interval(mean, 0.0, 2 * mean))
        return CapPoint(
            cap=float(cap),
            throughput_pps=found,
            smoothed_pps=found.value,
            samples=len(rates),
            scatter=scatter_of([self._means.visits[number] for number in self._groups[cap]]),
            binding=self._binds(cap),
            error_pps=standard_error(likely.get(cap, found)),
        )

    def _rising(self, caps: Sequence[float], levels: Levels | None) -> Rising:
        kept = [number for number, cap in enumerate(caps) if cap in self._steady]
        if levels is None or not kept:
            return Rising((), np.zeros(0), np.zeros((0, 0)), 1.0)
        return Rising(
            tuple(caps[number] for number in kept),
            np.exp(levels.logs[kept]),
            levels.covariance[np.ix_(kept, kept)],
            levels.freedom,
        )


def _is_level(levels: Levels, number: int, *, by_chance: bool) -> bool:
    """Whether a cap's shortfall against all above it is negligible, or within chance."""
    above = slice(number + 1, None)
    contrast = np.zeros(len(levels.logs))
    contrast[above], contrast[number] = 1 / (len(levels.logs) - number - 1), -1.0
    lacks = float(contrast @ levels.logs)
    if max(lacks, float(levels.logs[-1] - levels.logs[number])) <= THRESHOLD_SHARE:
        return True
    doubt = CHANCE * math.sqrt(max(float(contrast @ levels.covariance @ contrast), 0.0))
    return by_chance and lacks <= min(doubt, NEARLY)


def _interval(levels: Levels | None, number: int) -> Interval:
    assert levels is not None  # an index implies levels
    error = math.sqrt(max(float(levels.covariance[number, number]), 0.0))
    return _about(float(levels.logs[number]), error)


def _selected(levels: Levels | None, number: int) -> Interval:
    """Return the interval, corrected for the selection of models that seem good."""
    assert levels is not None  # an index implies levels
    return _about(float(levels.logs[number]), float(levels.selected[number]))


def _about(value: float, error: float) -> Interval:
    half = quantile(MANY) * error
    return Interval(math.exp(value), math.exp(value - half), math.exp(value + half))


def _below(found: Interval, most: float) -> Interval:
    return Interval(min(found.value, most), min(found.low, most), found.high)


def _smoothed(
    points: Sequence[CapPoint], plateau: set[float | None], ceiling: float
) -> tuple[CapPoint, ...]:
    """Fit the monotone least-squares curve to the points below the plateau, and to the plateau."""
    below = [point for point in points if point.cap not in plateau]
    flat = [point for point in points if point.cap in plateau]
    most = min(flat[0].throughput_pps.value if flat else math.inf, ceiling)
    curve = _isotonic(below) if below else []
    found = [
        msgspec.structs.replace(point, smoothed_pps=min(rate, most))
        for point, rate in zip(below, curve, strict=True)
    ]
    return tuple(found + [msgspec.structs.replace(point, smoothed_pps=most) for point in flat])


def _isotonic(points: Sequence[CapPoint]) -> list[float]:
    rates = np.array([point.throughput_pps.value for point in points])
    least = max(float(rates.max()) * 1e-3, 1e-9)
    errors = np.array([max(point.error_pps, 1e-4 * least) for point in points])
    return [float(rate) for rate in optimize.isotonic_regression(rates, weights=errors**-2).x]
