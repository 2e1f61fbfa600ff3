"""How much the shield of a held router lets by: what the router is to forward, and no more.

The shield holds the rate. Not all that arrives is forwarded (a firewall drops, some is meant for
the router itself), so the law learns how many packets must arrive for each that is forwarded. It
learns where the cap does not bind, since what is lost otherwise may be lost to the cap, and at the
cap's ceiling: a router that polls (VPP), and one whose CPU is not counted, seem bound whatever
arrives, and their caps rise in vain.

Who makes the shield open and then forwards all that arrives is ahead of its promise until a period
has shown it. Then the shield closes, and lets less by until what was too much is paid back: over
time that gains a burst, and nothing else.
"""

from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from common.setpoint import Setpoint, Unit
from common.units import MAX_BIT_RATE, MAX_RATE, PacketsPerSecond, Seconds

KEPT: Final = 0.98
"""At this share of its setpoint a router gets what it was promised."""
MOST: Final = 16.0
"""Packets let by, at most, for each that is to be forwarded; and at least its reciprocal, for one
that sends more than it receives (tunnels that fragment, multicast)."""
RISE: Final = 2.0
"""By how much that may rise at a time."""
PERIODS: Final = 3
"""Periods whose mean says that too little is forwarded, and whether opening has helped."""
QUEUES: Final = 2
"""Bursts that may wait in a router's queues: what is missing beyond that is lost, ..."""
MOST_QUEUED_S: Final = 1.0
"""... and so is more than this, in seconds of the setpoint."""
LONGEST_S: Final = 30.0
"""Seconds after which little that is missing is forgotten."""
HELPED: Final = 0.5
"""The share of what opening promised that must have come true."""
REST: Final = 60
"""Periods until it is opened again where that has not helped."""
GAIN: Final = 0.2
"""The share of a small difference that is followed in a period."""
TRUST: Final = 1.02
"""How far a shield may open beyond what a trial has proven."""
PAYBACK: Final = 2.0
"""In so many periods what was too much is paid back, ..."""
LEAST_SHARE: Final = 0.5
"""... but so much of its setpoint a router gets meanwhile."""
UNCOUNTED: Final = 2
"""Packets that a period may count although they belong to the next."""
_LARGEST_BITS: Final = 8 * 1518
_BOUNDS: Final = {Unit.PACKETS: (1.0, MAX_RATE), Unit.BITS: (1e3, MAX_BIT_RATE)}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a period showed of a shielded router; rates as its loop counts them."""

    throughput: float
    arrived: float
    """What the shield let by, and what else reached the router."""
    dropped: float
    """What the shield dropped."""
    binding: bool
    """Whether its cap held the router back, and may yet rise."""
    elapsed: float = 1.0
    """The period's length in seconds."""


class Trial(msgspec.Struct, frozen=True, gc=False):
    """What was before the shield was opened."""

    arriving: float
    throughput: float


class Shielding(msgspec.Struct, frozen=True, gc=False):
    """What is known of a router."""

    arriving: float = 1.0
    """Packets that must arrive for each that it forwards."""
    proven: float = 1.0
    """The same as far as it was seen to help."""
    ahead: float = 0.0
    """What it forwarded beyond its setpoint, in seconds of that: more than a burst is too much."""
    share: float = 1.0
    """What it gets of its setpoint while it pays back."""
    periods: int = 0
    """In a row in which too little was forwarded, and these two in them together."""
    throughput: float = 0.0
    arrived: float = 0.0
    missing: float = 0.0
    """What arrived meanwhile and was not forwarded, in seconds of the setpoint."""
    seconds: float = 0.0
    """How long they lasted."""
    trial: Trial | None = None
    rest: int = 0
    """Periods in which it is not opened."""

    def rate(self, setpoint: Setpoint) -> Setpoint:
        """Return what the shield lets by, at least 1 packet/s or 1 kb/s."""
        least, most = _BOUNDS[setpoint.unit]
        times = self.arriving * self.share
        rate = min(max(least, times * setpoint.rate), most)
        return Setpoint(rate, setpoint.unit, times * setpoint.allowance)


def learned(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Return what is known after one more period.

    A router that is short of CPU forwards as little as one that drops what it likes, but it does
    not forward more when more arrives: then the shield goes back, and rests.
    """
    paying = shielding.share < 1
    shielding, excess = _with_debt(shielding, setpoint, seen)
    if seen.dropped <= 0:
        return _anew(shielding)
    if excess > 0 and seen.throughput > setpoint.target:
        return _closed(shielding, setpoint, seen)
    if paying:
        return _anew(shielding)
    kept = seen.throughput >= KEPT * setpoint.target
    if seen.binding:
        return _anew(shielding) if kept else shielding
    if kept or shielding.arriving < 1:
        return _followed(shielding, seen)
    return _missed(shielding, setpoint, seen)


def _missed(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Return what is known after one more period in which too little was forwarded."""
    shielding = _with_loss(shielding, setpoint, seen)
    if shielding.periods < PERIODS:
        return shielding
    if shielding.missing > min(QUEUES * setpoint.allowance / setpoint.rate, MOST_QUEUED_S):
        return _judged(shielding)
    return _anew(shielding) if shielding.seconds > LONGEST_S else shielding


def _with_loss(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Count what a router that forwards too little keeps: for good, or in its queue."""
    lost = (seen.arrived - seen.throughput) / setpoint.target * seen.elapsed
    return replace(
        shielding,
        periods=shielding.periods + 1,
        throughput=shielding.throughput + seen.throughput,
        arrived=shielding.arrived + seen.arrived,
        missing=shielding.missing + lost,
        seconds=shielding.seconds + seen.elapsed,
    )


def _with_debt(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> tuple[Shielding, float]:
    """Count what was forwarded beyond the promise; return it in seconds of the setpoint, too."""
    gained = (seen.throughput / setpoint.target - 1) * seen.elapsed
    uncounted = UNCOUNTED * (1 if setpoint.unit is Unit.PACKETS else _LARGEST_BITS)
    allowed = (setpoint.allowance + uncounted) / setpoint.rate
    # No more can have been let by in a period; a counter that is wrong once must not cost minutes.
    ahead = min(max(0.0, shielding.ahead + gained), allowed + MOST * seen.elapsed)
    excess = max(0.0, ahead - allowed)
    share = max(LEAST_SHARE, 1 - excess / (PAYBACK * seen.elapsed))
    rest = max(0, shielding.rest - 1)
    return replace(shielding, ahead=ahead, share=share, rest=rest), excess


def _closed(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Let no more by than the router needs that forwards more than it was promised.

    Where its cap bound it may need still less. To send more than arrives may be but a queue that
    drains.
    """
    before = shielding.arriving
    needed = min(_ratio(seen.arrived, seen.throughput), before)
    if seen.binding:
        needed = min(needed, max(1.0, before / RISE))
    gently = seen.throughput < TRUST * setpoint.target
    if gently or needed < 1:
        least = before if gently else min(before, 1.0)
        needed = least + GAIN * (needed - least)
    needed = max(1 / MOST, needed)
    proven = min(shielding.proven, needed)
    return _anew(replace(shielding, arriving=needed, proven=proven, trial=None))


def _followed(shielding: Shielding, seen: Seen) -> Shielding:
    """Follow what a router needs that gets what it was promised, as far as that was proven."""
    arriving = shielding.arriving
    proven = arriving if shielding.trial is not None else min(shielding.proven, arriving)
    ratio = _ratio(seen.arrived, seen.throughput)
    most = max(1.0, TRUST * proven) if proven > 1.0 else 1.0
    gain = 1.0 if arriving < min(ratio, 1.0) else GAIN  # what looked like more was a queue
    needed = min(arriving + gain * (ratio - arriving), most)
    needed = max(needed, min(arriving, 1.0))
    return _anew(replace(shielding, arriving=needed, proven=proven, trial=None))


def _judged(shielding: Shielding) -> Shielding:
    """Return what follows from some periods in which too little was forwarded."""
    before, trial = shielding.arriving, shielding.trial
    throughput = shielding.throughput / shielding.periods
    if trial is not None and not _has_helped(trial, before, throughput):
        failed = replace(shielding, arriving=trial.arriving, trial=None, rest=REST)
        return _anew(failed)
    reached = min(_ratio(shielding.arrived, shielding.throughput), RISE * before, MOST)
    if shielding.rest or reached <= before:
        return _anew(replace(shielding, trial=None))
    opened = replace(shielding, arriving=reached, proven=before, trial=Trial(before, throughput))
    return _anew(opened)


def _has_helped(trial: Trial, arriving: float, throughput: float) -> bool:
    """Whether more was forwarded since more arrives."""
    return _ratio(throughput, trial.throughput) - 1 >= HELPED * (arriving / trial.arriving - 1)


def _ratio(part: float, whole: float) -> float:
    if whole > 0:
        return part / whole
    return MOST if part > 0 else 1.0


def _anew(shielding: Shielding) -> Shielding:
    """Count periods in which too little was forwarded from here on."""
    return replace(shielding, periods=0, throughput=0.0, arrived=0.0, missing=0.0, seconds=0.0)


@dataclass
class Shielded:
    """How one router's shield stands."""

    law: Shielding = Shielding()
    setpoint: Setpoint | None = None
    """That for which it was set."""
    rate: Setpoint | None = None
    """What it lets by, in the setpoint's unit; None where there is none."""
    claimed: tuple[str, ...] = ()
    """The interfaces that may bear it, as the journal has them."""
    asked: tuple[str, ...] = ()
    """The interfaces on which it was to be when they were last looked at."""
    problem: str = ""
    """Why it is not on every interface."""
    overruled: str = ""
    """Which filters of other owners decide before it."""
    dropped: PacketsPerSecond | None = PacketsPerSecond(0.0)
    """What it dropped in the last period, in packets/s; None while that is not known."""
    counted: int | None = None
    """What it had dropped at the last look."""
    looked_at: Seconds = Seconds(0.0)
    elapsed: Seconds = Seconds(1.0)
    """The time that the last look counts."""
    before: Setpoint | None = None
    """The largest setpoint that it had in this period, before the one that it has now."""
    fresh: bool = False
    """Whether it was set in the middle of this period."""
    whole: bool = False
    """Whether it stood all of the last period: only then that tells of it."""
    periods: int = 0
    """Since the interfaces were last looked at."""
    disturbed: bool = False
    """Whether the interfaces could not be counted in the last period: one may be another now."""

    @property
    def stands(self) -> bool:
        """Whether it is on every interface, and decides there."""
        return self.rate is not None and not (self.problem or self.overruled)
