"""Joins periods that are too short to be judged alone.

A quota is refilled once in its own period, which the kernel's smallest quota makes long for small
caps: 1 % takes 100 ms. A sample with two refills or fewer says little about the effect of the cap;
the mean over several refills does. Only this router's loop becomes slower.

Where a shield holds the rate, a cap only bounds CPU. The cost of packets scatters from one short
period to the next, and a cap that followed it would sometimes delay packets. Such a cap is decided
by the mean of a second; a cap that limits its router is decided immediately.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from common.setpoint import Setpoint
from common.units import CapFraction
from xtc.control.binding import Evidence
from xtc.control.headroom import EXCESS, is_short, is_spent, wanted
from xtc.control.law import InBits, Sample
from xtc.manager.cap import CapView, same_cap
from xtc.measure.collector import Reading

REFILLS = 4
"""Refills of a cap that a sample must contain: one more or less then changes it by a quarter."""

RECENT_S = 1.0
"""Seconds over which a router's use of its cap is judged while it has a backlog."""

CALM_S = 1.0
"""Seconds over which to judge whether a router behind a shield has the CPU that it needs."""

HINDERED = 0.95
"""A router that spends its cap is limited by it below this share of its wanted throughput."""

_Number = TypeVar("_Number", bound=float)
Seen = tuple[Reading, CapView]
"""The measurements of one period."""


def periods_for(refill: float, period: float) -> int:
    """Return how many periods a sample takes for a cap with this refill time."""
    return max(1, math.ceil(REFILLS * refill / period - 1e-9))


def joined(window: tuple[Seen, ...], seen: Seen, period: float) -> tuple[tuple[Seen, ...], bool]:
    """Return the periods that belong with this one, and whether they are enough.

    A change of the cap starts again.
    """
    same = bool(window) and same_cap(window[-1][1].cap, seen[1].cap)
    window = (*(window if same else ()), seen)
    return window, len(window) >= periods_for(seen[1].refill, period)


def mean_of(window: Sequence[Seen]) -> Seen:
    """Return the mean of several periods; values unknown in one of them are unknown."""
    reading, view = window[-1]
    if len(window) == 1:
        return reading, view
    readings, views = [seen[0] for seen in window], [seen[1] for seen in window]
    return (
        replace(
            reading,
            throughput=_mean([each.throughput for each in readings]),
            offered=_mean([each.offered for each in readings]),
            throughput_bps=_mean([each.throughput_bps for each in readings]),
            offered_bps=_mean([each.offered_bps for each in readings]),
        ),
        replace(
            view,
            used=_mean([each.used for each in views]),
            hottest=_mean([each.hottest for each in views]),
            throttled=_mean([each.throttled for each in views]),
            late=any(each.late for each in views),
        ),
    )


def steadied(
    recent: tuple[float, ...], evidence: Evidence, period: float
) -> tuple[tuple[float, ...], Evidence]:
    """Return the shares of its cap that a router used recently, and the evidence judged with them.

    Short samples scatter. A router with a backlog uses little of its cap in some and much in
    others. Learning only from the latter would overestimate the effect of the cap. If all offered
    load is forwarded, the sample is used alone.
    """
    if evidence.use is None or evidence.cap is None:
        return (), evidence
    recent = (*recent, evidence.use)[-max(1, round(RECENT_S / period)) :]
    mean = math.fsum(recent) / len(recent)
    if evidence.use >= mean or evidence.forwards_all:
        return recent, evidence
    return recent, replace(evidence, used=CapFraction(mean * evidence.cap))


class Calm:
    """Gathers the samples of a router behind its shield until they are worth a decision."""

    def __init__(self) -> None:
        """Start without any."""
        self._waiting: tuple[Sample, ...] = ()
        """Samples under one cap and one setpoint."""
        self._seconds = 0.0
        """The time that they span."""
        self._setpoint: Setpoint | None = None

    def begin(self) -> None:
        """Start again."""
        self._waiting, self._seconds = (), 0.0

    def gather(self, sample: Sample, setpoint: Setpoint, seconds: float) -> Sample | None:
        """Return the sample to decide on after one more, None while the decision can wait.

        Args:
            sample: of the period.
            setpoint: of the router.
            seconds: spanned by the sample.
        """
        if setpoint != self._setpoint or not _may_wait(sample, setpoint):
            self._setpoint = setpoint
            self.begin()
            return sample
        if self._waiting and not _alike(self._waiting[-1], sample):
            self.begin()
        self._waiting, self._seconds = (*self._waiting, sample), self._seconds + seconds
        if self._seconds < CALM_S - 1e-9:
            return None
        found = mean_sample(self._waiting)
        self.begin()
        return found


def _may_wait(sample: Sample, setpoint: Setpoint) -> bool:
    """Whether a cap only bounds CPU, and was enough for a setpoint that was wanted.

    A load that begins or ends is not averaged with earlier samples: for a polling router, which
    uses all it gets, that would look like too little CPU.
    """
    counted = sample.counted_in(setpoint.unit)
    if counted is None or not sample.guarded or sample.cap is None:
        return False
    asked = HINDERED * setpoint.target <= wanted(counted, setpoint.target)
    within = counted.throughput <= EXCESS * setpoint.target
    return asked and within and not _is_hindered(counted, setpoint.target)


def _is_hindered(sample: Sample, target: float) -> bool:
    """Whether a router may have waited for more CPU than its cap gives."""
    return is_spent(sample) and is_short(sample, target, HINDERED)


def _alike(one: Sample, other: Sample) -> bool:
    """Whether two samples are of one cap, both with a shield."""
    return one.guarded and other.guarded and same_cap(one.cap, other.cap)


def mean_sample(samples: Sequence[Sample]) -> Sample:
    """Return the mean of samples under one cap; values unknown in one of them are unknown."""
    last = samples[-1]
    if len(samples) == 1:
        return last
    return replace(
        last,
        throughput=math.fsum(each.throughput for each in samples) / len(samples),
        offered=_mean([each.offered for each in samples]),
        used=_mean([each.used for each in samples]),
        coarse=any(each.coarse for each in samples),
        late=any(each.late for each in samples),
        shielded=any(each.shielded for each in samples),
        in_bits=_mean_bits([each.in_bits for each in samples]),
    )


def _mean_bits(each: Sequence[InBits | None]) -> InBits | None:
    known = [bits for bits in each if bits is not None]
    if len(known) < len(each):
        return None
    throughput = math.fsum(bits.throughput for bits in known) / len(known)
    return InBits(throughput, _mean([bits.offered for bits in known]))


def _mean(values: Sequence[_Number | None]) -> _Number | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return type(known[0])(math.fsum(known) / len(known))
