"""A simulated host that counts its policer's failures: lapsed leases, late orders."""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from benchmarks.policer.hosts import CAPACITY, PERIOD_S, PROMISED, SimulatedHost

SHORT: Final = 0.95
"""A router falls short if it forwards less than this share of the smaller of contract and load."""


class Seen(msgspec.Struct):
    """One host's record of its policer during the count."""

    name: str
    fault: str
    ticks: int = 0
    router_seconds: int = 0
    short: int = 0
    """Router-seconds in which a router forwarded less than contract and load allow."""
    lapsed: int = 0
    """Leases that ended without another in their place."""
    orders: int = 0
    messages: int = 0
    """With orders."""
    prompt: int = 0
    """Of them, those that came before the host's next tick."""
    late_s: float = 0.0
    """Largest delay of a tick: caused by this machine, not by the policer."""


@dataclass
class CountedHost(SimulatedHost):
    """A compliant host."""

    FAULT = ""
    ticked_at: float = 0.0
    seen: Seen = field(init=False)

    def __post_init__(self) -> None:
        self.count_anew()

    def count_anew(self) -> None:
        """Begin to count."""
        self.seen = Seen(self.entry.name, self.FAULT)

    def publish(self, now: float) -> None:
        """Simulate a second and stream it; ticks that a stalled machine missed are left out."""
        self.seen.late_s = max(self.seen.late_s, now - self.due_at)
        self.due_at = max(self.due_at, now - PERIOD_S)
        for router in self.routers.values():
            self.seen.lapsed += router.setpoint is not None and now >= router.ends_at
        super().publish(now)
        self.seen.ticks += 1
        self.ticked_at = now
        self._count_short()

    def _count_short(self) -> None:
        promised = PROMISED * CAPACITY / len(self.routers)
        for report in self.reports:
            due = min(promised, report.offered_pps or 0.0)
            self.seen.short += (report.throughput_pps or 0.0) < SHORT * due
        self.seen.router_seconds += len(self.reports)

    def answer_to(self, message: list[bytes], now: float) -> None:
        """Carry out one message."""
        before = self.told
        super().answer_to(message, now)
        self.seen.orders += self.told - before
        self.seen.messages += 1
        self.seen.prompt += now < self.ticked_at + PERIOD_S
