"""Which connections of clients are kept when they are too many, or wait for too long; pure."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class CrowdLimits:
    """How many connections are kept, and how long one may be without a whole request."""

    most: int = 1000
    each: int = 100
    """Of one address."""
    idle_s: float = 10.0
    """Seconds until the first request must be there, or the next, or the rest of one."""


@dataclass(slots=True)
class _Known:
    address: str
    idle_since: float | None
    """None while a request is answered."""


@dataclass(slots=True)
class Crowd(Generic[K]):
    """All connections, by what stands for them."""

    limits: CrowdLimits = CrowdLimits()
    _known: dict[K, _Known] = field(default_factory=dict)
    _count: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._known)

    def opened(self, key: K, address: str, now: float) -> K | None:
        """Take a new connection in; return the one to close for it, which may be itself.

        Connections without a pending request go first: of the address that has too many, else the
        one that has waited longest. Where all are being answered, it is the new one.
        """
        victim = self._crowded_out(address)
        if victim is not None:
            self.closed(victim)
        elif self._is_full(address):
            return key
        self._known[key] = _Known(address, now)
        self._count[address] = self._count.get(address, 0) + 1
        return victim

    def busy(self, key: K) -> None:
        """Note that a whole request has come."""
        if key in self._known:
            self._known[key].idle_since = None

    def idle(self, key: K, now: float) -> None:
        """Note that it was answered."""
        if key in self._known:
            self._known[key].idle_since = now

    def closed(self, key: K) -> None:
        """Forget a connection."""
        known = self._known.pop(key, None)
        if known is None:
            return
        left = self._count[known.address] - 1
        if left:
            self._count[known.address] = left
        else:
            del self._count[known.address]

    def overdue(self, now: float) -> list[K]:
        """Return the connections that have waited for too long."""
        limit = now - self.limits.idle_s
        return [
            key
            for key, known in self._known.items()
            if known.idle_since is not None and known.idle_since <= limit
        ]

    def _is_full(self, address: str) -> bool:
        of_address = self._count.get(address, 0) >= self.limits.each
        return of_address or len(self._known) >= self.limits.most

    def _crowded_out(self, address: str) -> K | None:
        if not self._is_full(address):
            return None
        crowded = self._count.get(address, 0) >= self.limits.each
        waiting = [
            (known.idle_since, number, key)
            for number, (key, known) in enumerate(self._known.items())
            if known.idle_since is not None and (known.address == address or not crowded)
        ]
        return min(waiting)[2] if waiting else None
