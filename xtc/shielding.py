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
KEPT: Final = 0.99
"""At this share of its setpoint a router gets what it was promised."""
MOST: Final = 16.0
"""Packets let by, at most, for each that is to be forwarded."""
RISE: Final = 1.5
"""By how much that may rise in a period: a router short of CPU looks the same at first."""
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


class Shielding(msgspec.Struct, frozen=True, gc=False):
    """What is known of a router."""

    arriving: float = 1.0
    """Packets that must arrive for each that it forwards."""

    def rate(self, setpoint: Setpoint) -> Setpoint:
        """Return what the shield lets by, at least 1 packet/s or 1 kb/s."""
        least, most = _BOUNDS[setpoint.unit]
        rate = min(max(least, HEADROOM * self.arriving * setpoint.rate), most)
        return Setpoint(rate, setpoint.unit)


def learned(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Return what is known after one more period."""
    if seen.dropped <= 0:
        return shielding
    before, kept = shielding.arriving, seen.throughput >= KEPT * setpoint.target
    if seen.binding:
        return replace(shielding, arriving=1 + (1 - FADE) * (before - 1)) if kept else shielding
    needed = seen.arrived / seen.throughput if seen.throughput > 0 else MOST
    reached = max(1.0, min(needed, RISE * before, MOST))
    return replace(shielding, arriving=reached if kept else max(before, reached))


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
