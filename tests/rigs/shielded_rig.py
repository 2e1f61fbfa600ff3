"""Routers behind simulated shields: the real manager, and plants that are as bursty as traffic.

Time goes in slices. In each, what is sent to a router passes a token bucket of the rate and burst
that the manager has set, waits in the router's queue, and is forwarded as far as its CPU goes.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from manager_rig import PAPER, FakeShield
from simulated_rig import FaultyActuator, Rig, plan

from common.setpoint import Setpoint
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import Actuator, CpuUsage
from xtc.control.law import HEADROOM
from xtc.simulation.host import SimulatedRouter
from xtc.simulation.plant import PlantState
from xtc.spec import ActuatorSpec, Original

SLICE = 0.05
SETPOINT = 5e3
WORK = 20e-6
"""CPU seconds for a packet: 10 % of a CPU for the setpoint."""
QUEUE_S = 0.25
"""What a router's queue holds, in seconds of the setpoint."""
Load = Callable[[float], float]
"""Something as a function of time in seconds."""


def always(value: float) -> Load:
    """Return what does not change."""
    return lambda _: value


@dataclass
class ShieldedRouter(SimulatedRouter):
    """A router with a queue, behind a bucket."""

    shield: FakeShield = field(default_factory=FakeShield)
    load: Load = always(8 * SETPOINT)
    """Packets/s that are sent to it."""
    dearness: Load = always(1.0)
    """What a packet costs, in packets of the usual cost."""
    passes: Load = always(1.0)
    """Packets that it sends for each that it has worked off: less behind a firewall."""
    polls: bool = False
    most: float = 1.0
    """CPUs that others leave it."""
    noise: float = 0.0
    """Standard deviation of what a packet costs from slice to slice, as a share."""
    queue: float = 0.0
    level: float = 0.0
    dropped: float = 0.0
    limit: Setpoint | None = None
    """The last that was set."""
    out: list[float] = field(default_factory=list)
    """What was forwarded in each slice."""
    let_by: list[float] = field(default_factory=list)
    """What the bucket has let by in each slice."""
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def advance(self, dt: Seconds) -> None:
        """Let time pass."""
        before, used = self.forwarded, self.used
        for _ in range(round(dt / SLICE)):
            self.age += SLICE
            self._work(self._passed(self.load(self.age) * SLICE))
        self.shield.drops[self.name] = int(self.dropped)
        rate = (self.forwarded - before) / dt
        self.state = PlantState(PacketsPerSecond(rate), used=CapFraction((self.used - used) / dt))

    def forget(self) -> None:
        """Begin to watch anew what is let by and forwarded."""
        self.let_by.clear()
        self.out.clear()

    def _passed(self, sent: float) -> float:
        """Return what the bucket lets by."""
        limit = self.shield.set.get(self.name)
        if limit is None:
            return sent
        if self.limit is not None and limit.rate < self.limit.rate:
            self.level *= limit.rate / self.limit.rate  # the time until it is empty stays
        self.limit = limit
        drained = limit.rate * SLICE
        passed = min(sent, max(0.0, limit.allowance - self.level + drained))
        self.level = max(0.0, self.level + passed - drained)
        self.dropped += sent - passed
        return passed

    def _work(self, arrived: float) -> None:
        """Work off what arrived and what waits, as far as the CPU goes."""
        work = WORK * self.dearness(self.age) * max(0.2, self.chance.gauss(1.0, self.noise))
        cap = min(self.most, 1.0 if self.cap is None else self.cap)
        done = min(self.queue + arrived, cap * SLICE / work)
        self.queue = min(self.queue + arrived - done, QUEUE_S * SETPOINT)
        spent = cap * SLICE if self.polls else done * work
        self.used += spent
        self.throttled += self.cap == cap and spent >= cap * SLICE * 0.999
        self._count(arrived, done * self.passes(self.age))

    def _count(self, arrived: float, forwarded: float) -> None:
        self.let_by.append(arrived)
        self.out.append(forwarded)
        self.received += arrived
        self.forwarded += forwarded
        self.received_bytes += arrived * self.frame_bytes
        self.forwarded_bytes += forwarded * self.frame_bytes

    @property
    def need(self) -> float:
        """CPUs that its setpoint takes now."""
        return SETPOINT * WORK * self.dearness(self.age) / self.passes(self.age)


class BlindActuator(FaultyActuator):
    """One that does not tell how much CPU was used."""

    def usage(self) -> CpuUsage:
        """Tell nothing."""
        return CpuUsage(None, None)


class UncountingActuator(FaultyActuator):
    """One that does not count throttled periods, as Xen's."""

    def usage(self) -> CpuUsage:
        """Tell CPU time alone."""
        return msgspec.structs.replace(super().usage(), throttled=None)


class ShieldedRig(Rig):
    """One such router, held at its setpoint."""

    def __init__(
        self,
        directory: Path,
        actuator: type[FaultyActuator] = FaultyActuator,
        law: str = "default",
        headroom: float = HEADROOM,
        **router: object,
    ) -> None:
        self.actuator = actuator
        ours = replace(plan("a"), shield=True, law=law, headroom=headroom)
        super().__init__(directory, {"a": ours})
        self.router = ShieldedRouter("a", PAPER, shield=self.shield, **router)  # type: ignore[arg-type]
        self.plant.routers["a"] = self.router
        self.caps: list[float] = []
        self.needs: list[float] = []

    def open(self, _spec: ActuatorSpec, _original: Original | None) -> Actuator:
        """Open the actuator."""
        return self.actuator("a", self.plant.actuator("a"), self.faults)

    def let_by(self) -> None:
        """Leave that to the bucket."""

    def run(self, periods: int) -> None:
        """Let periods pass, and remember caps and needs."""
        for _ in range(periods):
            self.tick()
            self.caps.append(self.cap("a") or 1.0)
            self.needs.append(self.router.need)


def most_in_any_window(slices: list[float], rate: float) -> float:
    """Return by how much slices exceed a rate in the window in which they do so most."""
    level = most = 0.0
    for amount in slices:
        level = max(0.0, level + amount - rate * SLICE)
        most = max(most, level)
    return most
