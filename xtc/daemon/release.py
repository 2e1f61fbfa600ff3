"""Restores many originals concurrently, without a daemon.

Threads carry out a hypervisor's caps. All releases are ordered first and then awaited together, so
that a hung domain costs the wait once and blocks no other release.
"""

from collections.abc import Mapping
from typing import Final

from common.clock import Clock
from common.units import Seconds
from xtc.actuator.base import Actuator
from xtc.actuator.factory import open_actuator
from xtc.errors import ActuatorError, Gone, UnderWay
from xtc.libvirt.hypervisors import Hypervisors
from xtc.spec import SimulatedSpec
from xtc.state.journal import Entry

ROUND_S: Final = Seconds(0.1)
"""How long to wait for one hypervisor before checking the others again."""
RELEASED: Final = "released"


class _Release:
    """The release of one router."""

    def __init__(self, entry: Entry, hypervisors: Hypervisors) -> None:
        self._entry, self._hypervisors = entry, hypervisors
        self._actuator: Actuator | None = None
        self.outcome = ""
        """RELEASED, or why not."""
        self.ended = False
        """Whether it is complete or given up; else it is pending."""

    def attempt(self) -> None:
        """Order the release, or check its result."""
        try:
            self._restore()
        except UnderWay as error:
            self.outcome = str(error)
            return
        except Gone:
            self.outcome = RELEASED
        except ActuatorError as error:
            self.outcome = str(error)
        else:
            self.outcome = RELEASED
        self.ended = True

    def _restore(self) -> None:
        spec, original = self._entry.spec, self._entry.original
        if isinstance(spec, SimulatedSpec):
            return  # the plant ended with its daemon
        if self._actuator is None:
            self._actuator = open_actuator(spec, original, domains=self._hypervisors)
        self._actuator.restore(original)


def all_released(
    entries: Mapping[str, Entry], hypervisors: Hypervisors, clock: Clock, patience: Seconds
) -> dict[str, str]:
    """Restore every original, and wait for all hypervisors for a limited time.

    Returns:
        For every router: "released", or why not.
    """
    until = clock.now() + patience
    releases = {name: _Release(entry, hypervisors) for name, entry in entries.items()}
    left = list(releases.values())
    while left:
        hypervisors.supervise()  # replaces threads that domains block
        for release in left:
            release.attempt()
        left = [release for release in left if not release.ended]
        if clock.now() >= until:
            break
    return {name: release.outcome for name, release in releases.items()}
