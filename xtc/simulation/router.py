"""A simulated router behind its shield, moved on in steps shorter than the loop's period."""

import math
from dataclasses import dataclass, field

from common.setpoint import Setpoint
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.control.binding import Evidence, Polling, binds, observed
from xtc.control.dither import SLOTS
from xtc.control.law import Sample
from xtc.control.promise import Account, judged
from xtc.control.shielding import Seen, Shielding, learned
from xtc.simulation.loads import Load
from xtc.simulation.token_bucket import passed

STEP_S = 0.05
"""The longest step in which a load that changes is played."""
SHORTEST_S = 0.005
ROUNDING = 1e-9
"""The share of its packets by which a step may be off."""


def steps_in(period: Seconds, load: Load, *, shield: bool) -> int:
    """Return how many steps a period is played in: as many in each of its slots."""
    if math.isinf(load.finest) and not shield:
        return SLOTS
    longest = min(STEP_S, max(load.finest, SHORTEST_S))
    return SLOTS * math.ceil(period / (SLOTS * longest) - 1e-9)


@dataclass(frozen=True, slots=True)
class Given:
    """The CPU that a router may use in a step."""

    cpus: float
    packets: float
    """What it is enough for in the step."""
    forwards: float
    """What the router forwards with it at most: it may lag behind."""
    polls: bool = False
    """Whether all of it is used whatever arrives."""

    def is_short_of(self, packets: float) -> bool:
        """Whether it is not enough for so many packets."""
        return self.packets < packets * (1 - ROUNDING)

    def used_for(self, packets: float) -> float:
        """Return the CPUs that so many packets take, as far as they are given."""
        if self.polls or self.packets <= packets:
            return self.cpus
        return self.cpus * packets / self.packets


@dataclass(slots=True)
class Totals:
    """What a period came to, in packets and in seconds of CPU."""

    offered: float = 0.0
    reached: float = 0.0
    """What the shield let by."""
    delivered: float = 0.0
    used: float = 0.0
    bound: float = 0.0
    """The time in which the router could not forward all that reached it."""


@dataclass(slots=True)
class Shield:
    """A token bucket with the terms of the daemon's: it lets by what a router is to forward."""

    setpoint: Setpoint
    law: Shielding = Shielding()
    level: float = math.inf
    """Full at first."""

    def let_by(self, arrived: float, dt: float) -> float:
        """Return how much of what arrives in a step reaches the router."""
        rate, depth = self.law.rate(self.setpoint).rate, self.setpoint.allowance
        self.level, let_by = passed(self.level, rate, depth, arrived, dt)
        return let_by

    def learn(self, sample: Sample, dropped: float) -> None:
        """Learn from a period as the daemon's does."""
        if sample.offered is not None:
            seen = Seen(sample.throughput, sample.offered, dropped, bool(sample.binding))
            self.law = learned(self.law, self.setpoint, seen)


@dataclass(slots=True)
class Playing:
    """One router in a run."""

    setpoint: Setpoint
    shield: Shield | None
    """None lets all by."""
    queue: float = 0.0
    """Packets that wait at most for the router's CPU; what exceeds it is lost."""
    waiting: float = 0.0
    noise: float = 1.0
    """How many times what it says the router forwards while it is short of CPU."""
    account: Account = Account()
    """What it kept of its promise, step by step."""
    totals: Totals = field(default_factory=Totals)
    """Of the period so far."""
    polling: Polling = field(default_factory=Polling)

    def arrive(self, offered: float, dt: float) -> float:
        """Return how much of what is offered in a step reaches the router."""
        reached = offered if self.shield is None else self.shield.let_by(offered, dt)
        self.totals.offered += offered
        self.totals.reached += reached
        return reached

    def forward(self, offered: float, reached: float, given: Given, dt: float) -> None:
        """Let a step of so many seconds pass, with what was offered in it and what reached it."""
        there = self.waiting + reached
        short = given.is_short_of(there)
        delivered = min(there, given.forwards * (self.noise if short else 1.0))
        self.waiting = min(there - delivered, self.queue)
        self.totals.delivered += delivered
        self.totals.used += given.used_for(there) * dt
        self.totals.bound += dt if short else 0.0
        self.account = judged(
            self.account, self.setpoint, Seconds(dt), delivered=delivered, offered=offered
        )

    def end_period(
        self, period: float, cap: CapFraction | None, *, effective: CapFraction | None
    ) -> Sample:
        """Return what the period showed, judged as a daemon judges it, and begin the next.

        Args:
            period: its length in seconds.
            cap: what the loop takes to be in force.
            effective: what was, where caps show late.
        """
        totals, self.totals = self.totals, Totals()
        throughput = PacketsPerSecond(totals.delivered / period)
        reached = PacketsPerSecond(totals.reached / period)
        used = CapFraction(totals.used / period)
        evidence = Evidence(effective, throughput, reached, used, totals.bound / period)
        binding = binds(evidence, self.polling)
        self.polling = observed(self.polling, evidence)
        dropped = (totals.offered - totals.reached) / period
        shielded = dropped > ROUNDING * totals.offered / period
        sample = Sample(
            throughput,
            cap,
            reached,
            used,
            binding=binding,
            shielded=shielded,
            guarded=self.shield is not None,
        )
        if self.shield is not None:
            self.shield.learn(sample, dropped if shielded else 0.0)
        return sample
