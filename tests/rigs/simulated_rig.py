"""A simulated host with a manager over it: what the manager's tests stand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from manager_rig import PERIOD, ManagerRig, planned

from common.setpoint import Setpoint, Unit
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import Actuator, CapLimits, CpuUsage
from xtc.config.plan import RouterPlan
from xtc.measure.meter import rates
from xtc.simulation.host import SimulatedRouter
from xtc.spec import ActuatorSpec, Original, SimulatedSpec
from xtc.wire import Activate


def plan(name: str, setpoint: float | None = None) -> RouterPlan:
    """Return the plan of a simulated router with one interface, NAME.0."""
    return planned(name, SimulatedSpec(name), setpoint)


@dataclass
class Faults:
    """Which calls of which router's actuator fail, and with what; and every call made."""

    errors: dict[tuple[str, str], Exception] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def check(self, router: str, call: str) -> None:
        """Note a call; raise what was laid out for it."""
        self.calls.append((router, call))
        if (router, call) in self.errors:
            raise self.errors[router, call].with_traceback(None)  # or it grows with each raise


class FaultyActuator:
    """A simulated actuator that crashes on purpose."""

    slow = False

    def __init__(self, name: str, real: Actuator, faults: Faults) -> None:
        self._name, self._real, self._faults = name, real, faults

    @property
    def limits(self) -> CapLimits:
        """As the plant's."""
        return self._real.limits

    def rebalance(self) -> CapFraction | None:
        """As the plant's, or crash."""
        self._faults.check(self._name, "rebalance")
        return self._real.rebalance()

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


class Rig(ManagerRig):
    """Simulated routers whose actuators may crash."""

    def __init__(self, directory: Path, plans: Mapping[str, RouterPlan]) -> None:
        super().__init__(directory, plans)
        self.faults = Faults()
        self.blind = False
        self.sent: dict[str, PacketsPerSecond] = {}
        """What is sent to the routers whose shields let less by, in packets/s."""
        self.start()

    def start(self) -> None:
        """Start a daemon's manager on the state directory."""
        self.open_manager(self.open)
        self.troubles = self.manager.start()

    def open(self, spec: ActuatorSpec, _original: Original | None) -> Actuator:
        """Open an actuator that may crash."""
        assert isinstance(spec, SimulatedSpec)
        self.faults.check(spec.plant, "open")
        return FaultyActuator(spec.plant, self.plant.actuator(spec.plant), self.faults)

    def tick(self, periods: int = 1, *, lasting: Seconds = PERIOD) -> None:
        """Let periods pass."""
        for _ in range(periods):
            self.clock.sleep(lasting)
            now = self.clock.now()
            self.let_by()
            after = self.plant.read(now)
            before, self.before = self.before, after
            seeing = before is not None and not self.blind
            found = rates(before, after) if seeing and before is not None else None
            readings = {} if found is None else self.collector.aggregate(found)
            self.manager.tick(readings, now)

    def let_by(self) -> None:
        """Have the shields let by what they are set to, and all where there is none any longer."""
        rates = {name: self.in_packets(name, rate) for name, rate in self.shield.set.items()}
        for name in {*rates, *self.sent} & {*self.plant.routers}:
            router = self.plant.routers[name]
            sent = self.sent.setdefault(name, router.plant.offered)
            offered = PacketsPerSecond(min(sent, rates.get(name, sent)))
            router.plant = replace(router.plant, offered=offered)
            if name not in rates:
                del self.sent[name]

    def in_packets(self, name: str, rate: Setpoint) -> float:
        """Return a rate in packets/s of a router's own size."""
        if rate.unit is Unit.PACKETS or name not in self.plant.routers:
            return rate.rate
        return rate.rate / 8 / self.plant.routers[name].frame_bytes

    def hold(self, name: str, setpoint: float, *, periods: int = 8) -> None:
        """Activate a router and let its loop settle."""
        self.ask(Activate(name, setpoint))
        self.tick(periods)

    def cap(self, name: str) -> CapFraction | None:
        """Return the cap that the plant really has."""
        return self.plant.routers[name].cap


def configured_rig(directory: Path, **setpoints: float | None) -> Rig:
    """Return a rig of routers with these setpoints in their configuration."""
    return Rig(directory, {name: plan(name, setpoint) for name, setpoint in setpoints.items()})


def flat(router: SimulatedRouter) -> None:
    """Let a router forward beside its cap, as the host's kernel does."""
    router.plant = replace(router.plant, gain=1e6, offered=PacketsPerSecond(50e3))
