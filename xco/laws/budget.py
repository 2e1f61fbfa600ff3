"""What coordinated senders may share of a port: by its bytes and its marks. Pure.

The law `fair` of SDN-GCC and HyGenICC (decision 0074). Rates are in bits/s, times in seconds. The
port's bytes tell what senders without a shim take. Its marks tell when its queue stands: then the
bytes that leave it are its true capacity. So one look at a congested port gives the budget, where a
law that follows marks step by step needs many, and pays for every mark of a burst.
"""

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Settings:
    """When a port counts as congested, and how fast its budget recovers."""

    aim: float = 0.99
    """Share of the capacity that is given out; the rest empties the queue."""
    standing: float = 0.6
    """Marked share of a period's packets from which on the queue stands: a burst marks fewer."""
    persistence: int = 3
    """Periods in a row after which a standing queue is believed."""
    dead_zone: float = 0.02
    """Share of the capacity below which foreign traffic may be an error of the counters."""
    smoothing_s: float = 0.02
    """Time constant of foreign traffic."""
    recovery_s: float = 1.0
    """Time constant with which a reduced capacity rises again, to see whether it still holds."""
    least: float = 0.05
    """Share of the capacity that coordinated senders keep, whatever a port reports."""


DEFAULT: Final = Settings()


@dataclass(frozen=True, slots=True)
class PortPeriod:
    """Differences of a port's counters over a period."""

    seconds: float
    bits: float
    """That left the port."""
    coordinated_bits: float
    """Of these, sent by hosts with a shim, by their own counters."""
    packets: float
    marks: float
    drops: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """What is known of a port."""

    capacity_bps: float
    foreign_bps: float = 0.0
    stood: int = 0
    """Periods in a row in which the queue stood."""
    calm_s: float = math.inf
    """Time since a standing queue was believed."""


def observed(budget: Budget, seen: PortPeriod, nominal_bps: float, settings: Settings) -> Budget:
    """Return the budget after a period.

    A port that does not mark is congested when it drops.

    Args:
        budget: before.
        seen: the port's period.
        nominal_bps: its capacity, as the topology states it.
        settings: of the law.
    """
    congested = seen.packets > 0 and (
        seen.marks >= settings.standing * seen.packets or seen.drops > 0
    )
    stood = budget.stood + 1 if congested else 0
    found_bps = seen.bits / seen.seconds
    weight = 1.0 - math.exp(-seen.seconds / settings.smoothing_s)
    foreign_bps = max(0.0, found_bps - seen.coordinated_bits / seen.seconds)
    smoothed = budget.foreign_bps + weight * (foreign_bps - budget.foreign_bps)
    if stood >= settings.persistence:
        return Budget(min(nominal_bps, found_bps), max(smoothed, foreign_bps), stood, 0.0)
    rise = 1.0 - math.exp(-seen.seconds / settings.recovery_s)
    capacity = budget.capacity_bps + rise * (nominal_bps - budget.capacity_bps)
    return Budget(capacity, smoothed, stood, budget.calm_s + seen.seconds)


def shared_bps(budget: Budget, nominal_bps: float, settings: Settings) -> float:
    """Return what coordinated senders may share of the port."""
    certain = budget.calm_s < settings.recovery_s
    believed = certain or budget.foreign_bps >= settings.dead_zone * nominal_bps
    foreign_bps = budget.foreign_bps if believed else 0.0
    return max(settings.least * nominal_bps, settings.aim * budget.capacity_bps - foreign_bps)
