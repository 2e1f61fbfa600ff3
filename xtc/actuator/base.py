"""The interface of an actuator, which applies the cap of one virtual router."""

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
    """The smallest cap it can apply."""
    ceiling: CapFraction
    """The largest: the number of CPUs that the router may use."""
    quantum: float = 0.0
    """The step between caps; 0 where caps are practically continuous, 0.01 on Xen."""
    volatile: bool = False
    """Whether a cap disappears with the object that carried it, so that a missing cap is no foreign
    change."""

    def bound(self, cap: CapFraction, *, target: str) -> CapFraction:
        """Return the cap within [floor, ceiling].

        Raises:
            Permanent: the cap is not a positive finite number.
        """
        if not math.isfinite(cap) or cap <= 0:
            raise Permanent(target, f"{cap!r} is not a cap", "give a finite fraction above 0")
        return min(max(cap, self.floor), self.ceiling)


class CpuUsage(msgspec.Struct, frozen=True):
    """How much CPU a router has used, as counters that only grow."""

    used: Seconds | None
    """CPU time since some fixed instant; None while nothing runs that has a CPU time."""
    throttled: int | None
    """Periods in which the cap stopped the router; None where the platform does not count them."""
    periods: int | None = None
    """Periods in which the router ran; None where the platform does not count them."""
    at: Seconds | None = None
    """When they were read; None means just now."""
    refill: Seconds = Seconds(0.0)
    """Seconds after which the cap is refilled; 0 where several refills fall into every period."""
    grain: Seconds = Seconds(0.0)
    """The granularity at which CPU time is granted or counted, for each part."""
    parts: tuple[Seconds, ...] = ()
    """CPU time of each part of the router (a vCPU) that has its own share of the cap, scaled as if
    the shares were equal; empty where all parts share one cap.

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
        """Return whether no cap is pending; raise the error of the last one if it failed."""
        ...

    def capture(self) -> Original:
        """Return the current settings, to be made durable before the first cap."""
        ...

    def applied(self) -> CapFraction | None:
        """Return the cap in force, None where the router is uncapped."""
        ...

    def apply(self, cap: CapFraction) -> CapFraction:
        """Write a cap; return the cap read back, or the one that the platform will apply."""
        ...

    def rebalance(self) -> CapFraction | None:
        """Redistribute the cap in force by need, where each part of the router has its own share.

        Returns:
            The cap as read back; None where nothing is divided.
        """
        ...

    def usage(self) -> CpuUsage:
        """Return the router's CPU counters."""
        ...

    def restore(self, original: Original) -> None:
        """Restore the original settings; a router that no longer exists counts as restored."""
        ...
