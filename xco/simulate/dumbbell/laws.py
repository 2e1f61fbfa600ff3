"""The laws of SDN-GCC and HyGenICC in the dumbbell: as published, and fair (decision 0074)."""

from dataclasses import replace

import numpy as np

from xco.arrays import Floats
from xco.laws import by_marks, gcc, hygenicc
from xco.laws.budget import DEFAULT, Budget, PortPeriod, Settings, observed, shared_bps
from xco.simulate.dumbbell.control import Period, max_min
from xco.simulate.dumbbell.port import PACKET_BITS

LEAST: float = 0.01
"""Rmin, as a share of the link (the paper's simulations: 1 %)."""


class Shares:
    """`rate`: the port's capacity by its active senders, or by one more for one that begins."""

    hides_marks = False

    def __init__(self, capacity_bps: float, weights: Floats, period_s: float, aim: float) -> None:
        """Take the port's capacity in bits/s, the weights, and the share that is given out."""
        self._capacity_bps, self._weights, self.period_s = capacity_bps, weights, period_s
        self._aim = aim

    def decide(self, seen: Period) -> Floats:
        """Return the shares for the senders that were active in a period."""
        return self._shared(self._aim * self._capacity_bps, seen)

    def _shared(self, budget_bps: float, seen: Period) -> Floats:
        demand = np.where(seen.active, np.inf, 0.0)
        shares = max_min(budget_bps, demand, self._weights)
        active = float(self._weights[seen.active].sum())
        newcomer = budget_bps * self._weights / (active + self._weights)
        return np.where(seen.active, shares, newcomer)


class FairShares(Shares):
    """`gcc` and the last hop of `hygenicc`, law `fair`: shares of what the port's budget is."""

    hides_marks = True

    def __init__(
        self,
        capacity_bps: float,
        weights: Floats,
        period_s: float,
        settings: Settings = DEFAULT,
    ) -> None:
        """Take the capacity that the topology states, the weights, and the law's settings."""
        super().__init__(capacity_bps, weights, period_s, settings.aim)
        self._settings, self._budget = settings, Budget(capacity_bps)

    def decide(self, seen: Period) -> Floats:
        """Return shares of the budget that the port's period leaves."""
        packets = seen.left / PACKET_BITS
        period = PortPeriod(
            seconds=seen.seconds,
            bits=seen.left,
            coordinated_bits=float(seen.kept.sum()),
            packets=packets,
            marks=seen.all_marked / PACKET_BITS,
            drops=seen.lost / PACKET_BITS,
        )
        self._budget = observed(self._budget, period, self._capacity_bps, self._settings)
        return self._shared(shared_bps(self._budget, self._capacity_bps, self._settings), seen)


class PublishedGcc:
    """`gcc`, law `published`: the controller divides a port's marks equally (Algorithms 3, 4)."""

    hides_marks = True

    def __init__(
        self, capacity_bps: float, senders: int, period_s: float, unit_bps: float, *, by_bytes: bool
    ) -> None:
        """Take the NIC's capacity, Ti, and the unit of increase; or divide marks by bytes sent."""
        self._capacity_bps, self.period_s, self._unit_bps = capacity_bps, period_s, unit_bps
        self._sources = [gcc.Source(capacity_bps, 0.0) for _ in range(senders)]
        self._by_bytes, self._carried = by_bytes, 0.0

    def decide(self, seen: Period) -> Floats:
        """Return the rates after the marks of a period, and after the shims' timers."""
        marks = self._carried + seen.all_marked / PACKET_BITS
        whole = int(marks)
        self._carried = marks - whole
        reports = self._divided(whole, seen)
        self._sources = [
            self._next(source, reports.get(str(at), 0.0), seen, sends=bool(seen.active[at]))
            for at, source in enumerate(self._sources)
        ]
        return np.array([source.R for source in self._sources])

    def _divided(self, marks: int, seen: Period) -> dict[str, float]:
        names = [str(at) for at in np.flatnonzero(seen.active)]
        if self._by_bytes:
            return gcc.shares_by_bytes(marks, {name: seen.sent[int(name)] for name in names})
        return gcc.shares(marks, names) if names else {}

    def _next(self, source: gcc.Source, marks: float, seen: Period, *, sends: bool) -> gcc.Source:
        if sends:
            source = replace(source, sent_time=seen.ends)
        told = gcc.notified(source, marks, seen.ends, self._unit_bps, self.period_s)
        raised = gcc.updated(told, seen.ends, self._capacity_bps, self._unit_bps, self.period_s)
        idle = replace(told, R=self._capacity_bps)  # its share was given back: it begins afresh
        return gcc.bounded(raised or idle, LEAST * self._capacity_bps)


class PublishedHygenicc:
    """`hygenicc`, law `published`: each sender obeys the marks that came back (Algorithms 1, 2)."""

    hides_marks = True

    def __init__(self, capacity_bps: float, senders: int, period_s: float, unit_bps: float) -> None:
        """Take the NIC's capacity, the timer's period, and the unit of increase."""
        self._capacity_bps, self.period_s, self._unit_bps = capacity_bps, period_s, unit_bps
        self._pairs = [hygenicc.Sent(capacity_bps, 0.0) for _ in range(senders)]
        self._carried = np.zeros(senders)

    def decide(self, seen: Period) -> Floats:
        """Return the rates after the marks that a period brought back."""
        marks = self._carried + seen.marked / PACKET_BITS
        whole = np.floor(marks)
        self._carried = marks - whole
        self._pairs = [
            self._next(pair, int(whole[at]), seen.ends, sends=bool(seen.active[at]))
            for at, pair in enumerate(self._pairs)
        ]
        return np.array([max(pair.R, LEAST * self._capacity_bps) for pair in self._pairs])

    def _next(self, pair: hygenicc.Sent, marks: int, now: float, *, sends: bool) -> hygenicc.Sent:
        if sends:
            pair = replace(pair, senttime=now)
        if marks > 0:
            pair = hygenicc.feedback_arrived(pair, marks, now)
        timeout_s = 2 * self.period_s
        turned = hygenicc.timer(pair, now, self._capacity_bps, self._unit_bps, timeout_s)
        return turned or hygenicc.Sent(self._capacity_bps, pair.senttime)


class FollowedMarks:
    """`hygenicc`, law `fair`, where the congested link is in between: marks alone tell of it."""

    hides_marks = True

    def __init__(self, capacity_bps: float, senders: int, period_s: float) -> None:
        """Take the senders' links in bits/s, their number, and the period of reports."""
        self._capacity_bps, self.period_s = capacity_bps, period_s
        self._pairs = [by_marks.started(capacity_bps) for _ in range(senders)]

    def decide(self, seen: Period) -> Floats:
        """Return the rates after a period's reports."""
        packets, marks = seen.kept / PACKET_BITS, seen.marked / PACKET_BITS
        self._pairs = [
            by_marks.followed(pair, packets[at], marks[at], self._capacity_bps)
            for at, pair in enumerate(self._pairs)
        ]
        return np.array([max(pair.rate_bps, LEAST * self._capacity_bps) for pair in self._pairs])
