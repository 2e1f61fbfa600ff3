"""What waiting for one hypervisor may cost the loop: a budget a period, for all its domains."""

from collections.abc import Callable

from common.clock import Clock
from common.units import Seconds


class Patience:
    """Time that is spent by who waits first; a hypervisor that hangs costs it once."""

    def __init__(self, clock: Clock, most: Seconds) -> None:
        """Begin with all of it."""
        self._clock = clock
        self.most = most
        self._left = most

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    def refill(self) -> None:
        """Begin another period."""
        self._left = self.most

    def spend(self, wait: Callable[[Seconds], object]) -> None:
        """Wait, for as long as is left."""
        begun = self._clock.now()
        wait(self._left)
        self._left = Seconds(max(0.0, self._left - (self._clock.now() - begun)))
