"""What every rig is: a manager on a state directory, with a clock and a plant, moved on by hand."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.clock import FakeClock
from common.setpoint import Setpoint
from common.units import PacketsPerSecond, Seconds
from models import paper_host
from xtc.config.plan import RouterPlan
from xtc.errors import ActuatorError
from xtc.manager.manager import Manager
from xtc.manager.reports import report
from xtc.manager.router import OpenActuator
from xtc.measure.collector import Binding, Collector, Side
from xtc.measure.meter import Snapshot
from xtc.simulation.host import SimulatedHost
from xtc.simulation.plant import Plant
from xtc.spec import ActuatorSpec
from xtc.state.journal import Journal
from xtc.wire import Answer, Batch, Envelope, Refusal, Reply, Report, Request, encode

PERIOD = Seconds(1.0)
PAPER = Plant(paper_host().curve, PacketsPerSecond(100e3))


def planned(name: str, spec: ActuatorSpec, setpoint: float | None = None) -> RouterPlan:
    """Return the plan of a router with one interface, NAME.0, which the plant counts."""
    return RouterPlan(
        name=name,
        spec=spec,
        binding=Binding((f"{name}.0",)),
        law="default",
        model=None,
        setpoint=None if setpoint is None else Setpoint(setpoint),
        floor=None,
        ceiling=None,
        safe_cap=None,
    )


@dataclass
class FakeLimiter:
    """Interfaces with their limits; all fails while `error` is set, `refusal` is of new ones."""

    limits: dict[str, float] = field(default_factory=dict)
    error: Exception | None = None
    refusal: ActuatorError | None = None
    drops: dict[str, int] = field(default_factory=dict)
    """What the limits of these interfaces have dropped."""

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit an interface, or crash."""
        for error in (self.error, self.refusal):
            if error is not None:
                raise error.with_traceback(None)  # or it grows with each raise
        self.limits[interface] = rate

    def lift(self, interface: str) -> None:
        """Lift a limit, or crash."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        self.limits.pop(interface, None)

    def dropped(self, interfaces: Iterable[str]) -> dict[str, int]:
        """Return what the limits in force have dropped, or crash."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        return {name: self.drops.get(name, 0) for name in interfaces if name in self.limits}


@dataclass
class FakeShield:
    """Shields by router, and the interfaces that bear them; all fails while `error` is set."""

    rates: dict[str, float] = field(default_factory=dict)
    """In packets/s, or bits/s."""
    set: dict[str, Setpoint] = field(default_factory=dict)
    """The same with unit and burst."""
    bearing: dict[str, str] = field(default_factory=dict)
    """The router by interface."""
    refusals: dict[str, ActuatorError] = field(default_factory=dict)
    """Of interfaces that bear none."""
    error: ActuatorError | None = None
    drops: dict[str, int] = field(default_factory=dict)
    sides: dict[str, Side] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    """What decides before the shield on an interface."""

    def limit(
        self, owner: str, interfaces: Sequence[str], rate: Setpoint, side: Side
    ) -> dict[str, ActuatorError]:
        """Let the rate by on those that bear it."""
        self._check()
        bearing = [name for name in interfaces if name not in self.refusals]
        self.bearing |= dict.fromkeys(bearing, owner)
        if bearing:
            self.rates[owner], self.set[owner] = rate.rate, rate
            self.sides[owner] = side
        return {name: self.refusals[name] for name in interfaces if name in self.refusals}

    def change(self, owner: str, rate: Setpoint) -> None:
        """Change a rate."""
        self._check()
        self.rates[owner], self.set[owner] = rate.rate, rate

    def dropped(self, owner: str) -> int | None:
        """Return what the test has laid out."""
        self._check()
        return self.drops.get(owner, 0) if owner in self.rates else None

    def lift(self, interface: str) -> None:
        """Lift a shield, or crash."""
        self._check()
        self.bearing.pop(interface, None)

    def overruled(self, interfaces: Iterable[str], _side: Side) -> str:
        """Return what the test has laid out."""
        return "; ".join(self.others[name] for name in interfaces if name in self.others)

    def forget(self, owner: str) -> None:
        """Forget a rate."""
        self.rates.pop(owner, None)
        self.set.pop(owner, None)

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


class ManagerRig(ABC):
    """A manager on a state directory, and simulated plants that answer to its caps."""

    period = PERIOD

    def __init__(self, directory: Path, plans: Mapping[str, RouterPlan]) -> None:
        self.directory, self.plans = directory, dict(plans)
        self.clock, self.plant = FakeClock(1000.0), SimulatedHost()
        self.limiter, self.shield = FakeLimiter(), FakeShield()
        self.before: Snapshot | None = None
        for name in self.plans:
            self.plant.add(name, PAPER)

    @abstractmethod
    def start(self) -> None:
        """Start a daemon's manager on the state directory."""

    def open_manager(self, open_actuator: OpenActuator) -> None:
        """Open the state directory, and make the manager that a daemon would start."""
        self.journal = self.make_journal()
        self.journal.open()
        self.collector = Collector({name: plan.binding for name, plan in self.plans.items()})
        self.manager = Manager(
            self.plans,
            journal=self.journal,
            clock=self.clock,
            open_actuator=open_actuator,
            limiter=self.limiter,
            shield=self.shield,
            period=self.period,
        )

    def make_journal(self) -> Journal:
        """Return the journal of a daemon; this one writes before it goes on."""
        return Journal(self.directory)

    def crash(self) -> None:
        """Drop the manager as kill -9 would: nothing is said, nothing put back."""
        self.journal.close()

    def restart(self) -> None:
        """Crash, and start anew."""
        self.crash()
        self.start()

    def reply(self, request: Request | Batch) -> Reply:
        """Send a request as its bytes."""
        return self.manager.handle(encode(Envelope(request)))

    def ask(self, request: Request) -> tuple[Report, ...]:
        """Send a request as its bytes; it must be carried out."""
        result = self.reply(request).result
        assert isinstance(result, Answer), result
        return result.routers

    def refused(self, request: Request) -> Refusal:
        """Send a request as its bytes; it must be refused."""
        result = self.reply(request).result
        assert isinstance(result, Refusal), result
        return result

    def report(self, name: str) -> Report:
        """Return how a router stands."""
        return report(self.manager.routers[name], self.clock.now())

    def throughput(self, name: str) -> float:
        """Return what the plant really forwards."""
        return self.plant.routers[name].state.throughput

    def holds(self, name: str, setpoint: float) -> bool:
        """Whether the plant really forwards what it is to be held at."""
        return abs(self.throughput(name) - setpoint) <= 0.02 * setpoint
