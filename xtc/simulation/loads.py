"""Loads: the packets sent towards a simulated router over time.

A load returns the packets sent since the start, not its rate at an instant: with any step size of a
simulation, no packets are lost or counted twice.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

STEP_OF_WALK = 0.15
"""Standard deviation of a random walk's steps, in natural logarithms of the rate."""


class Load(Protocol):
    """The packets sent towards a router."""

    @property
    def peak(self) -> float:
        """The highest rate, in packets/s."""
        ...

    @property
    def finest(self) -> float:
        """The shortest time, in seconds, that a simulation must resolve; infinity for none."""
        ...

    def sent(self, until: float) -> float:
        """Return the packets sent from 0 to an instant in seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Steady:
    """A constant rate."""

    peak: float
    finest: float = math.inf

    def sent(self, until: float) -> float:
        """Return the packets sent from 0 to an instant in seconds."""
        return self.peak * until


@dataclass(frozen=True, slots=True)
class Pulses:
    """A rate for the first part of every cycle, and 0 for the rest of it."""

    peak: float
    on_s: float
    cycle_s: float

    @property
    def finest(self) -> float:
        """The shorter part."""
        return min(self.on_s, self.cycle_s - self.on_s)

    def sent(self, until: float) -> float:
        """Return the packets sent from 0 to an instant in seconds."""
        cycles, rest = divmod(until, self.cycle_s)
        return self.peak * (cycles * self.on_s + min(rest, self.on_s))


@dataclass(frozen=True, slots=True)
class Sine:
    """A sine between two rates, which starts at their mean."""

    low: float
    peak: float
    cycle_s: float

    @property
    def finest(self) -> float:
        """A sixteenth of the cycle."""
        return self.cycle_s / 16

    def sent(self, until: float) -> float:
        """Return the packets sent from 0 to an instant in seconds."""
        mean, swing = (self.peak + self.low) / 2, (self.peak - self.low) / 2
        turns = 2 * math.pi / self.cycle_s
        return mean * until + swing * (1 - math.cos(turns * until)) / turns


@dataclass(frozen=True, slots=True)
class Ramp:
    """A linear rise from one rate to a higher one in half a cycle, and a linear fall back."""

    low: float
    peak: float
    cycle_s: float

    @property
    def finest(self) -> float:
        """A sixteenth of the cycle."""
        return self.cycle_s / 16

    def sent(self, until: float) -> float:
        """Return the packets sent from 0 to an instant in seconds."""
        cycles, rest = divmod(until, self.cycle_s)
        half, mean = self.cycle_s / 2, (self.low + self.peak) / 2
        up = min(rest, half)
        down = rest - up
        slope = (self.peak - self.low) / half
        rising = self.low * up + slope * up * up / 2
        falling = self.peak * down - slope * down * down / 2
        return cycles * mean * self.cycle_s + rising + falling


class Steps:
    """Rates that hold until the next one; nothing before the first, the last one without end."""

    def __init__(self, starts: Sequence[float], rates: Sequence[float]) -> None:
        """Take equal numbers of instants, in seconds and increasing, and rates in packets/s."""
        self._starts, self._rates = tuple(starts), tuple(rates)
        lengths = [b - a for a, b in pairwise(starts)]
        amounts = (rate * length for rate, length in zip(rates, lengths, strict=False))
        self._sent = (0.0, *accumulate(amounts))
        self.peak = max(rates)
        self.finest = min(lengths, default=math.inf)

    def sent(self, until: float) -> float:
        """Return the packets sent from 0 to an instant in seconds."""
        at = bisect_right(self._starts, until) - 1
        if at < 0:
            return 0.0
        return self._sent[at] + self._rates[at] * (until - self._starts[at])


def walk(low: float, high: float, step_s: float, duration_s: float, seed: int) -> Steps:
    """Return a random walk between two rates, which starts at their geometric mean.

    Args:
        low: the lowest rate, above 0.
        high: the highest.
        step_s: the duration of each rate.
        duration_s: the length of the walk.
        seed: the same gives the same walk.
    """
    chance = random.Random(seed)  # noqa: S311  a load, not a secret
    rates = [math.sqrt(low * high)]
    for _ in range(math.ceil(duration_s / step_s)):
        wanted = rates[-1] * math.exp(STEP_OF_WALK * chance.gauss(0, 1))
        rates.append(min(max(wanted, low), high))
    return Steps([step_s * at for at in range(len(rates))], rates)
