"""Time as a parameter: the monotonic clock of the machine, and one that tests move by hand."""

import time
from typing import Protocol

from common.units import Seconds


class Clock(Protocol):
    """What the daemon needs of time."""

    def now(self) -> Seconds:
        """Return the monotonic instant; wall-clock steps never show here."""
        ...

    def sleep(self, duration: Seconds) -> None:
        """Let the duration pass."""
        ...


class MonotonicClock:
    """CLOCK_MONOTONIC of this machine (clock_gettime(2))."""

    def now(self) -> Seconds:
        """Return seconds since an arbitrary start, the same for every process of this boot."""
        return Seconds(time.monotonic())

    def sleep(self, duration: Seconds) -> None:
        """Sleep; a duration that has already passed returns at once."""
        time.sleep(max(0.0, duration))


class FakeClock:
    """A clock that jumps: sleeping takes no time and moves the instant on."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> Seconds:
        """Return the instant that the test has set."""
        return Seconds(self._now)

    def sleep(self, duration: Seconds) -> None:
        """Jump ahead by the duration."""
        self._now += max(0.0, duration)
