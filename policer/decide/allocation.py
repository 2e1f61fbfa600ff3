"""Shares a host out: guarantees first, the rest by weighted max-min, idle shares lent; pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import msgspec

LEAP = 2.0
"""A router that has all it can use may go to so many times that at once."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What one router was promised and what it could use now; rates in packets/s."""

    vr: str
    wanted: float
    """What it would forward if nothing held it."""
    guarantee: float = 0.0
    ceiling: float = math.inf
    weight: float = 1.0
    cost: float = 1.0
    """Of one packet, in the capacity's unit: CPUs where routers differ, else 1."""
    needed: float = 0.0
    """What of its guarantee is not lent, though it may use less: a full host may starve it."""
    sent: float | None = None
    """What was sent to it for certain; None is all that it wants."""

    @property
    def useful(self) -> float:
        """The most that it can make use of."""
        return min(self.wanted, self.ceiling)

    @property
    def certain(self) -> float:
        """What it would forward for certain if nothing held it."""
        return self.useful if self.sent is None else self.sent

    @property
    def kept(self) -> float:
        """What is not lent to others while it can be had."""
        needed = min(self.needed, self.guarantee, self.ceiling)
        return max(min(self.wanted, self.ceiling), needed)

    @property
    def due(self) -> float:
        """What of its guarantee is kept for it."""
        return min(self.guarantee, self.kept)


def use(claims: Iterable[Claim], setpoints: Mapping[str, float]) -> float:
    """Return what routers held at these setpoints take of the capacity."""
    return sum(claim.cost * min(setpoints[claim.vr], claim.useful) for claim in claims)


def promised(claims: Iterable[Claim]) -> float:
    """Return what the guarantees take of the capacity now, of what is kept for them."""
    return sum(claim.cost * claim.due for claim in claims)


def allocate(claims: Sequence[Claim], capacity: float) -> dict[str, float]:
    """Return each router's setpoint in packets/s.

    Everybody's setpoint is its guarantee and its weight's part of what is left, at a level at
    which what the routers can use fills the capacity. Guarantees that exceed the capacity are met
    to the same share. A router that uses less than its setpoint lends the rest to the others
    until a round sees it use it; it may not leap so far at once that their guarantees suffer.

    Args:
        claims: of all routers of the host.
        capacity: what the host can forward, or the CPUs that it can spend.
    """
    if not claims:
        return {}
    kept = [c.kept for c in claims]
    met = _met(claims, kept, capacity)
    used = [min(g, k) for g, k in zip(met, kept, strict=True)]
    left = max(0.0, capacity - sum(c.cost * u for c, u in zip(claims, used, strict=True)))
    room = [max(0.0, k - u) for k, u in zip(kept, used, strict=True)]
    level, equal = _level(claims, room, left), left / sum(c.weight * c.cost for c in claims)
    return {
        c.vr: min(c.ceiling, g + c.weight * level, max(g + c.weight * equal, LEAP * k))
        for c, g, k in zip(claims, met, kept, strict=True)
    }


def _met(claims: Sequence[Claim], kept: Sequence[float], capacity: float) -> list[float]:
    """Return what of each guarantee can be met: all of it, or everybody's same share."""
    guarantees, costs = [c.guarantee for c in claims], [c.cost for c in claims]
    due = [min(g, k) for g, k in zip(guarantees, kept, strict=True)]
    if sum(c * d for c, d in zip(costs, due, strict=True)) <= capacity:
        return guarantees
    share = min(1.0, water_level(guarantees, costs, due, capacity))
    return [share * g for g in guarantees]


def _level(claims: Sequence[Claim], room: Sequence[float], left: float) -> float:
    """Return the level at which what is left is used up; what nobody can use raises all."""
    weights, costs = [c.weight for c in claims], [c.cost for c in claims]
    level = water_level(weights, costs, room, left)
    if math.isfinite(level):
        return level
    spare = left - sum(c * r for c, r in zip(costs, room, strict=True))
    filled = max(r / w for r, w in zip(room, weights, strict=True))
    return filled + max(0.0, spare) / sum(w * c for w, c in zip(weights, costs, strict=True))


def water_level(
    weights: Sequence[float], costs: Sequence[float], room: Sequence[float], left: float
) -> float:
    """Return the level up to which `weight * level` may rise, each within its room.

    What is left pays for it; infinite where everybody's room is filled.
    """
    steps = sorted((r / w, w * c) for w, c, r in zip(weights, costs, room, strict=True) if w > 0)
    # Summed from the end, since a slope that is subtracted from loses its last digits.
    slopes = list(accumulate(rate for _, rate in reversed(steps)))[::-1]
    filled = level = 0.0
    for (full, _), slope in zip(steps, slopes, strict=True):
        if filled + slope * (full - level) > left:
            return level + (left - filled) / slope
        filled += slope * (full - level)
        level = full
    return math.inf
