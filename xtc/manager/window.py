"""Samples that are too short to stand alone: several periods are judged together.

A quota is refilled once in its own period, which the kernel's smallest quota makes long for small
caps: 1 % takes 100 ms. A sample that sees one refill or two, or none, says little of what the cap
gives; the mean over several refills does. The router's loop is that much slower, and no other's.

Where a shield holds the rate, a cap only bounds CPU. What packets cost scatters from one short
period to the next, and a cap that followed it would at times be what packets wait for. Such a cap
is decided on by the mean of a second; one that holds its router back is decided on at once.
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
"""Refills of a cap that a sample must see: one more or less is then a quarter."""

RECENT_S = 1.0
"""Seconds over which a router's use of its cap is judged while it has a backlog."""

CALM_S = 1.0
"""Seconds over which it is judged whether a router behind a shield has the CPU that it needs."""

HINDERED = 0.95
"""Below this share of what it is to forward a router that spends its cap is held back by it."""

_Number = TypeVar("_Number", bound=float)
Seen = tuple[Reading, CapView]
"""What one period showed."""


def periods_for(refill: float, period: float) -> int:
    """Return how many periods a sample takes where a cap is refilled after so many seconds."""
    return max(1, math.ceil(REFILLS * refill / period - 1e-9))


def joined(window: tuple[Seen, ...], seen: Seen, period: float) -> tuple[tuple[Seen, ...], bool]:
    """Return the periods that belong together with this one, and whether they are enough.

    Where the cap has changed, they begin anew.
    """
    same = bool(window) and same_cap(window[-1][1].cap, seen[1].cap)
    window = (*(window if same else ()), seen)
    return window, len(window) >= periods_for(seen[1].refill, period)


def mean_of(window: Sequence[Seen]) -> Seen:
    """Return the mean of several periods; what is not known in one of them is not known."""
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
    """Return the shares of its cap that a router used lately, and the evidence judged with them.

    Short samples scatter. One in which a router with a backlog used little of its cap tells no more
    than one in which it used much; were only the latter learned from, what the cap gives would be
    taken for more than it is. Where all that is offered is forwarded, the sample stands alone.
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
        """Begin without any."""
        self._waiting: tuple[Sample, ...] = ()
        """All under one cap and one setpoint."""
        self._seconds = 0.0
        """What they span."""
        self._setpoint: Setpoint | None = None

    def begin(self) -> None:
        """Begin anew."""
        self._waiting, self._seconds = (), 0.0

    def gather(self, sample: Sample, setpoint: Setpoint, seconds: float) -> Sample | None:
        """Return what is to be decided on after one more sample, None while that has time.

        Args:
            sample: what was seen.
            setpoint: what the router is to forward.
            seconds: what the sample spans.
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
    """Whether a cap only bounds CPU, and what it gives was enough for a setpoint that was wanted.

    A load that begins or ends is not averaged with what was before: of a router that polls, which
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
    """Whether two samples are of one cap, with a shield in both."""
    return one.guarded and other.guarded and same_cap(one.cap, other.cap)


def mean_sample(samples: Sequence[Sample]) -> Sample:
    """Return the mean of samples under one cap; what is not known in one of them is not known."""
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
