"""A simulated host with routers that share its CPU, and with a CPU cost per carried packet.

A packet costs the host CPU before its router sees it, even if the router drops it: this is how a
flood to one router harms the others (the paper, section 7.3). Packets dropped by a shield or a
limit cost almost nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from common.units import CapFraction, PacketsPerSecond, Seconds
from models import HostModel
from xtc.simulation.filters import SimulatedLimits, SimulatedShields
from xtc.simulation.host import SimulatedHost, SimulatedRouter, interface_of
from xtc.simulation.plant import LAG_S, Plant, advanced
from xtc.simulation.shared_cpu import fair_shares

CARRIED = 0.5
"""CPU cost of carrying a packet to its router, relative to forwarding it."""
DROPPED = 0.02
"""The same for a packet that a filter drops."""
MOST_CARRYING = 0.95
"""Maximum share of its CPU that a host spends on carrying packets."""
Offered = Callable[[], Mapping[str, float]]
"""Returns the current load of each router, in packets/s."""


class SharedHost(SimulatedHost):
    """Routers that share one CPU."""

    def __init__(self, model: HostModel, offered: Offered) -> None:
        """Begin with the routers that have a load.

        Args:
            model: the speed of each router with the CPU to itself.
            offered: returns their load, called in every step.
        """
        super().__init__()
        self._offered = offered
        self.shields, self.limits = SimulatedShields(), SimulatedLimits()
        self._packet_s = model.curve.cap_threshold / model.curve.top
        """CPU time for forwarding a packet, in seconds."""
        for name, pps in offered().items():
            plant = Plant(model.curve, PacketsPerSecond(pps), model.lag_at(LAG_S))
            self.add(name, plant)

    def advance(self, dt: Seconds) -> None:
        """Simulate a time step."""
        reached: dict[str, float] = {}
        carrying = 0.0
        for name, pps in self._offered().items():
            self.routers[name].plant = _sent(self.routers[name].plant, pps)
            reached[name] = self._let_by(name, pps * dt, dt) / dt
            carrying += CARRIED * reached[name] + DROPPED * (pps - reached[name])
        cpus = 1.0 - min(MOST_CARRYING, carrying * self._packet_s)
        needs = {name: _need(self.routers[name], pps) for name, pps in reached.items()}
        for name, given in fair_shares(needs, cpus).items():
            _forward(self.routers[name], reached[name], given, dt)

    def _let_by(self, name: str, arrived: float, dt: float) -> float:
        """Return how many of the packets sent to a router in a step reach it."""
        interface = interface_of(name)
        for bucket in (self.shields.on(interface), self.limits.on(interface)):
            arrived = arrived if bucket is None else bucket.let_by(arrived, dt)
        return arrived


def _sent(plant: Plant, pps: float) -> Plant:
    return replace(plant, offered=PacketsPerSecond(pps))


def _need(router: SimulatedRouter, reached: float) -> float:
    """Return the CPUs that a router could use, within its cap."""
    need = router.plant.curve.cap_for_clamped(reached)
    return need if router.cap is None else min(need, router.cap)


def _forward(router: SimulatedRouter, reached: float, given: float, dt: Seconds) -> None:
    """Let a router forward what it can with its share of the CPUs."""
    plant = _sent(router.plant, reached)
    state = advanced(plant, router.state, [CapFraction(given)], dt)
    throttled = state.binding and router.cap is not None and given >= router.cap
    router.take(state, PacketsPerSecond(reached), dt, throttled=throttled)
