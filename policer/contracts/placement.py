"""Which hosts have room for a promise, and where routers of lost hosts go; pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from policer.contracts.admission import EXACT


class Room(NamedTuple):
    """Capacity of a host that is still free for promises."""

    host: str
    capacity_pps: float
    promised_pps: float
    """What its guarantees take, at their costs."""

    @property
    def free_pps(self) -> float:
        """What is left; negative if the host is overcommitted."""
        return self.capacity_pps - self.promised_pps

    def takes(self, pps: float) -> bool:
        """Whether a guarantee, at its cost, fits next to the existing ones."""
        return self.promised_pps + pps <= self.capacity_pps * (1 + EXACT)

    def with_more(self, pps: float) -> "Room":
        """Return the room after another promise."""
        return self._replace(promised_pps=self.promised_pps + pps)


class Guaranteed(NamedTuple):
    """A router, and how much of a host its guarantee takes."""

    host: str
    vr: str
    pps: float
    """Guarantee times cost, packets/s."""


class Move(NamedTuple):
    """Destination of a router of a lost host."""

    router: Guaranteed
    to: str | None
    """None if no remaining host has room."""


def fitting(rooms: Iterable[Room], pps: float) -> list[Room]:
    """Return the hosts that can take a guarantee, the fullest first.

    The fullest first (best fit) leaves the largest rooms for the largest guarantees. A host that
    may overcommit is no exception: it would accept the promise, but could not fulfil it.

    Args:
        rooms: the hosts.
        pps: guarantee times cost, packets/s.
    """
    return sorted((room for room in rooms if room.takes(pps)), key=lambda r: (r.free_pps, r.host))


def moved(rooms: Sequence[Room], routers: Iterable[Guaranteed], lost: set[str]) -> list[Move]:
    """Find a place for each guaranteed router of hosts that are lost.

    Largest guarantee first, each to the fullest host that has room (best fit decreasing). For
    identical hosts that takes at most 11/9 of the hosts that the best packing takes, and 4 more
    (Johnson, 1974); where it finds no place, a better packing may.

    Args:
        rooms: the hosts, lost ones too.
        routers: all routers of these hosts with a guarantee.
        lost: names of hosts.

    Returns:
        A move for each router of a lost host whose guarantee takes anything, the largest first.
    """
    left = {room.host: room for room in rooms if room.host not in lost}
    homeless = [one for one in routers if one.host in lost and one.pps > 0]
    homeless.sort(key=lambda one: (-one.pps, one.host, one.vr))
    return [Move(one, _settled(left, one.pps)) for one in homeless]


def _settled(left: dict[str, Room], pps: float) -> str | None:
    """Assign a guarantee to a host; return its name, or None if no host has room."""
    best = next(iter(fitting(left.values(), pps)), None)
    if best is None:
        return None
    left[best.host] = best.with_more(pps)
    return best.host


def rooms_after(rooms: Sequence[Room], moves: Iterable[Move], lost: set[str]) -> list[Room]:
    """Return the rooms of the remaining hosts after the moves."""
    gained = _gains(moves)
    return [one.with_more(gained.get(one.host, 0.0)) for one in rooms if one.host not in lost]


def _gains(moves: Iterable[Move]) -> dict[str, float]:
    gained: dict[str, float] = {}
    for move in moves:
        if move.to is not None:
            gained[move.to] = gained.get(move.to, 0.0) + move.router.pps
    return gained
