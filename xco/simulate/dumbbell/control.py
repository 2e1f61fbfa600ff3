"""What limits the senders of the dumbbell: nothing, fixed shares, or a slow controller."""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xco.arrays import Flags, Floats


@dataclass(frozen=True, slots=True)
class Period:
    """What port and hosts counted in one monitoring period; arrays of shape (senders,), bits."""

    ends: float
    seconds: float
    active: Flags
    sent: Floats
    kept: Floats
    marked: Floats
    left: float
    """That left the port, of all senders with or without a shim."""
    all_marked: float
    """The same, marked."""
    lost: float
    """The same, dropped."""


class Control(Protocol):
    """A law: it sees periods, and returns the limits that it wants in force."""

    @property
    def period_s(self) -> float:
        """The monitoring period."""

    @property
    def hides_marks(self) -> bool:
        """Whether a shim clears marks before guests see them."""

    def decide(self, seen: Period) -> Floats:
        """Return the limit of each sender, shape (senders,), bits/s."""


class Limits:
    """The limiters: each decision is in force after the delay of the control loop."""

    def __init__(self, first: Floats, delay_s: float) -> None:
        """Take the limits at the start, shape (senders,), and the delay."""
        self.now, self._delay_s = first, delay_s
        self._under_way: deque[tuple[float, Floats]] = deque()

    def tell(self, at: float, limits: Floats) -> None:
        """Send limits off."""
        self._under_way.append((at + self._delay_s, limits))

    def at(self, now: float) -> Floats:
        """Return the limits in force."""
        while self._under_way and self._under_way[0][0] <= now:
            self.now = self._under_way.popleft()[1]
        return self.now


@dataclass(frozen=True, slots=True)
class Fixed:
    """Limits that never change: none, or static shares."""

    limits: Floats
    period_s: float = 1.0
    hides_marks: bool = False

    def decide(self, seen: Period) -> Floats:
        """Return the fixed limits."""
        del seen
        return self.limits


def max_min(capacity_bps: float, demand_bps: Floats, weights: Floats) -> Floats:
    """Return weighted max-min shares of one port, in bits/s, of shape (senders,).

    No sender gets more than its demand; what it leaves is shared by the others.
    """
    shares, left = np.zeros(len(demand_bps)), capacity_bps
    hungry = demand_bps > 0
    while hungry.any() and left > 0:
        level = left / float(weights[hungry].sum())
        content = hungry & (demand_bps <= level * weights)
        if not content.any():
            shares[hungry] = level * weights[hungry]
            return shares
        shares[content] = demand_bps[content]
        left -= float(demand_bps[content].sum())
        hungry &= ~content
    return shares
