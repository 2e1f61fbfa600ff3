"""Allocation of a host: guarantees first, the rest by weighted max-min, idle shares lent; pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import msgspec

LEAP = 2.0
"""A setpoint above the router's equal share is at most this many times its kept share (`kept`)."""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A router's contract and its current demand; rates in packets/s."""

    vr: str
    wanted: float
    """What it would forward without a limit."""
    guarantee: float = 0.0
    ceiling: float = math.inf
    weight: float = 1.0
    cost: float = 1.0
    """Of one packet, in the capacity's unit: CPUs where routers differ, else 1."""
    needed: float = 0.0
    """Part of its guarantee that is not lent even if unused: a full host may starve the router."""
    sent: float | None = None
    """Traffic sent to it for certain; None means all that it wants."""

    @property
    def useful(self) -> float:
        """The most that it can use."""
        return min(self.wanted, self.ceiling)

    @property
    def certain(self) -> float:
        """What it would certainly forward without a limit."""
        return self.useful if self.sent is None else self.sent

    @property
    def kept(self) -> float:
        """The part that is not lent to others while it is available."""
        needed = min(self.needed, self.guarantee, self.ceiling)
        return max(min(self.wanted, self.ceiling), needed)

    @property
    def due(self) -> float:
        """The part of its guarantee that is reserved for it."""
        return min(self.guarantee, self.kept)


def use(claims: Iterable[Claim], setpoints: Mapping[str, float]) -> float:
    """Return how much of the capacity routers use at these setpoints."""
    return sum(claim.cost * min(setpoints[claim.vr], claim.useful) for claim in claims)


def promised(claims: Iterable[Claim]) -> float:
    """Return how much of the capacity the reserved parts of the guarantees use now."""
    return sum(claim.cost * claim.due for claim in claims)


def allocate(claims: Sequence[Claim], capacity: float) -> dict[str, float]:
    """Return each router's setpoint in packets/s.

    Each setpoint is the guarantee plus a weighted share of the rest, at the level at which the
    usable shares fill the capacity. If the guarantees exceed the capacity, each gets the same
    fraction. A router that uses less than its setpoint lends the rest until a round sees it use
    more. The rise in one round is bounded, so that the other guarantees do not suffer.

    Args:
        claims: one for each router of the host.
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
    """Return how much of each guarantee can be met: all of it, or the same fraction of each."""
    guarantees, costs = [c.guarantee for c in claims], [c.cost for c in claims]
    due = [min(g, k) for g, k in zip(guarantees, kept, strict=True)]
    if sum(c * d for c, d in zip(costs, due, strict=True)) <= capacity:
        return guarantees
    share = min(1.0, water_level(guarantees, costs, due, capacity))
    return [share * g for g in guarantees]


def _level(claims: Sequence[Claim], room: Sequence[float], left: float) -> float:
    """Return the level that uses up what is left; capacity that no router can use raises all."""
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

    The level is limited by what is left. It is infinite if every room is filled.
    """
    steps = sorted((r / w, w * c) for w, c, r in zip(weights, costs, room, strict=True) if w > 0)
    # Summed from the end: subtracting from a slope loses its last digits.
    slopes = list(accumulate(rate for _, rate in reversed(steps)))[::-1]
    filled = level = 0.0
    for (full, _), slope in zip(steps, slopes, strict=True):
        if filled + slope * (full - level) > left:
            return level + (left - filled) / slope
        filled += slope * (full - level)
        level = full
    return math.inf
