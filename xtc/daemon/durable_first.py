"""Requests that must be in the journal first: they wait for the disk, but the loop does not."""

from collections.abc import Callable
from typing import Protocol

from xtc.wire import Reply


class Orders(Protocol):
    """Carries out requests (`xtc.manager.manager`)."""

    def prepare(self, raw: bytes) -> int | None:
        """Give the journal what it must hold first; return a number to wait for, or None."""
        ...

    def settled(self, ticket: int) -> bool:
        """Whether there is nothing left to wait for."""
        ...


class DurableFirst:
    """Carries out requests in order, each once the journal holds what it must."""

    def __init__(self, orders: Orders, carry_out: Callable[[bytes], Reply]) -> None:
        self._orders, self._carry_out = orders, carry_out
        self._waiting: bytes | None = None
        """The waiting request."""
        self._ticket: int | None = None

    def answer(self, raw: bytes) -> Reply | None:
        """Return the reply to a request; None if it waits: repeat the call when the loop wakes."""
        if raw is not self._waiting:
            self._waiting, self._ticket = raw, self._orders.prepare(raw)
        if self._ticket is not None and not self._orders.settled(self._ticket):
            return None
        self._waiting = None
        return self._carry_out(raw)
