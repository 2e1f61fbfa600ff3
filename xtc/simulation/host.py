"""A simulated host: routers that respond to their caps, and their /proc/net/dev."""

from dataclasses import dataclass

from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import CapLimits, CpuUsage
from xtc.errors import Gone
from xtc.measure.meter import Snapshot
from xtc.simulation.plant import Plant, PlantState, advanced, settled
from xtc.spec import Original, SimulatedOriginal

_HEADER = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)
FRAME_BYTES = 64


def interface_of(router: str) -> str:
    """Return the name of a simulated router's interface."""
    return f"{router}.0"


@dataclass
class SimulatedRouter:
    """One router of the host: its plant, its cap, and the counters of its host-side interface."""

    name: str
    plant: Plant
    limits: CapLimits = CapLimits(CapFraction(0.001), CapFraction(1.0))
    cap: CapFraction | None = None
    stolen: float = 0.0
    """Share of its CPU that another process in it takes ..."""
    stolen_after: Seconds = Seconds(0.0)
    """... after it has run for this long."""
    frame_bytes: float = FRAME_BYTES
    """The mean size of frames sent to it, which it forwards unchanged."""
    age: float = 0.0
    state: PlantState = PlantState(PacketsPerSecond(0.0))
    forwarded: float = 0.0
    received: float = 0.0
    forwarded_bytes: float = 0.0
    received_bytes: float = 0.0
    used: float = 0.0
    throttled: int = 0

    def advance(self, dt: Seconds) -> None:
        """Simulate a time step."""
        self.age += dt
        stolen = self.stolen if self.age >= self.stolen_after else 0.0
        state = advanced(self.plant, self.state, [self.cap], dt, stolen=stolen)
        throttled = state.binding and self.cap is not None
        self.take(state, self.plant.offered, dt, throttled=throttled)

    def take(
        self, state: PlantState, reached: PacketsPerSecond, dt: Seconds, *, throttled: bool
    ) -> None:
        """Count a step: the router's state after it, what reached it, and the effect of its cap."""
        self.state = state
        forwarded, received = state.throughput * dt, reached * dt
        self.forwarded += forwarded
        self.received += received
        self.forwarded_bytes += forwarded * self.frame_bytes
        self.received_bytes += received * self.frame_bytes
        self.used += state.used * dt
        self.throttled += throttled


class SimulatedHost:
    """Routers by name. The reader supplies the time."""

    def __init__(self) -> None:
        self.routers: dict[str, SimulatedRouter] = {}
        self._at: Seconds | None = None

    def add(self, name: str, plant: Plant) -> SimulatedRouter:
        """Add a router, uncapped and settled."""
        router = SimulatedRouter(name, plant, state=settled(plant, None))
        self.routers[name] = router
        return router

    def read(self, now: Seconds) -> Snapshot:
        """Simulate until now, and show the interfaces as the kernel would."""
        dt = Seconds(0.0 if self._at is None else now - self._at)
        self._at = now
        if dt > 0:
            self.advance(dt)
        lines = "".join(_line(router) for router in self.routers.values())
        return Snapshot(now, (_HEADER + lines).encode())

    def advance(self, dt: Seconds) -> None:
        """Simulate a time step for every router."""
        for router in self.routers.values():
            router.advance(dt)

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def actuator(self, name: str) -> "SimulatedActuator":
        """Return the actuator of a router.

        Raises:
            Gone: there is no such router.
        """
        if name not in self.routers:
            raise Gone(name, "no such router in the simulated plant")
        return SimulatedActuator(self, name)


class SimulatedActuator:
    """Caps a simulated router (`xtc.actuator.base.Actuator`)."""

    slow = False

    def __init__(self, host: SimulatedHost, name: str) -> None:
        self._host, self._name = host, name

    @property
    def limits(self) -> CapLimits:
        """What this actuator can express."""
        return self._router().limits

    def settle(self) -> bool:
        """Return True: caps take effect immediately."""
        return True

    def rebalance(self) -> CapFraction | None:
        """Return None: all threads share the cap."""
        return None

    def capture(self) -> Original:
        """Return the cap in force."""
        return SimulatedOriginal(self._router().cap)

    def applied(self) -> CapFraction | None:
        """Return the cap in force."""
        return self._router().cap

    def apply(self, cap: CapFraction) -> CapFraction:
        """Write a cap, rounded to the quantum."""
        router = self._router()
        bounded = router.limits.bound(cap, target=self._name)
        step = router.limits.quantum
        router.cap = CapFraction(round(bounded / step) * step) if step else bounded
        return router.cap

    def usage(self) -> CpuUsage:
        """Return the router's CPU counters."""
        router = self._router()
        return CpuUsage(Seconds(router.used), router.throttled)

    def restore(self, original: Original) -> None:
        """Restore the original cap; a router that is gone counts as restored."""
        if self._name in self._host.routers and isinstance(original, SimulatedOriginal):
            cap = None if original.cap is None else CapFraction(original.cap)
            self._router().cap = cap

    def _router(self) -> SimulatedRouter:
        router = self._host.routers.get(self._name)
        if router is None:
            raise Gone(self._name, "no such router in the simulated plant")
        return router


def _line(router: SimulatedRouter) -> str:
    forwarded, received = int(router.forwarded), int(router.received)
    forwarded_bytes, received_bytes = int(router.forwarded_bytes), int(router.received_bytes)
    return (
        f"{interface_of(router.name)}: {forwarded_bytes} {forwarded} 0 0 0 0 0 0"
        f" {received_bytes} {received} 0 0 0 0 0 0\n"
    )
