"""Sweeps of simulated hosts and their truth: data of the notebook on truth."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from benchmarks.training.coverage import swept
from benchmarks.training.coverage_host import Case, SimulatedHost, throughput
from training.fit.fit import Fit, fit
from training.fit.interval import Interval, interval
from training.fit.verdict import verdict_on
from training.recording.recording import Recording, Sample


@dataclass(frozen=True)
class Trial:
    """One sweep of a simulated host, and its fit."""

    case: Case
    seed: int
    recording: Recording
    found: Fit

    @property
    def usable(self) -> bool:
        """Whether `xtc-train fit` would write the model."""
        return verdict_on(self.found).usable


@dataclass(frozen=True)
class Compared:
    """An interval of the throughput at one cap, as errors: shares of the truth."""

    cap: float
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the truth is in the interval."""
        return self.low <= 0 <= self.high


def trial(case: Case, seed: int) -> Trial:
    """Sweep and fit a simulated host as `xtc-train` does it.

    Raises:
        UnfitError: the samples cannot support a fit.
    """
    recording = swept(SimulatedHost(case, seed))
    return Trial(case, seed, recording, fit(recording))


def by_the_fit(one: Trial) -> list[Compared]:
    """Compare the fit's interval of each cap with the truth."""
    return [compared(one.case, p.cap, p.throughput_pps) for p in one.found.points]


def by_samples(one: Trial, *, settled: bool = True) -> list[Compared]:
    """Compare the interval that assumes independent samples of a cap with the truth.

    Args:
        one: the sweep.
        settled: whether to leave out the samples that the sweep took while a cap settled.
    """
    phases = {"steady"} if settled else {"steady", "settling"}
    return [
        compared(one.case, cap, independent([s.throughput_pps for s in samples]))
        for cap, samples in _by_cap(one.recording, phases)
    ]


def independent(rates: Sequence[float]) -> Interval:
    """Return the textbook's interval of a mean: two or more samples, assumed independent."""
    error = statistics.stdev(rates) / math.sqrt(len(rates))
    return interval(statistics.fmean(rates), error, len(rates) - 1)


def compared(case: Case, cap: float, found: Interval) -> Compared:
    """Return an interval, in packets/s, as errors."""
    truth = throughput(case, cap)
    value, low, high = (rate / truth - 1 for rate in (found.value, found.low, found.high))
    return Compared(cap, value, low, high)


def at_cap(intervals: Sequence[Compared], cap: float) -> Compared:
    """Return the interval of the cap that is nearest to one, in CPUs."""
    return min(intervals, key=lambda one: abs(one.cap - cap))


def held(intervals: Sequence[Compared]) -> int:
    """Return how many intervals contain the truth."""
    return sum(one.holds for one in intervals)


def curve_errors(one: Trial, caps: Sequence[float]) -> list[float]:
    """Return how far the fitted curve is from the truth at caps in CPUs, as shares of it."""
    curve = one.found.curve
    return [curve.throughput(cap) / throughput(one.case, cap) - 1 for cap in caps]


def _by_cap(recording: Recording, phases: set[str]) -> Iterator[tuple[float, list[Sample]]]:
    """Yield the samples of each cap of the curve, by rising cap."""
    steady = {s.cap for s in recording.samples if s.phase == "steady" and s.cap is not None}
    chosen = [s for s in recording.samples if s.phase in phases and s.cap in steady]
    for cap, samples in groupby(sorted(chosen, key=_cap), key=_cap):
        yield cap, list(samples)


def _cap(sample: Sample) -> float:
    assert sample.cap is not None  # uncapped samples are in no group
    return sample.cap
