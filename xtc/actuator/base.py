"""The interface of an actuator: where the cap of one virtual router goes."""

import math
from dataclasses import dataclass
from typing import Protocol

import msgspec

from common.units import CapFraction, Seconds
from xtc.errors import Permanent
from xtc.spec import Original


@dataclass(frozen=True, slots=True)
class CapLimits:
    """What an actuator can express."""

    floor: CapFraction
    """The smallest cap it can hold."""
    ceiling: CapFraction
    """The largest: the number of CPUs that the router may use."""
    quantum: float = 0.0
    """The step between caps; 0 where they are as good as continuous, 0.01 on Xen."""
    volatile: bool = False
    """Whether a cap vanishes with what bore it, so that to find none is nobody's doing."""

    def bound(self, cap: CapFraction, *, target: str) -> CapFraction:
        """Return the cap within [floor, ceiling].

        Raises:
            Permanent: the cap is no positive finite number, so that no cap can be meant by it.
        """
        if not math.isfinite(cap) or cap <= 0:
            raise Permanent(target, f"{cap!r} is not a cap", "give a finite fraction above 0")
        return min(max(cap, self.floor), self.ceiling)


class CpuUsage(msgspec.Struct, frozen=True):
    """How much CPU a router has used, as counters that only grow."""

    used: Seconds | None
    """CPU time since some fixed instant; None while nothing runs whose time could be told."""
    throttled: int | None
    """Periods in which the cap stopped the router; None where the platform does not count them."""
    periods: int | None = None
    """Periods in which the router ran at all; None where the platform does not count them."""
    at: Seconds | None = None
    """When they were read; None is just now."""
    refill: Seconds = Seconds(0.0)
    """Seconds after which the cap is given out again; 0 where that is often in every period."""
    grain: Seconds = Seconds(0.0)
    """The steps in which CPU time is given out or counted; each part is counted in such steps."""
    parts: tuple[Seconds, ...] = ()
    """CPU time of each part of the router (a vCPU) that has a share of the cap to itself,
    as if the shares were equal; empty where the cap is common.

    The order is the same in every reading. Parts come and go (hotplug): the difference between two
    readings is unknown where their lengths differ, or where any part is less than it was.
    """


class Actuator(Protocol):
    """Caps one router. Every method raises only ActuatorError and its subclasses."""

    @property
    def limits(self) -> CapLimits:
        """What this actuator can express."""
        ...

    @property
    def slow(self) -> bool:
        """Whether a cap takes so long to write that it should not change within a period."""
        ...

    def settle(self) -> bool:
        """Return whether no cap is under way; raise what became of the last one if it failed."""
        ...

    def capture(self) -> Original:
        """Return what stands there now, to be made durable before the first cap."""
        ...

    def applied(self) -> CapFraction | None:
        """Return the cap in force, None where the router is uncapped."""
        ...

    def apply(self, cap: CapFraction) -> CapFraction:
        """Write a cap and return what the plant really got, read back, or is bound to get."""
        ...

    def rebalance(self) -> CapFraction | None:
        """Divide the cap in force again by need, where each part of the router has a share.

        Returns:
            The cap as read back; None where nothing is divided.
        """
        ...

    def usage(self) -> CpuUsage:
        """Return the router's CPU counters."""
        ...

    def restore(self, original: Original) -> None:
        """Put back what stood there before; a router that is gone is restored already."""
        ...
