"""Time as a parameter: the monotonic clock of the machine, and one that tests control."""

import time
from typing import Protocol

from common.units import Seconds


class Clock(Protocol):
    """The clock that the daemon needs."""

    def now(self) -> Seconds:
        """Return the monotonic instant; unaffected by steps of the wall clock."""
        ...

    def sleep(self, duration: Seconds) -> None:
        """Wait for the duration."""
        ...


class MonotonicClock:
    """CLOCK_MONOTONIC of this machine (clock_gettime(2))."""

    def now(self) -> Seconds:
        """Return seconds since an arbitrary start, the same for every process of this boot."""
        return Seconds(time.monotonic())

    def sleep(self, duration: Seconds) -> None:
        """Sleep; a negative duration returns immediately."""
        time.sleep(max(0.0, duration))


class FakeClock:
    """A clock for tests: sleeping takes no time and advances the clock."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> Seconds:
        """Return the instant that the test has set."""
        return Seconds(self._now)

    def sleep(self, duration: Seconds) -> None:
        """Jump ahead by the duration."""
        self._now += max(0.0, duration)
