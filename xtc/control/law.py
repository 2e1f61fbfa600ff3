"""Control laws: pure functions from (setpoint, sample, state) to the next cap.

`PaperLaw` is Eq. 2 of the XTC paper exactly as published; `AdaptiveLaw` (`xtc.control.adaptive`) is
the default. Their only memory is the state that they return, which consists of numbers.
"""

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import structs

from common.setpoint import Unit
from common.units import CapFraction

HEADROOM: Final = 1.1
"""Behind a shield, the cap in multiples of what the router needs (decision 0039)."""


class InBits(msgspec.Struct, frozen=True, gc=False):
    """A sample's rates in kilobits/s, from the same counters."""

    throughput: float
    offered: float | None = None


class Sample(msgspec.Struct, frozen=True, gc=False):
    """Measurements of one router in one period.

    Rates are in packets/s; laws get them in the setpoint's unit, which is packets/s or kilobits/s.
    """

    throughput: float
    cap: CapFraction | None
    """The cap in force while it was measured, as read back; None if the router was uncapped."""
    offered: float | None = None
    """Offered load, if the host can see it."""
    used: CapFraction | None = None
    """CPUs used on average, if the platform counts them."""
    coarse: bool = False
    """Whether CPU time is counted too coarsely to show how much of the cap was used."""
    binding: bool | None = None
    """Whether the cap limited the router; None where the platform cannot tell."""
    late: bool = False
    """Whether the cap took effect so late that another one shaped the sample; use `used` then."""
    shielded: bool = False
    """Whether the shield dropped packets that the router might have forwarded beyond its
    setpoint."""
    guarded: bool = False
    """Whether the shield is on every interface, so that the cap need not hold the rate."""
    needed: CapFraction | None = None
    """CPUs that the throughput takes, if the shield and not the cap limited the router."""
    in_bits: InBits | None = None
    """The same in bits; None if bytes were not counted."""
    packets: float | None = None
    """Throughput in packets/s, for a sample in bits."""

    @property
    def forwarded(self) -> float:
        """Throughput in packets/s."""
        return self.throughput if self.packets is None else self.packets

    def counted_in(self, unit: Unit) -> "Sample | None":
        """Return the sample in a unit; None where it is not known in that unit."""
        if unit is Unit.PACKETS:
            return self
        if self.in_bits is None:
            return None
        bits = self.in_bits
        return structs.replace(
            self, throughput=bits.throughput, offered=bits.offered, packets=self.throughput
        )


class Reason(Enum):
    """Why a law chose its cap."""

    ACT = "act"
    DEAD_ZONE = "dead_zone"
    NOT_BINDING = "not_binding"
    AT_FLOOR = "at_floor"
    AT_CEILING = "at_ceiling"


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The next cap and the reason."""

    cap: CapFraction
    reason: Reason


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a law's caps."""

    floor: CapFraction
    ceiling: CapFraction
    headroom: float = HEADROOM
    """Behind a shield, the target cap in multiples of the router's need."""

    def clamp(self, cap: float) -> CapFraction:
        """Return the nearest cap within the bounds."""
        return CapFraction(min(max(cap, self.floor), self.ceiling))


S = TypeVar("S")


class Law(Protocol[S]):
    """A control law with its own state."""

    def start(self, cap: CapFraction | None) -> S:
        """Return the state of a loop that begins at the cap in force (None: uncapped)."""
        ...

    def step(self, state: S, setpoint: float, sample: Sample, bounds: Bounds) -> tuple[S, Decision]:
        """Return the next state and the next cap; setpoint and sample are in the same unit."""
        ...


@dataclass(frozen=True, slots=True)
class PaperGains:
    """Gains from Sections 6 and 7.2 of the paper; errors in kp/s, caps in log10(percent)."""

    kp: float
    ki: float
    dead_zone: float = 0.10
    """Share of the setpoint within which the last cap stays."""
    min_cap: CapFraction = CapFraction(0.01)
    """cap_min of Section 7.2.2; Xen's own smallest cap by default."""


PI = PaperGains(kp=-1.747e-3, ki=11.311e-3)
"""Pole placement, Section 6."""

DEAD_BEAT = PaperGains(kp=1.452e-3, ki=14.419e-3)
"""Kp = a/b, Ki = (1 - a)/b, Section 7.2.1."""

DEAD_BEAT_MIN3 = replace(DEAD_BEAT, min_cap=CapFraction(0.03))
"""Dead-beat with a minimum cap of 3, Section 7.2.3: the paper's choice."""


@dataclass(frozen=True, slots=True)
class PaperState:
    """u(k-1), as the logarithm of the integer cap that was configured, and e(k-1) in kp/s."""

    log_cap: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class PaperLaw:
    """Eq. 2: u(k) = u(k-1) + (Kp + Ki) e(k) - Kp e(k-1), with dead zone and integer caps.

    The integer cap is fed back as u(k-1). An increment that rounds to no change is therefore lost,
    which is why the published loop cannot leave cap 1 below 20 kp/s (PI) or 15 kp/s (dead-beat);
    `AdaptiveLaw` has no such limit.
    """

    gains: PaperGains

    def start(self, cap: CapFraction | None) -> PaperState:
        """Begin at the cap in force; an uncapped router begins at one whole CPU."""
        return PaperState(log_cap=math.log10(_whole_percent(cap or 1.0, self.gains.min_cap)))

    def step(
        self, state: PaperState, setpoint: float, sample: Sample, bounds: Bounds
    ) -> tuple[PaperState, Decision]:
        """Compute Eq. 2 once; within the dead zone, the last configured cap stays."""
        error = (setpoint - sample.throughput) / 1e3
        if abs(error) <= self.gains.dead_zone * setpoint / 1e3:
            percent = self._configurable(state.log_cap, bounds)
            kept = PaperState(math.log10(percent), error)
            return kept, Decision(CapFraction(percent / 100), Reason.DEAD_ZONE)
        log_cap = (
            state.log_cap + (self.gains.kp + self.gains.ki) * error - self.gains.kp * state.error
        )
        percent = self._configurable(log_cap, bounds)
        decision = Decision(CapFraction(percent / 100), Reason.ACT)
        return PaperState(math.log10(percent), error), decision

    def _configurable(self, log_cap: float, bounds: Bounds) -> int:
        """Return the whole percentage nearest to a logarithm, which may be out of bounds."""
        wanted = 10 ** min(max(log_cap, -1.0), 5.0) / 100
        ceiling = max(math.floor(bounds.ceiling * 100 + 1e-9), 1)
        return min(_whole_percent(wanted, max(self.gains.min_cap, bounds.floor)), ceiling)


def _whole_percent(cap: float, floor: float) -> int:
    return max(round(cap * 100), math.ceil(floor * 100 - 1e-9), 1)
