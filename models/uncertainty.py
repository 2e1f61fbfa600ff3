"""Uncertainty of a host's curve: noise, changes of speed, intervals, and the limit of its top."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from models.cost import LOADED
from models.curve import MAX_RATE, ThroughputCurve
from models.errors import InvalidModelError

Limit = Literal["load", "host"]

NORMAL: Final = 1.96
"""Standard deviations on either side of a mean that contain 95 %."""
TOUCHES: Final = 0.05
"""Maximum gap between the interval of the top and the top of the curve, as a share."""
NARROWEST: Final = 0.05
"""Minimum width of a band, as a share: a curve of joined points is not more precise."""
WIDEST: Final = 0.9
"""Maximum width: even an unknown model has information about a factor of ten."""
BENT: Final = 0.95
"""Share of the top above which throughput hardly depends on the cap."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """A sweep's estimate of its own errors; shares where no unit is given.

    Raises:
        InvalidModelError: a number is out of bounds, or an interval is upside down.
    """

    noise: float
    """Standard deviation of one sample at a constant cap, as a share of its mean."""
    speed_sd: float
    """Standard deviation of the host's speed from one measurement of a cap to another."""
    trend: float
    """Change of its speed from start to end of the sweep."""
    intervals: tuple[tuple[float, float, float], ...]
    """(cap as a fraction of one CPU, low, high): 95 % intervals of throughput in packets/s."""
    top: tuple[float, float]
    """The 95 % interval of the largest throughput, packets/s."""
    limited_by: Limit | None = None
    """What limits the top; None where the sweep ended below it."""

    def __post_init__(self) -> None:
        for name in ("noise", "speed_sd"):
            _require(name, 0.0 <= getattr(self, name) <= 1.0, "give a share from 0 to 1")
        _require("trend", -1.0 <= self.trend <= 1.0, "give a share from -1 to 1")
        _require("top", _is_interval(*self.top), "give its low and its high end, packets/s")
        caps = [cap for cap, _, _ in self.intervals]
        rising = all(low < high for low, high in pairwise(caps))
        _require("intervals", bool(caps) and rising, "order their caps upwards")
        for _, low, high in self.intervals:
            _require("intervals", _is_interval(low, high), "give cap, low and high, packets/s")

    @property
    def variation(self) -> float:
        """Standard deviation of the host's speed over the time of a sweep, including its trend."""
        return math.hypot(self.speed_sd, self.trend / math.sqrt(12))

    @property
    def promise(self) -> float:
        """What the host forwards in 97.5 % of the time, packets/s: a lower bound.

        Speed differs between days, so its changes count in addition to the interval of the top.
        """
        low, high = self.top
        middle = (low + high) / 2
        missing = math.hypot((high - low) / 2, NORMAL * self.variation * middle)
        return max(middle - missing, 0.0)

    def error_at(self, cap: float) -> float:
        """Return the standard error of the curve at a cap, as a share of its throughput."""
        caps = [known for known, _, _ in self.intervals]
        after = min(bisect_left(caps, cap), len(caps) - 1)
        before = max(after - 1, 0)
        return max(self._error(before), self._error(after))

    def caps_for(
        self, curve: ThroughputCurve, throughput: float, *, samples: int = 1
    ) -> tuple[float, float] | None:
        """Return the caps that may give a throughput (packets/s) with 95 %.

        Args:
            curve: the host's.
            throughput: the mean of some samples at a constant cap.
            samples: their number.

        Returns:
            The smallest and the largest, fractions of one CPU; infinity where any larger one may.
                None where throughput does not determine the cap: below the measured caps, and near
                a top limited by the load.
        """
        if throughput >= BENT * curve.top and self.limited_by != "host":
            return None
        cap = curve.cap_for_clamped(throughput)
        if cap < self.intervals[0][0]:
            return None
        doubt = NORMAL * math.hypot(
            self.error_at(cap), self.variation, self.noise / math.sqrt(samples)
        )
        share = min(max(doubt, NARROWEST), WIDEST)
        most = throughput / (1 - share)
        largest = math.inf if most >= BENT * curve.top else curve.cap_for(most)
        return curve.cap_for_clamped(throughput / (1 + share)), largest

    def carried_to(self, curve: ThroughputCurve, error: float = 0.0) -> "Uncertainty":
        """Return the uncertainty of a curve that was derived from this one's curve.

        Each point keeps its error as a share; the conversion adds its own.

        Args:
            curve: the other curve, over the same caps.
            error: standard error of the factor between the two, as a share.
        """
        intervals = tuple(
            (cap, *_around(rate, math.hypot(self.error_at(cap), error), curve.offered))
            for cap, rate in curve.points
            if rate > 0
        )
        low, high = self.top
        of_top = math.hypot((high - low) / (high + low) / NORMAL, error)
        loaded = curve.offered is not None and curve.top >= LOADED * curve.offered
        limit: Limit | None = "load" if loaded else "host"
        if not loaded and self.limited_by != "host":
            limit = None  # the host's limit beyond that load is unknown
        return replace(
            self,
            intervals=intervals,
            top=_around(curve.top, of_top, curve.offered),
            limited_by=limit,
        )

    def _error(self, number: int) -> float:
        _, low, high = self.intervals[number]
        return (high - low) / 2 / NORMAL / max((high + low) / 2, 1e-9)


def _around(rate: float, error: float, most: float | None) -> tuple[float, float]:
    """Return the 95 % interval of a rate, at most the offered load."""
    high = min(rate * (1 + NORMAL * error), MAX_RATE)
    high = high if most is None else min(high, max(most, rate))
    return max(rate * (1 - NORMAL * error), 0.0), high


def _is_interval(low: float, high: float) -> bool:
    return 0.0 <= low <= high <= MAX_RATE and high > 0.0


def _require(field: str, valid: bool, fix: str) -> None:
    if not valid:
        raise InvalidModelError(f"uncertainty.{field}", "is out of bounds", fix)
