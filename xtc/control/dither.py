"""Dithering of whole-percent caps: alternates neighbouring caps to get the right mean."""

import math

import msgspec

from common.units import CapFraction

SLOTS = 10
"""Parts of a period; at most two of them write to the actuator."""
WORTH_ALTERNATING = 0.02
"""Steps below this share of the cap are left to the next periods: too small to measure."""


class Dithered(msgspec.Struct, frozen=True, gc=False):
    """A period at a high cap for some slots, then at a low one for the rest."""

    high: CapFraction
    low: CapFraction
    high_slots: int

    @property
    def mean(self) -> CapFraction:
        """The mean cap over the period."""
        share = self.high_slots / SLOTS
        return CapFraction(self.low + (self.high - self.low) * share)

    @property
    def caps(self) -> tuple[CapFraction, ...]:
        """The cap of each slot."""
        return (self.high,) * self.high_slots + (self.low,) * (SLOTS - self.high_slots)


def steady(cap: CapFraction, quantum: float) -> Dithered:
    """Return a period at the single settable cap nearest to the one given."""
    nearest = CapFraction(max(round(cap / quantum), 1) * quantum) if quantum > 0 else cap
    return Dithered(nearest, nearest, SLOTS)


def slots_for(cap: CapFraction, quantum: float, *, slow: bool) -> int:
    """Return the number of parts of a period worth using: one where the actuator is slow."""
    return 1 if slow or quantum < WORTH_ALTERNATING * cap else SLOTS


def dither(
    cap: CapFraction, quantum: float, owed: float = 0.0, slots: int = SLOTS
) -> tuple[Dithered, float]:
    """Return the period whose mean is the cap, and the remainder owed to the next.

    Args:
        cap: the wanted mean, as a fraction of one CPU.
        quantum: the step between caps that can be set; 0 for none, which disables alternation.
        owed: remainder of the previous period (sigma-delta), at most half a slot's worth.
        slots: 1 keeps to one cap within the period, and alternates between periods.
    """
    if quantum <= 0:
        return Dithered(cap, cap, SLOTS), 0.0
    if cap <= quantum:
        least = CapFraction(quantum)
        return Dithered(least, least, SLOTS), 0.0
    wanted = (cap + owed) / quantum
    whole = max(math.floor(wanted + 1e-9), 1)
    high_slots = min(max(round((wanted - whole) * slots), 0), slots) * SLOTS // slots
    low, high = CapFraction(whole * quantum), CapFraction((whole + 1) * quantum)
    if high_slots == 0:
        high, high_slots = low, SLOTS
    period = Dithered(high, low, high_slots)
    return period, cap + owed - period.mean
