"""Limits of flows in a slot: none, or a rate (paper, section 3.3)."""

from time import perf_counter_ns
from typing import Protocol

import numpy as np

from xco.arrays import Flags, Floats
from xco.simulate.fill import equal_shares
from xco.simulate.routes import Routes


class Coordination(Protocol):
    """A strategy, called at the beginning of every slot."""

    @property
    def events(self) -> int:
        """Number of decisions."""

    @property
    def decisions(self) -> int:
        """Number of grants and rates given, changed or ended."""

    @property
    def spent_ns(self) -> int:
        """Wall time spent on decisions."""

    def rates(self, slot: int, ready: Flags) -> Floats:
        """Return the bits/s that each flow may send; takes which flows have something to send.

        Both are of shape (flows,).
        """


class Uncoordinated:
    """Every flow may send at its host's rate."""

    events = decisions = spent_ns = 0

    def __init__(self, host_rate: Floats) -> None:
        """Take C_x of each flow's host in bits/s, shape (flows,)."""
        self._rate = host_rate

    def rates(self, slot: int, ready: Flags) -> Floats:
        """Return each host's rate."""
        del slot, ready
        return self._rate


class RateLimits:
    """The paper's rate limiting: a bottleneck's capacity divided by the number of its flows.

    Rates change in the same slot as the set of senders: the controller takes no time.
    """

    def __init__(self, routes: Routes, capacity: Floats) -> None:
        """Take paths, and capacities in bits/s of shape (links,)."""
        self._routes, self._capacity = routes, capacity
        flows = len(routes.offsets)
        self._ready, self._rates = np.zeros(flows, np.bool_), np.zeros(flows)
        self.events = self.decisions = self.spent_ns = 0

    def rates(self, slot: int, ready: Flags) -> Floats:
        """Return for each flow the least of its links' capacities, each divided by its senders."""
        del slot
        changed = int(np.count_nonzero(ready != self._ready))
        if changed:
            began = perf_counter_ns()
            rates = equal_shares(self._routes, self._capacity, ready)
            self.decisions += int(np.count_nonzero(rates != self._rates))
            self.events += changed
            self._ready, self._rates = ready, rates
            self.spent_ns += perf_counter_ns() - began
        return self._rates
