"""The loop's time budget per period for waiting for one hypervisor, over all its domains."""

from collections.abc import Callable

from common.clock import Clock
from common.units import Seconds


class Budget:
    """Time for waiting, spent in order of calls; a hung hypervisor costs it once."""

    def __init__(self, clock: Clock, most: Seconds) -> None:
        """Start with the full budget."""
        self._clock = clock
        self.most = most
        self._left = most

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    def refill(self) -> None:
        """Refill the budget for another period."""
        self._left = self.most

    def spend(self, wait: Callable[[Seconds], object]) -> None:
        """Wait, for at most the rest of the budget."""
        begun = self._clock.now()
        wait(self._left)
        self._left = Seconds(max(0.0, self._left - (self._clock.now() - begun)))
