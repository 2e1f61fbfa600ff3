"""A simulated host with a manager over it, moved on by hand: what the manager's tests stand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from models import paper_host
from xtc.actuator.base import Actuator, CapLimits, CpuUsage
from xtc.actuator.simulated import SimulatedHost, SimulatedRouter
from xtc.actuator.spec import ActuatorSpec, Original, SimulatedSpec
from xtc.clock import FakeClock
from xtc.collector import Binding, Collector
from xtc.errors import ActuatorError
from xtc.journal import Journal
from xtc.manager import Manager
from xtc.meter import Snapshot, rates
from xtc.plant import Plant
from xtc.routers import RouterPlan
from xtc.units import CapFraction, PacketsPerSecond, Seconds
from xtc.wire import Activate, Answer, Envelope, Refusal, Report, Request, encode

PERIOD = Seconds(1.0)
PAPER = Plant(paper_host().curve, PacketsPerSecond(100e3))


def plan(name: str, setpoint: float | None = None) -> RouterPlan:
    """Return the plan of a simulated router with one interface, NAME.0."""
    return RouterPlan(
        name=name,
        spec=SimulatedSpec(name),
        binding=Binding((f"{name}.0",)),
        law="default",
        model=None,
        setpoint=None if setpoint is None else PacketsPerSecond(setpoint),
        floor=None,
        ceiling=None,
        safe_cap=None,
    )


@dataclass
class Faults:
    """Which calls of which router's actuator fail, and with what; and every call made."""

    errors: dict[tuple[str, str], ActuatorError] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def check(self, router: str, call: str) -> None:
        """Note a call; raise what was laid out for it."""
        self.calls.append((router, call))
        if (router, call) in self.errors:
            raise self.errors[router, call]


class FaultyActuator:
    """A simulated actuator that crashes on purpose."""

    slow = False

    def __init__(self, name: str, real: Actuator, faults: Faults) -> None:
        self._name, self._real, self._faults = name, real, faults

    @property
    def limits(self) -> CapLimits:
        """As the plant's."""
        return self._real.limits

    def settle(self) -> bool:
        """As the plant's, or crash."""
        self._faults.check(self._name, "settle")
        return self._real.settle()

    def capture(self) -> Original:
        """As the plant's, or crash."""
        self._faults.check(self._name, "capture")
        return self._real.capture()

    def applied(self) -> CapFraction | None:
        """As the plant's, or crash."""
        self._faults.check(self._name, "applied")
        return self._real.applied()

    def apply(self, cap: CapFraction) -> CapFraction:
        """As the plant's, or crash."""
        self._faults.check(self._name, "apply")
        return self._real.apply(cap)

    def usage(self) -> CpuUsage:
        """As the plant's, or crash."""
        self._faults.check(self._name, "usage")
        return self._real.usage()

    def restore(self, original: Original) -> None:
        """As the plant's, or crash."""
        self._faults.check(self._name, "restore")
        self._real.restore(original)


@dataclass
class FakeLimiter:
    """Interfaces with their limits; lifting fails while `error` is set."""

    limits: dict[str, float] = field(default_factory=dict)
    error: ActuatorError | None = None

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit an interface, or crash."""
        if self.error is not None:
            raise self.error
        self.limits[interface] = rate

    def lift(self, interface: str) -> None:
        """Lift a limit, or crash."""
        if self.error is not None:
            raise self.error
        self.limits.pop(interface, None)


class Rig:
    """One host, one clock, one state directory, and one manager after the other."""

    def __init__(self, directory: Path, plans: Mapping[str, RouterPlan]) -> None:
        self.directory, self.plans = directory, dict(plans)
        self.clock, self.host = FakeClock(1000.0), SimulatedHost()
        self.faults, self.limiter = Faults(), FakeLimiter()
        for name in self.plans:
            self.host.add(name, PAPER)
        self.before: Snapshot | None = None
        self.blind = False
        self.start()

    def start(self) -> None:
        """Start a daemon's manager on the state directory."""
        self.journal = Journal(self.directory)
        self.journal.open()
        self.collector = Collector({name: plan.binding for name, plan in self.plans.items()})
        self.manager = Manager(
            self.plans,
            journal=self.journal,
            clock=self.clock,
            open_actuator=self.open,
            limiter=self.limiter,
            period=PERIOD,
        )
        self.troubles = self.manager.start()

    def crash(self) -> None:
        """Drop the manager as kill -9 would: nothing is said, nothing put back."""
        self.journal.close()

    def restart(self) -> None:
        """Crash, and start anew."""
        self.crash()
        self.start()

    def open(self, spec: ActuatorSpec, _original: Original | None) -> Actuator:
        """Open an actuator that may crash."""
        assert isinstance(spec, SimulatedSpec)
        self.faults.check(spec.plant, "open")
        return FaultyActuator(spec.plant, self.host.actuator(spec.plant), self.faults)

    def tick(self, periods: int = 1) -> None:
        """Let periods pass."""
        for _ in range(periods):
            self.clock.sleep(PERIOD)
            now = self.clock.now()
            after = self.host.read(now)
            before, self.before = self.before, after
            seeing = before is not None and not self.blind
            found = rates(before, after) if seeing and before is not None else None
            readings = {} if found is None else self.collector.aggregate(found)
            self.manager.tick(readings, now)

    def ask(self, request: Request) -> tuple[Report, ...]:
        """Send a request as its bytes; it must be carried out."""
        result = self.manager.handle(encode(Envelope(request))).result
        assert isinstance(result, Answer), result
        return result.routers

    def refused(self, request: Request) -> Refusal:
        """Send a request as its bytes; it must be refused."""
        result = self.manager.handle(encode(Envelope(request))).result
        assert isinstance(result, Refusal), result
        return result

    def hold(self, name: str, setpoint: float, *, periods: int = 8) -> None:
        """Activate a router and let its loop settle."""
        self.ask(Activate(name, setpoint))
        self.tick(periods)

    def report(self, name: str) -> Report:
        """Return how a router stands."""
        return self.manager.routers[name].report(self.clock.now())

    def cap(self, name: str) -> CapFraction | None:
        """Return the cap that the plant really has."""
        return self.host.routers[name].cap

    def throughput(self, name: str) -> float:
        """Return what the plant really forwards."""
        return self.host.routers[name].state.throughput

    def holds(self, name: str, setpoint: float) -> bool:
        """Whether the plant really forwards what it is to be held at."""
        return abs(self.throughput(name) - setpoint) <= 0.02 * setpoint


def configured_rig(directory: Path, **setpoints: float | None) -> Rig:
    """Return a rig of routers with these setpoints in their configuration."""
    return Rig(directory, {name: plan(name, setpoint) for name, setpoint in setpoints.items()})


def flat(router: SimulatedRouter) -> None:
    """Let a router forward beside its cap, as the host's kernel does."""
    router.plant = replace(router.plant, gain=1e6, offered=PacketsPerSecond(50e3))
