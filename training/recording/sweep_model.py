"""State of a sweep: visits of caps, the resulting curve, and its noise."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from training.recording.recording import Phase, Sample

NARROW = 0.02
"""Caps closer than this share are indistinguishable to every meter."""
ENOUGH = 240
"""Samples sufficient for a host of constant speed; more go to more visits."""
VISITS = 6
"""Visits of each cap that this many samples allow."""
LOAD_SAMPLES = 24
"""Cost of a further rate or packet size: three caps at the length of a typical visit."""
PASSES = 2
"""Minimum number of visits of each given cap, once on the way up and once down."""
WAIT = 4
"""Maximum number of samples to wait after a change to one of them."""
FEWEST_SAMPLES, MOST_SAMPLES = 2, 8
"""Samples of such a visit."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic sent towards the router."""

    offered: float
    """Packets/s."""
    packet_bytes: int | None = None
    """Bytes of a frame without its checksum; None if not recorded."""


@dataclass(frozen=True, slots=True)
class Span:
    """The allowed caps, as fractions of one CPU."""

    floor: float
    ceiling: float
    quantum: float = 0.0

    def nearest(self, cap: float) -> float:
        """Return the allowed cap nearest to a cap."""
        if self.quantum > 0:
            cap = round(cap / self.quantum) * self.quantum
        return min(max(float(f"{cap:.4g}"), self.floor), self.ceiling)


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Targets of a sweep, and its number of samples."""

    samples: int = 300
    """The whole budget."""
    at_least: int = 3
    at_most: int = 8
    """Samples of one visit."""
    probe: int = 8
    """Samples to follow after a change of cap while the lag is unknown."""
    interval: float = 0.01
    """A visit ends when its mean is known to this share."""
    error: float = 0.01
    """The curve is good when interpolation between its points errs by at most this share."""
    coarse: int = 7
    """Caps in geometric steps, before any refinement."""
    steps: int = 8
    step_samples: int = 5
    held_out: int = 5
    visits: int = VISITS
    """After this many visits, a further one makes a doubtful cap no clearer."""
    loads: tuple[Traffic, ...] = ()
    """Further rates and packet sizes; a few caps are measured at each."""
    only: tuple[float, ...] = ()
    """The caps to measure, in CPUs and rising, next to the uncapped router; empty is a sweep."""


def aims_for(samples: int, loads: Sequence[float | Traffic] = ()) -> SweepPlan:
    """Return the targets for a number of samples; from 240 on they are complete.

    Each further load takes its share first; a number is a rate of packets of unspecified size.
    """
    aims = _aims_without_loads(samples - LOAD_SAMPLES * len(loads))
    traffic = tuple(one if isinstance(one, Traffic) else Traffic(one) for one in loads)
    return replace(aims, samples=samples, loads=traffic)


def least_for_caps(count: int) -> int:
    """Return the fewest samples for measuring this many caps as `aims_for_caps` requires."""
    return _samples_for_caps(count, FEWEST_SAMPLES)


def aims_for_caps(samples: int, caps: Sequence[float]) -> SweepPlan:
    """Return the targets for a few given caps; more samples allow more visits."""
    only = tuple(sorted(set(caps)))
    lengths = range(FEWEST_SAMPLES, MOST_SAMPLES + 1)
    fitting = [n for n in lengths if _samples_for_caps(len(only), n) <= samples]
    each = max(fitting, default=FEWEST_SAMPLES)
    passes = (samples - 1 - each) // (len(only) * (WAIT + each))
    return SweepPlan(
        samples,
        at_least=each,
        at_most=each,
        probe=WAIT,
        visits=max(passes, PASSES),
        only=only,
    )


def _samples_for_caps(count: int, each: int) -> int:
    """Return the most samples for the uncapped router and two visits of each cap."""
    return 1 + each + PASSES * count * (WAIT + each)


def _aims_without_loads(samples: int) -> SweepPlan:
    if samples >= ENOUGH:
        return SweepPlan(samples, visits=VISITS * samples // ENOUGH)
    least = 3 if samples >= 90 else 2
    return SweepPlan(
        samples,
        at_least=least,
        at_most=min(8, max(least, samples // 20)),
        probe=6 if samples >= 90 else 4,
        coarse=min(7, max(6, samples // 12)),
        steps=min(8, max(3, samples // 20)),
        step_samples=5 if samples >= 90 else 3,
        held_out=min(5, samples // 60 * 2),
        visits=1,
    )


@dataclass(frozen=True, slots=True)
class Visit:
    """The samples that followed one change of cap."""

    number: int
    phase: Phase
    cap: float | None
    values: tuple[float, ...]
    """Throughputs in packets/s."""
    used: float | None
    traffic: Traffic | None = None
    """The traffic, if it was not the curve's."""

    @property
    def mean(self) -> float:
        """The mean throughput in packets/s."""
        return mean_of(self.values)


@dataclass(frozen=True, slots=True)
class Point:
    """Estimate at one cap."""

    cap: float
    throughput: float
    error: float
    """Standard error of the throughput."""


@dataclass(frozen=True)
class Known:
    """All measurements so far, and the resulting estimates."""

    visits: tuple[Visit, ...]
    span: Span
    aims: SweepPlan
    fresh: bool = True
    """Whether this run has not measured anything yet, so that no cap is in force."""
    waits: int = 2
    """Samples that the next visit discards first."""
    settling: int = 2
    """Samples that later visits will discard first."""
    noise: float = field(init=False)
    """Standard deviation of a sample as a share of the throughput."""
    points: tuple[Point, ...] = field(init=False)
    """The curve so far, caps rising."""
    top: float = field(init=False)
    """The largest throughput, in packets/s."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", noise_of(self.visits))
        object.__setattr__(self, "points", tuple(self._points()))
        rates = (v.mean for v in self.visits if v.phase in {"uncapped", "steady"})
        object.__setattr__(self, "top", max(rates, default=0.0))

    @property
    def last(self) -> Visit | None:
        """The visit with the cap that is still in force."""
        return self.visits[-1] if self.visits and not self.fresh else None

    def of(self, phase: Phase, least: int) -> list[Visit]:
        """Return the visits of a phase that have enough samples."""
        return [v for v in self.visits if v.phase == phase and len(v.values) >= least]

    def loaded(self, traffic: Traffic) -> list[float]:
        """Return the caps measured under traffic other than the curve's."""
        visits = self.of("load", self.aims.at_least)
        return [cap_of(v) for v in visits if v.traffic == traffic and v.cap is not None]

    def same(self, one: float, other: float) -> bool:
        """Whether two caps are indistinguishable."""
        return abs(one - other) <= max(NARROW * max(one, other), 0.6 * self.span.quantum)

    def has(self, cap: float) -> bool:
        """Whether the curve has a cap."""
        return any(self.same(cap, point.cap) for point in self.points)

    def by_cap(self, phase: Phase) -> list[list[Visit]]:
        """Return the visits of a phase that have enough samples, by cap, in their order there."""
        visits = [v for v in self.of(phase, self.aims.at_least) if v.cap is not None]
        groups: list[list[Visit]] = []
        for visit in sorted(visits, key=cap_of):
            if groups and self.same(cap_of(groups[-1][0]), cap_of(visit)):
                groups[-1].append(visit)
            else:
                groups.append([visit])
        return [sorted(group, key=lambda visit: visit.number) for group in groups]

    def _points(self) -> Iterator[Point]:
        for group in self.by_cap("steady"):
            values = [value for visit in group for value in visit.values]
            mean = mean_of(values)
            spread = max(spread_of(values), 0.5 * self.noise * mean)
            cap = mean_of(map(cap_of, group))
            yield Point(cap, mean, spread / math.sqrt(len(values)))


def visits_of(samples: Iterable[Sample]) -> tuple[Visit, ...]:
    """Group samples by visit."""
    return corrected_visits((sample, sample.throughput_pps) for sample in samples)


def corrected_visits(rated: Iterable[tuple[Sample, float]]) -> tuple[Visit, ...]:
    """Group samples by visit, each with packets/s that replace its own."""
    return tuple(_visit(list(group)) for _, group in groupby(rated, lambda one: one[0].visit))


def _visit(rated: Sequence[tuple[Sample, float]]) -> Visit:
    # A visit that was cut off while it settled has no other samples.
    rated = [one for one in rated if one[0].phase != "settling"] or rated
    samples = [sample for sample, _ in rated]
    used = [s.used for s in samples if s.used is not None]
    caps = [s.cap for s in samples if s.cap is not None]
    return Visit(
        samples[0].visit,
        samples[0].phase,
        statistics.median(caps) if len(caps) == len(samples) else None,
        tuple(rate for _, rate in rated),
        mean_of(used) if used else None,
        _traffic(samples[0]),
    )


def _traffic(sample: Sample) -> Traffic | None:
    if sample.phase != "load" or sample.offered_pps is None:
        return None
    return Traffic(sample.offered_pps, sample.packet_bytes)


def noise_of(visits: Iterable[Visit]) -> float:
    """Return the standard deviation of settled samples as a share of their mean.

    The median visit's: a disturbed visit must not make all the others look settled.
    """
    spreads = [
        spread_of(v.values) / v.mean
        for v in visits
        if v.phase not in {"step", "settling"} and len(v.values) > 1 and v.mean > 0
    ]
    return statistics.median(spreads) if spreads else 0.0


def mean_of(values: Iterable[float]) -> float:
    """Return the mean; `statistics` takes 20 times as long."""
    numbers = tuple(values)
    return math.fsum(numbers) / len(numbers)


def spread_of(values: Sequence[float]) -> float:
    """Return the standard deviation of two or more; `statistics` takes 20 times as long."""
    mean = mean_of(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def cap_of(visit: Visit) -> float:
    """Return the cap of a visit that had one."""
    assert visit.cap is not None  # every caller has checked
    return visit.cap
