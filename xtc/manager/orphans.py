"""Caps of removed routers, pending restore.

An entry leaves the journal only after its cap is undone, regardless of the number of retries and of
later configurations.
"""

from collections.abc import Mapping

from xtc.actuator.places import PlaceOf, place_of, takes_over
from xtc.isolation import Firewall, Unforeseen
from xtc.manager.cap import Keeper
from xtc.manager.removals import NOBODY
from xtc.spec import ActuatorSpec, Original
from xtc.state.journal import Entry


class Leftovers:
    """Restores caps, with the backoff of their actuators."""

    def __init__(self, guard: Firewall) -> None:
        self._guard = guard
        self._keepers: list[tuple[str, Keeper]] = []

    def release(self, name: str, keeper: Keeper) -> str:
        """Restore a router's original settings, now or later; return why not yet."""
        trouble = self._release(name, keeper)
        if trouble:
            self._keepers.append((name, keeper))
        return trouble

    def _release(self, name: str, keeper: Keeper) -> str:
        """Restore a router's original settings; return why it is not done, if so."""
        done = self._guard.run("release", name, keeper.release)
        if isinstance(done, Unforeseen):
            return f"{name}: {done.words}"
        return "" if done else f"{name}: {keeper.problem}"

    def taken_over(self, spec: ActuatorSpec, place: PlaceOf = place_of) -> Original | None:
        """Return the original settings of a place, and leave the place to its current router."""
        for left in self._keepers:
            original = left[1].original
            assert original is not None  # without an original there is nothing to restore
            if takes_over(spec, left[1].spec, original, place):
                self._keepers.remove(left)
                return original
        return None

    def try_again(self) -> None:
        """Retry for a period."""
        for _, keeper in self._keepers:
            keeper.begin_period()
        self._keepers = [
            (name, keeper)
            for name, keeper in self._keepers
            if keeper.resting or self._release(name, keeper)
        ]

    def entries(self, present: Mapping[str, Entry]) -> dict[str, Entry]:
        """Return the journal's entries with these added under names that no router can have."""
        every = dict(present)
        for name, keeper in self._keepers:
            assert keeper.original is not None  # without an original there is nothing to restore
            free = name + NOBODY
            while free in every:
                free += NOBODY
            every[free] = Entry(keeper.spec, keeper.original)
        return every
