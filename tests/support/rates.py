"""Rates of counters, with what this program's own delays leave open.

A counter is read between two looks at the clock, so that a program that is stopped in between
widens the bounds and does not bend the rate.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """A counter, read after one instant and before another (monotonic seconds)."""

    value: float
    after: float
    before: float


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast a counter grew, per second: at least and at most."""

    least: float
    most: float
    seconds: float
    """The time watched, at most."""

    def __str__(self) -> str:
        """Give both bounds."""
        return f"{self.least:.5g} to {self.most:.5g} a second over {self.seconds:.3g} s"


def read(counter: Callable[[], float]) -> Reading:
    """Read a counter."""
    after = time.monotonic()
    value = counter()
    return Reading(value, after, time.monotonic())


def between(first: Reading, second: Reading) -> Rate:
    """Return the rate between two readings."""
    grown = second.value - first.value
    longest, shortest = second.before - first.after, second.after - first.before
    return Rate(grown / longest, grown / shortest, longest)


def watch(counter: Callable[[], float], seconds: float) -> Rate:
    """Return a counter's rate over so long."""
    first = read(counter)
    time.sleep(seconds)
    return between(first, read(counter))
