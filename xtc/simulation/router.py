"""A simulated router behind its shield, in steps shorter than the loop's period."""

import math
from dataclasses import dataclass, field

import msgspec

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
"""The longest simulated step of a varying load."""
SHORTEST_S = 0.005
ROUNDING = 1e-9
"""Tolerance of a step, as a share of its packets."""


def steps_in(period: Seconds, load: Load, *, shield: bool) -> int:
    """Return the number of steps of a period: equally many in each of its slots."""
    if math.isinf(load.finest) and not shield:
        return SLOTS
    longest = min(STEP_S, max(load.finest, SHORTEST_S))
    return SLOTS * math.ceil(period / (SLOTS * longest) - 1e-9)


class Given(msgspec.Struct, frozen=True, gc=False):
    """The CPU that a router may use in a step."""

    cpus: float
    packets: float
    """The packets that it suffices for in the step."""
    forwards: float
    """Maximum throughput with it: the router may lag behind."""
    polls: bool = False
    """Whether all of it is used at any load."""

    def is_short_of(self, packets: float) -> bool:
        """Whether it is too little for this many packets."""
        return self.packets < packets * (1 - ROUNDING)

    def used_for(self, packets: float) -> float:
        """Return the CPUs that this many packets take, limited to those given."""
        if self.polls or self.packets <= packets:
            return self.cpus
        return self.cpus * packets / self.packets


@dataclass(slots=True)
class Totals:
    """The totals of a period, in packets and seconds of CPU."""

    offered: float = 0.0
    reached: float = 0.0
    """Packets that the shield passed."""
    delivered: float = 0.0
    used: float = 0.0
    bound: float = 0.0
    """The time in which the router could not forward all that reached it."""


@dataclass(slots=True)
class Shield:
    """A token bucket like the daemon's: it passes what a router should forward."""

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
        """Learn from a period as the daemon's shield does."""
        if sample.offered is not None:
            seen = Seen(sample.throughput, sample.offered, dropped, bool(sample.binding))
            self.law = learned(self.law, self.setpoint, seen)


@dataclass(slots=True)
class Playing:
    """One router in a run."""

    setpoint: Setpoint
    shield: Shield | None
    """None passes everything."""
    queue: float = 0.0
    """Maximum packets that wait for the router's CPU; further ones are lost."""
    waiting: float = 0.0
    noise: float = 1.0
    """Factor on the router's throughput while it is short of CPU."""
    account: Account = Account()
    """How well it kept its promise, step by step."""
    totals: Totals = field(default_factory=Totals)
    """Totals of the period so far."""
    polling: Polling = field(default_factory=Polling)

    def arrive(self, offered: float, dt: float) -> float:
        """Return how much of a step's offered load reaches the router."""
        reached = offered if self.shield is None else self.shield.let_by(offered, dt)
        self.totals.offered += offered
        self.totals.reached += reached
        return reached

    def forward(self, offered: float, reached: float, given: Given, dt: float) -> None:
        """Simulate a step of dt seconds with this offered load, of which `reached` arrived."""
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
        """Return the sample of the period, judged as by a daemon, and begin the next.

        Args:
            period: its length in seconds.
            cap: the cap that the loop assumes.
            effective: the real one, where caps take effect late.
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
