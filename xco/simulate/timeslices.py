"""Timeslices in the simulator: applies a scheduler's grants slot by slot."""

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from xco.arrays import Flags, Floats, Indices
from xco.scheduler.reference import Grant, Scheduler
from xco.simulate.pairs import Pairs

NO_PAIR = -1


class Timeslices:
    """Local coordinators and the controller's timers around a scheduler.

    At the beginning of a slot, backlogs are reported, slices end and unused ones are returned. The
    resulting grants hold from that slot on: directives take no time, as if announced ahead.
    """

    def __init__(
        self, scheduler: Scheduler, pairs: Pairs, *, slot_ns: int, slice_ns: int, idle_slots: int
    ) -> None:
        """Take the lengths of slot and slice, and how many idle slots end a host's slice."""
        self._scheduler, self._pairs = scheduler, pairs
        self._slot_ns, self._slice_ns, self._idle_slots = slot_ns, slice_ns, idle_slots
        hosts = len(pairs.begins) - 1
        self._granted: Indices = np.full(hosts, NO_PAIR, np.int64)
        self._ends: Indices = np.zeros(hosts, np.int64)
        self._idle: Indices = np.zeros(hosts, np.int64)
        self._rate = np.zeros(len(pairs.host))
        self._known: Flags = np.zeros(len(pairs.host), np.bool_)
        self.events = self.decisions = self.spent_ns = 0

    def rates(self, slot: int, ready: Flags) -> Floats:
        """Return each flow's granted bits/s; those of a pair divide its grant, shape (flows,)."""
        now = slot * self._slot_ns
        senders = self._pairs.sums(ready.astype(np.float64))
        self._give_up(now, senders > 0)
        self._report(now, senders > 0)
        self._expire(now)
        rates: Floats = (self._rate / np.maximum(senders, 1.0))[self._pairs.of_flow]
        return rates

    def _give_up(self, now: int, ready: Flags) -> None:
        """Return the slices of hosts that had nothing to send for long enough (event 2)."""
        active = np.flatnonzero(self._granted != NO_PAIR)
        idle = active[~ready[self._granted[active]]]
        counted = self._idle[idle] + 1
        self._idle[:] = 0
        self._idle[idle] = counted
        for host in idle[counted >= self._idle_slots].tolist():
            pair = self._granted[host]
            # An earlier return may have moved this host to another destination.
            if pair != NO_PAIR and self._known[pair] and not ready[pair]:
                self._known[pair] = False
                self._ask(now, self._scheduler.gave_up, host)

    def _report(self, now: int, ready: Flags) -> None:
        """Report the backlog groups of hosts with a newly backlogged destination (event 3)."""
        for host in np.unique(self._pairs.host[ready & ~self._known]).tolist():
            own = self._pairs.of(host)
            group = ready[own].copy()
            if self._granted[host] != NO_PAIR:
                group[self._granted[host] - own.start] = True
            self._known[own] = group
            destinations = self._pairs.destination[own][group].tolist()
            self._ask(now, self._scheduler.backlogged, host, destinations)

    def _expire(self, now: int) -> None:
        """End the expired slices (event 1)."""
        due = (self._granted != NO_PAIR) & (self._ends <= now)
        for host in np.flatnonzero(due).tolist():
            if self._granted[host] == NO_PAIR or self._ends[host] > now:
                continue  # an earlier slice's end has changed this grant
            self._ask(now, self._scheduler.expired, host)
            if self._ends[host] <= now:
                self._ends[host] = now + self._slice_ns

    def _ask(
        self, now: int, event: Callable[..., Sequence[Grant]], *arguments: int | list[int]
    ) -> None:
        began = perf_counter_ns()
        grants = event(now, *arguments)
        self.spent_ns += perf_counter_ns() - began
        self.events += 1
        self.decisions += len(grants)
        for grant in grants:
            self._obey(now, grant)

    def _obey(self, now: int, grant: Grant) -> None:
        host = grant.host
        if self._granted[host] != NO_PAIR:
            self._rate[self._granted[host]] = 0.0
        self._granted[host] = NO_PAIR
        if grant.destination is not None:
            pair = self._pairs.index(host, grant.destination)
            self._granted[host], self._rate[pair] = pair, grant.rate_bps
            self._ends[host], self._idle[host] = now + self._slice_ns, 0
