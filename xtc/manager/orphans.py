"""What routers that are configured no more left behind: caps that are still to be put back.

An entry leaves the journal only when what it stands for is undone, however often that must be
tried and whatever the configuration says by then.
"""

from collections.abc import Mapping

from xtc.actuator.places import PlaceOf, place_of, takes_over
from xtc.isolation import Firewall, Unforeseen
from xtc.manager.cap import Keeper
from xtc.manager.removals import NOBODY
from xtc.spec import ActuatorSpec, Original
from xtc.state.journal import Entry


class Leftovers:
    """Puts back caps as soon as their actuators have rested."""

    def __init__(self, guard: Firewall) -> None:
        self._guard = guard
        self._keepers: list[tuple[str, Keeper]] = []

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
            assert keeper.original is not None  # a keeper without one has nothing to put back
            free = name + NOBODY
            while free in every:
                free += NOBODY
            every[free] = Entry(keeper.spec, keeper.original)
        return every
