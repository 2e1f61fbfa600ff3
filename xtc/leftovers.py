"""What routers that are configured no more left behind: caps and limits still to be undone.

An entry leaves the journal only when what it stands for is undone, however often that must be
tried and whatever the configuration says by then.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol

from xtc.actuator.spec import ActuatorSpec, Original
from xtc.errors import ActuatorError
from xtc.firewall import Firewall, Unforeseen
from xtc.journal import Entry
from xtc.keeper import MAX_BACKOFF, Keeper
from xtc.places import PlaceOf, place_of, takes_over
from xtc.units import PacketsPerSecond

NOBODY = "'"
"""The journal's name for the owner of these limits; no router can have it."""


class LimiterPort(Protocol):
    """What the manager needs of `xtc.limiter`."""

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit what the host sends through an interface."""
        ...

    def lift(self, interface: str) -> None:
        """Remove the limit."""
        ...


class Leftovers:
    """Tries to undo until it is done; a cap as its actuator has rested, a limit now and then."""

    def __init__(self, limiter: LimiterPort, guard: Firewall) -> None:
        self._limiter, self._guard = limiter, guard
        self._keepers: list[tuple[str, Keeper]] = []
        self._limited: dict[str, None] = {}
        self._periods = 0

    def release(self, name: str, keeper: Keeper) -> str:
        """Put back what a router had, now or as soon as it can be done; why not yet, in words."""
        trouble = self._release(name, keeper)
        if trouble:
            self._keepers.append((name, keeper))
        return trouble

    def _release(self, name: str, keeper: Keeper) -> str:
        """Put back what a router had; why it is not done, in words."""
        done = self._guard.run("release", name, keeper.release)
        if isinstance(done, Unforeseen):
            return f"{name}: {done.words}"
        return "" if done else f"{name}: {keeper.problem}"

    def lift(self, interfaces: Iterable[str]) -> str:
        """Lift limits, now or as soon as it can be done; why not yet, in words."""
        troubles = []
        for interface in interfaces:
            self._limited.pop(interface, None)
            if trouble := self._lift(interface):
                self._limited[interface] = None
                troubles.append(trouble)
        return "; ".join(troubles)

    def _lift(self, interface: str) -> str:
        """Lift the limit of an interface; why it is not done, in words."""
        lift = partial(self._limiter.lift, interface)
        try:
            done = self._guard.run("limit", interface, lift, passing=(ActuatorError,))
        except ActuatorError as error:
            return str(error)
        return f"{interface}: {done.words}" if isinstance(done, Unforeseen) else ""

    def limited_again(self, interfaces: Iterable[str]) -> None:
        """Leave interfaces to the router that has just limited them."""
        for interface in interfaces:
            self._limited.pop(interface, None)

    def taken_over(self, spec: ActuatorSpec, place: PlaceOf = place_of) -> Original | None:
        """Return what stood at a place before, and leave the place to the router that is there."""
        for left in self._keepers:
            original = left[1].original
            assert original is not None  # a keeper without one has nothing to put back
            if takes_over(spec, left[1].spec, original, place):
                self._keepers.remove(left)
                return original
        return None

    def try_again(self) -> None:
        """Spend a period trying."""
        self._periods += 1
        for _, keeper in self._keepers:
            keeper.begin_period()
        self._keepers = [
            (name, keeper)
            for name, keeper in self._keepers
            if keeper.resting or self._release(name, keeper)
        ]
        if self._periods % MAX_BACKOFF == 0:
            self.lift(tuple(self._limited))

    def entries(self, present: Mapping[str, Entry]) -> dict[str, Entry]:
        """Return the journal's entries with these added under names that no router can have."""
        every = dict(present)
        for name, keeper in self._keepers:
            assert keeper.original is not None  # a keeper without one has nothing to put back
            free = name + NOBODY
            while free in every:
                free += NOBODY
            every[free] = Entry(keeper.spec, keeper.original)
        return every

    def limits(self) -> dict[str, tuple[str, ...]]:
        """Return the journal's limits that belong to no router."""
        return {NOBODY: tuple(self._limited)} if self._limited else {}
