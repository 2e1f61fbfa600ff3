"""Simulated routers under the daemon's own loop, for `benchmarks.xtc.promise`.

Each period is played in steps of 50 ms: load, shield (a token bucket), queue, CPU. At its end the
real `xtc.control.instance.step` decides on a sample that the real `xtc.control.binding` has
evaluated. A router begins uncapped, as under a daemon, and its CPU is worth 3 % more or less
(standard deviation) from one period to the next.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.setpoint import Setpoint
from common.units import CapFraction, PacketsPerSecond, Seconds
from models import ThroughputCurve
from xtc.control.dither import SLOTS, Dithered
from xtc.control.instance import Act, Instance, Profile, step
from xtc.control.law import Bounds, Decision, Law, Reason, Sample
from xtc.lease import Lease
from xtc.simulation.loads import Load
from xtc.simulation.router import Given, Playing, Shield

STEPS = 20
DT = 1 / STEPS
NOISE = 0.03
QUEUE = 1000.0
BOUNDS = Bounds(CapFraction(0.001), CapFraction(1.0))


class Source(Protocol):
    """A sender to a router."""

    def offered(self, at: float, *, lost: bool) -> float:
        """Return the packets of the step that begins now.

        Args:
            at: seconds since the start.
            lost: whether packets were lost in the step before.
        """
        ...


@dataclass
class Blind:
    """A load that does not react to loss."""

    load: Load

    def offered(self, at: float, *, lost: bool) -> float:
        """Return the packets of the step that begins now."""
        del lost
        return max(0.0, self.load.sent(at + DT) - self.load.sent(at))


class Tcp:
    """Flows over a round trip of 100 ms: they rise together, and a third halve on a loss."""

    ROUND_TRIP = 2
    """Steps."""
    RISE = 3e3
    """Packets/s that all flows gain together in a round trip."""

    def __init__(self, flows: int, seed: int = 3) -> None:
        """Begin at 3,000 packets/s each."""
        self._rates = [3e3] * flows
        self._chance = random.Random(seed)  # noqa: S311  a load, not a secret
        self._steps = 0

    def offered(self, at: float, *, lost: bool) -> float:
        """Return the packets of the step that begins now."""
        del at
        if self._steps % self.ROUND_TRIP == 0:
            flows = len(self._rates)
            for flow in self._chance.sample(range(flows), max(1, flows // 3)) if lost else ():
                self._rates[flow] /= 2
            self._rates = [rate + self.RISE / flows for rate in self._rates]
        self._steps += 1
        return sum(self._rates) * DT


@dataclass(frozen=True)
class FixedCap:
    """No law: one cap, whatever happens."""

    cap: CapFraction

    def start(self, cap: CapFraction | None) -> None:
        """Return an empty state."""

    def step(
        self, state: None, setpoint: float, sample: Sample, bounds: Bounds
    ) -> tuple[None, Decision]:
        """Return the cap."""
        del state, setpoint, sample
        return None, Decision(bounds.clamp(self.cap), Reason.ACT)


@dataclass(frozen=True)
class Second:
    """Totals of a second, in packets."""

    offered: float
    delivered: float
    always_wanted: bool
    """Whether the setpoint was offered in each of its steps."""


def always(_: float) -> float:
    """Return a router's speed as a multiple of its curve's."""
    return 1.0


@dataclass
class Router:
    """One router, its sender and its loop."""

    setpoint: Setpoint
    curve: ThroughputCurve
    source: Source
    law: Law[Any]
    shield: bool
    efficiency: Callable[[float], float] = always
    polls: bool = False
    """Whether it uses all the CPU that it gets."""
    seed: int = 1
    seconds: list[Second] = field(default_factory=list)
    wanted: float = 0.0
    """Packets."""

    def __post_init__(self) -> None:
        self.playing = Playing(self.setpoint, Shield(self.setpoint) if self.shield else None, QUEUE)
        self._profile = Profile(law=self.law, bounds=BOUNDS)
        self._instance = Instance(Lease.of(self.setpoint), Seconds(0.0))
        self._caps: Dithered | None = None
        self._chance = random.Random(self.seed)  # noqa: S311  noise, not secrets
        self._noise, self._lost, self._always = 1.0, False, True
        self._arrived = (0.0, 0.0)

    def _cap(self, number: int) -> float:
        return 1.0 if self._caps is None else self._caps.caps[number * SLOTS // STEPS]

    def arrive(self, second: int, number: int) -> float:
        """Deliver a step's packets; return the CPUs that the router would use."""
        at = second + number * DT
        offered = self.source.offered(at, lost=self._lost)
        reached = self.playing.arrive(offered, DT)
        self._lost = reached < offered * (1 - 1e-9)
        self._always = self._always and offered >= self.setpoint.rate * DT * (1 - 1e-9)
        self._arrived = offered, reached
        self.wanted += min(offered, self.setpoint.rate * DT)
        given = self._given(at, number, 1.0)
        return min(self._cap(number), given.used_for(self.playing.waiting + reached))

    def forward(self, second: int, number: int, cpus: float) -> None:
        """Run a step with at most this many CPUs."""
        offered, reached = self._arrived
        given = self._given(second + number * DT, number, cpus)
        lost = self.playing.waiting + reached - given.forwards > QUEUE
        self.playing.forward(offered, reached, given, DT)
        self._lost = self._lost or lost

    def _given(self, at: float, number: int, cpus: float) -> Given:
        cpus = min(cpus, self._cap(number))
        enough = self._noise * self.efficiency(at) * self.curve.throughput(CapFraction(cpus)) * DT
        return Given(cpus, enough, enough, self.polls)

    def end_second(self, second: int) -> None:
        """Let the loop decide on the second's sample."""
        totals = self.playing.totals
        self.seconds.append(Second(totals.offered, totals.delivered, self._always))
        cap = None if self._caps is None else self._caps.mean
        sample = self.playing.end_period(1.0, cap, effective=cap)
        now = Seconds(second + 1.0)
        self._instance, command = step(self._instance, self._profile, now, sample)
        if command.act is Act.SET:
            self._caps = command.period
        elif command.act is Act.RELEASE:
            self._caps = None
        self._noise = max(0.0, 1 + NOISE * self._chance.gauss(0, 1))
        self._always = True


def play(routers: Sequence[Router], seconds: int, cpus: float | None = None) -> None:
    """Run routers; those that share CPUs get equal parts of what others leave."""
    for second in range(seconds):
        for number in range(STEPS):
            wanted = [router.arrive(second, number) for router in routers]
            given = [1.0] * len(routers) if cpus is None else shares(wanted, cpus)
            for router, share in zip(routers, given, strict=True):
                router.forward(second, number, share)
        for router in routers:
            router.end_second(second)


def shares(wanted: Sequence[float], cpus: float) -> list[float]:
    """Return each one's part of some CPUs; if the sum of demands fits, all are met."""
    if sum(wanted) <= cpus:
        return [max(each, cpus - sum(wanted) + each) for each in wanted]
    given, left = [0.0] * len(wanted), cpus
    for done, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        given[index] = min(wanted[index], left / (len(wanted) - done))
        left -= given[index]
    return given


def pps(rate: float) -> PacketsPerSecond:
    """Return a number as a packet rate."""
    return PacketsPerSecond(rate)
