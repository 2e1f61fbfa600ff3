"""Caps of removed routers, pending restore.

An entry leaves the journal only after its cap is undone, regardless of the number of retries and of
later configurations.
"""

from collections.abc import Mapping

from xtc.actuator.places import PlaceOf, place_of, takes_over
from xtc.isolation import Firewall, Unforeseen
from xtc.manager.cap import CapController
from xtc.manager.removals import NO_ROUTER
from xtc.spec import ActuatorSpec, Original
from xtc.state.journal import Entry


class Orphans:
    """Restores caps, with the backoff of their actuators."""

    def __init__(self, guard: Firewall) -> None:
        self._guard = guard
        self._controllers: list[tuple[str, CapController]] = []

    def release(self, name: str, controller: CapController) -> str:
        """Restore a router's original settings, now or later; return why not yet."""
        trouble = self._release(name, controller)
        if trouble:
            self._controllers.append((name, controller))
        return trouble

    def _release(self, name: str, controller: CapController) -> str:
        """Restore a router's original settings; return why it is not done, if so."""
        done = self._guard.run("release", name, controller.release)
        if isinstance(done, Unforeseen):
            return f"{name}: {done.words}"
        return "" if done else f"{name}: {controller.problem}"

    def taken_over(self, spec: ActuatorSpec, place: PlaceOf = place_of) -> Original | None:
        """Return the original settings of a place, and leave the place to its current router."""
        for left in self._controllers:
            original = left[1].original
            assert original is not None  # without an original there is nothing to restore
            if takes_over(spec, left[1].spec, original, place):
                self._controllers.remove(left)
                return original
        return None

    def try_again(self) -> None:
        """Retry for a period."""
        for _, controller in self._controllers:
            controller.begin_period()
        self._controllers = [
            (name, controller)
            for name, controller in self._controllers
            if controller.resting or self._release(name, controller)
        ]

    def entries(self, present: Mapping[str, Entry]) -> dict[str, Entry]:
        """Return the journal's entries with these added under names that no router can have."""
        every = dict(present)
        for name, controller in self._controllers:
            assert (
                controller.original is not None
            )  # without an original there is nothing to restore
            free = name + NO_ROUTER
            while free in every:
                free += NO_ROUTER
            every[free] = Entry(controller.spec, controller.original)
        return every
