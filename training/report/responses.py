"""Measured step responses: each change of cap, as a share of the way to its level; pure.

Levels, lag and delay are those of the fit (`training.fit.dynamics`): the transients of earlier caps
are subtracted, so that each response begins at 0 even if the host had not settled.
"""

import math
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from training.fit.dynamics import LARGEST, Dynamics, Settled, grid_of, settled_of, shares
from training.fit.fit import Fit
from training.fit.interval import Interval
from training.recording.recording import Phase, Recording, Sample

FOLLOWED: Final[frozenset[Phase]] = frozenset({"step", "settling"})
"""Phases with samples that show a response."""
CLEAR: Final = 8.0
"""Standard errors, of a sample and of both levels, that a change must exceed to be drawn."""
LEAST_CHANGE: Final = 0.02
"""A change by less than this share of the larger level does not count, however quiet the host."""
SEEN: Final = 0.3
"""Minimum weight of its own cap in a visit; with less, its level is a guess."""
WAY: Final = 1 - math.exp(-1)
"""The 63 % of a step that define a first-order lag."""


class StepPoint(msgspec.Struct, frozen=True):
    """One sample of a response."""

    samples: int
    """Periods since the change; 1 is the first sample under the new cap."""
    share: float
    """0 is the level before the change, 1 the level after."""


class StepResponse(msgspec.Struct, frozen=True):
    """Response to one change of cap."""

    at: float
    """Seconds from the begin of the sweep to the first followed sample."""
    visit: int
    cap_before: float | None
    """In CPUs; None is uncapped. The next likewise."""
    cap_after: float | None
    before_pps: float
    after_pps: float
    points: tuple[StepPoint, ...]


class Responses(msgspec.Struct, frozen=True):
    """All responses of a sweep, and the lag and delay that were fitted to them."""

    lag: Interval
    delay: int
    period_s: float
    steps: tuple[StepResponse, ...]
    left_out: int
    """Followed changes that are too small or too short to distinguish from noise."""

    @property
    def longest(self) -> int:
        """Periods from the change to the last sample; 0 if no change was followed."""
        return max((point.samples for step in self.steps for point in step.points), default=0)

    def way(self, samples: float) -> Interval:
        """Return the fit's share of the way after some periods, with its band."""
        value, fast, slow = (
            1.0 - _left(lag, samples - self.delay)
            for lag in (self.lag.value, self.lag.low, self.lag.high)
        )
        return Interval(value, slow, fast)

    def until(self, share: float = WAY) -> Interval:
        """Return the periods until the fit has gone a share of the way, delay included."""
        value, low, high = (
            self.delay + _periods(lag, share)
            for lag in (self.lag.value, self.lag.low, self.lag.high)
        )
        return Interval(value, low, high)

    @property
    def words(self) -> str:
        """Describe the figure in a sentence."""
        first = self.way(self.delay + 1)
        late = f"; for {_samples(self.delay)} nothing changes" if self.delay else ""
        if first.value >= WAY:
            return (
                f"The host is {first.value:.0%} of the way {_samples(self.delay + 1)} after a "
                f"change of cap (95 %: {first.low:.0%} to {first.high:.0%}; a sample is "
                f"{self.period_s:g} s){late}."
            )
        until = self.until()
        return (
            f"The host is {WAY:.0%} of the way {until.value:.1f} samples after a change of cap "
            f"(95 %: {until.low:.1f} to {until.high:.1f}; a sample is {self.period_s:g} s){late}."
        )


def responses_of(recording: Recording, fit: Fit) -> Responses:
    """Return the responses to changes of cap that are large enough to show one.

    Visits under other loads and samples that the fit left out are excluded.
    """
    samples, settled = settled_samples(recording, fit)
    period, host = recording.metadata.period_s, _dynamics(fit)
    strays = {outlier.at for outlier in fit.outliers}
    found = list(_Followed(samples, period, host, settled, strays).steps(fit.noise))
    steps = tuple(step for step in found if step is not None)
    return Responses(host.lag, host.delay, period, steps, len(found) - len(steps))


def settled_samples(recording: Recording, fit: Fit) -> tuple[list[Sample], Settled]:
    """Return the samples under the fit's load, and the same without their transients."""
    samples = [sample for sample in recording.samples if sample.phase != "load"]
    strays = {outlier.at for outlier in fit.outliers}
    counted = np.array([sample.at not in strays for sample in samples])
    return samples, settled_of(samples, recording.metadata.period_s, _dynamics(fit), counted)


def _dynamics(fit: Fit) -> Dynamics:
    return Dynamics(fit.eq1.a, fit.eq1.delay, fit.eq1.pairs)


class _Followed:
    """A sweep's samples next to the prediction from lag, delay and levels."""

    def __init__(
        self,
        samples: list[Sample],
        period: float,
        host: Dynamics,
        settled: Settled,
        strays: set[float],
    ) -> None:
        self._samples, self._settled, self._strays = samples, settled, strays
        grid = grid_of(samples, period)
        self._part = shares(grid, _stable(host.lag.value), host.delay)
        starts = np.searchsorted(grid.acting, np.arange(grid.visits))
        self._since = grid.sampled - starts[settled.visit] + 1
        self._missed = grid.rates - self._part @ settled.levels

    def steps(self, noise: float) -> Iterator[StepResponse | None]:
        """Yield each followed response; None for one that noise hides.

        Args:
            noise: standard deviation of a sample, as a share.
        """
        errors = noise * self._part @ self._settled.levels
        doubts = np.linalg.norm(self._settled.spread * errors, axis=1)
        for visit in range(1, len(self._settled.levels)):
            own = [int(n) for n in np.flatnonzero(self._settled.visit == visit)]
            seen = [n for n in own if self._shows(n)]
            if not seen:
                continue
            before, after = (float(level) for level in self._settled.levels[visit - 1 : visit + 1])
            larger = max(before, after)
            doubt = math.hypot(noise * larger, doubts[visit - 1], doubts[visit])
            clear = abs(after - before) > max(CLEAR * doubt, LEAST_CHANGE * larger)
            known = self._part[:, visit - 1 : visit + 1].max(axis=0).min() >= SEEN
            yield self._step(visit, seen, before, after) if clear and known else None

    def _shows(self, number: int) -> bool:
        sample = self._samples[number]
        return sample.phase in FOLLOWED and sample.at not in self._strays

    def _step(self, visit: int, seen: list[int], before: float, after: float) -> StepResponse:
        first = self._samples[seen[0]]
        last = self._samples[int(np.flatnonzero(self._settled.visit == visit - 1)[-1])]
        points = (
            # The fit plus the residual: earlier caps cancel.
            StepPoint(
                int(self._since[n]),
                float(self._part[n, visit] + self._missed[n] / (after - before)),
            )
            for n in seen
        )
        return StepResponse(
            first.at, first.visit, last.cap, first.cap, before, after, tuple(points)
        )


def _stable(lag: float) -> float:
    return min(max(lag, 0.0), LARGEST)


def _left(lag: float, periods: float) -> float:
    """Return the share of a step that is left some periods after the delay."""
    if periods <= 0:
        return 1.0
    return float(_stable(lag) ** periods)


def _periods(lag: float, share: float) -> float:
    """Return the periods until less than a share is missing; the first sample is one."""
    lag = _stable(lag)
    return 1.0 if lag <= 1 - share else math.log(1 - share) / math.log(lag)


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count} samples"
