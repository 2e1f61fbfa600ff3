"""Interfaces from which something must be removed: retried until it is done."""

from collections.abc import Callable, Iterable
from functools import partial

from xtc.errors import ActuatorError
from xtc.isolation import Firewall, Unforeseen

NO_ROUTER = "'"
"""The journal's name for the owner of leftovers; no router can have it."""
AGAIN_EVERY = 32
"""Periods between two attempts to lift what could not be lifted."""


class Lifts:
    """Lifts one kind of setting, and remembers where that failed."""

    def __init__(self, where: str, lift: Callable[[str], None], guard: Firewall) -> None:
        """Start with nothing to lift.

        Args:
            where: the kind of setting, for metric and log.
            lift: lifts it from one interface, or raises an `ActuatorError`.
            guard: isolates an unforeseen error of one interface from the others.
        """
        self._where, self._lift, self._guard = where, lift, guard
        self._left: dict[str, None] = {}
        self._periods = 0

    def lift(self, interfaces: Iterable[str]) -> str:
        """Lift from interfaces, now or later; return why not yet."""
        troubles = []
        for interface in interfaces:
            self._left.pop(interface, None)
            if trouble := self._try(interface):
                self._left[interface] = None
                troubles.append(trouble)
        return "; ".join(troubles)

    def _try(self, interface: str) -> str:
        lift = partial(self._lift, interface)
        try:
            done = self._guard.run(self._where, interface, lift, passing=(ActuatorError,))
        except ActuatorError as error:
            return str(error)
        return f"{interface}: {done.words}" if isinstance(done, Unforeseen) else ""

    def leave(self, interfaces: Iterable[str]) -> None:
        """Leave interfaces to the router that has just taken them."""
        for interface in interfaces:
            self._left.pop(interface, None)

    def try_again(self) -> None:
        """Retry for a period."""
        self._periods += 1
        if self._periods % AGAIN_EVERY == 0:
            self.lift(tuple(self._left))

    def left(self) -> dict[str, tuple[str, ...]]:
        """Return, for the journal, the interfaces that no longer belong to any router."""
        return {NO_ROUTER: tuple(self._left)} if self._left else {}
