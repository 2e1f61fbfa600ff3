"""How much the shield of a held router lets by: a little more than the router is to forward.

The cap holds the router at its setpoint; the shield drops the excess of a flood before the host
carries it there, so that the router's queue is not drowned and the host does not pay for it. It
must never be what holds the router: not all that arrives is forwarded (a firewall drops, some is
meant for the router itself), so the law learns how many packets must arrive for each that is
forwarded. It learns where the cap does not bind, since what is lost otherwise may be lost to the
cap, and at the cap's ceiling: a router that polls (VPP), and one whose CPU is not counted, seem
bound whatever arrives, and their caps rise in vain.
"""

from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from xtc.setpoint import Setpoint, Unit
from xtc.units import MAX_BIT_RATE, MAX_RATE, PacketsPerSecond, Seconds

HEADROOM: Final = 1.02
"""The shield's rate for a router that forwards all, in setpoints; the cap still binds below it."""
BURST_S: Final = 0.2
"""What passes at once, in time; half of it by one interface, while others want more."""
KEPT: Final = 0.98
"""At this share of its setpoint a router gets what it was promised."""
MOST: Final = 16.0
"""Packets let by, at most, for each that is to be forwarded."""
RISE: Final = 2.0
"""By how much that may rise at a time."""
PERIODS: Final = 3
"""Periods whose mean says that too little is forwarded, and whether opening has helped."""
HELPED: Final = 0.5
"""The share of what opening promised that must have come true."""
REST: Final = 60
"""Periods until it is opened again where that has not helped."""
FADE: Final = 0.02
"""The share of what was learned that is forgotten in a period in which the cap binds."""
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


class Trial(msgspec.Struct, frozen=True, gc=False):
    """What was before the shield was opened."""

    arriving: float
    throughput: float


class Shielding(msgspec.Struct, frozen=True, gc=False):
    """What is known of a router."""

    arriving: float = 1.0
    """Packets that must arrive for each that it forwards."""
    periods: int = 0
    """In a row in which too little was forwarded, and these two in them together."""
    throughput: float = 0.0
    arrived: float = 0.0
    trial: Trial | None = None
    rest: int = 0
    """Periods in which it is not opened."""

    def rate(self, setpoint: Setpoint) -> Setpoint:
        """Return what the shield lets by, at least 1 packet/s or 1 kb/s."""
        least, most = _BOUNDS[setpoint.unit]
        rate = min(max(least, HEADROOM * self.arriving * setpoint.rate), most)
        return Setpoint(rate, setpoint.unit)


def learned(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Return what is known after one more period.

    A router that is short of CPU forwards as little as one that drops what it likes, but it does
    not forward more when more arrives: then the shield goes back, and rests.
    """
    shielding = replace(shielding, rest=max(0, shielding.rest - 1))
    if seen.dropped <= 0:
        return _anew(shielding)
    kept = seen.throughput >= KEPT * setpoint.target
    if seen.binding:
        share = 1 - FADE if kept else 1.0
        return _anew(replace(shielding, arriving=1 + share * (shielding.arriving - 1)))
    if kept:
        needed = max(1.0, min(_ratio(seen.arrived, seen.throughput), shielding.arriving))
        return _anew(replace(shielding, arriving=needed, trial=None))
    shielding = replace(
        shielding,
        periods=shielding.periods + 1,
        throughput=shielding.throughput + seen.throughput,
        arrived=shielding.arrived + seen.arrived,
    )
    return shielding if shielding.periods < PERIODS else _judged(shielding)


def _judged(shielding: Shielding) -> Shielding:
    """Return what follows from some periods in which too little was forwarded."""
    before, trial = shielding.arriving, shielding.trial
    throughput = shielding.throughput / shielding.periods
    if trial is not None and not _has_helped(trial, before, throughput):
        return Shielding(trial.arriving, rest=REST)
    reached = min(_ratio(shielding.arrived, shielding.throughput), RISE * before, MOST)
    if shielding.rest or reached <= before:
        return _anew(replace(shielding, trial=None))
    return Shielding(reached, trial=Trial(before, throughput))


def _has_helped(trial: Trial, arriving: float, throughput: float) -> bool:
    """Whether more was forwarded since more arrives."""
    return _ratio(throughput, trial.throughput) - 1 >= HELPED * (arriving / trial.arriving - 1)


def _ratio(part: float, whole: float) -> float:
    if whole > 0:
        return part / whole
    return MOST if part > 0 else 1.0


def _anew(shielding: Shielding) -> Shielding:
    """Count periods in which too little was forwarded from here on."""
    return replace(shielding, periods=0, throughput=0.0, arrived=0.0)


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
    periods: int = 0
    """Since the interfaces were last looked at."""
