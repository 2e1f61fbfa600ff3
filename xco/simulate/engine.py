"""Runs a scenario slot by slot; each slot is a few operations on arrays of flows."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from xco.arrays import Floats, Indices, sums
from xco.simulate.messages import Messages
from xco.simulate.ports import Ports
from xco.simulate.results import Result
from xco.simulate.routes import Routes, routes
from xco.simulate.scenario import Scenario
from xco.simulate.sources import Sources, backlogged
from xco.simulate.strategies import coordination_of
from xco.simulate.tally import Tally
from xco.simulate.windows import Windows
from xco.topology.graph import Paths, Topology

Progress = Callable[[int], object]
"""Called after each slot with the number of slots done."""


def run(scenario: Scenario, progress: Progress | None = None) -> Result:
    """Simulate a scenario; the result is deterministic except for its `speed`.

    Raises:
        ConfigError: the scenario is invalid.
        CoreError: the compiled scheduler is asked for and not built.
    """
    scenario.check()
    began = perf_counter()
    simulation = Simulation(scenario)
    for slot in range(scenario.slots):
        simulation.step(slot)
        if progress is not None:
            progress(slot + 1)
    return simulation.result(perf_counter() - began)


class Simulation:
    """Hosts, switches and their coordination, between two slots."""

    def __init__(self, scenario: Scenario) -> None:
        """Set up a checked scenario."""
        self._slot_s = scenario.slot_ns / 1e9
        traffic, topology = scenario.traffic, scenario.topology
        ways = _ways(scenario)
        capacity = _capacities(topology)
        self._room = capacity[ways.hops[ways.offsets]] * self._slot_s / 8
        self._source: Indices = traffic.source
        self._ports = Ports(ways, capacity * self._slot_s / 8, _buffers(scenario))
        self._windows = Windows(
            traffic.windowed,
            frame=scenario.frame_bytes,
            timeout_slots=-(-scenario.timeout_ns // scenario.slot_ns),
            most=scenario.window_bytes,
        )
        self._sources = Sources(
            traffic,
            self._windows,
            slot_s=self._slot_s,
            message=scenario.message_bytes,
            limit=2 * self._room,
            seed=scenario.seed,
        )
        self._messages = Messages(
            len(traffic), scenario.message_bytes, scenario.frame_bytes, scenario.burst
        )
        self._coordination = coordination_of(scenario, ways, capacity)
        self._tally = Tally(scenario)

    def step(self, slot: int) -> None:
        """Simulate one slot; slots are numbered from 0."""
        waiting = self._sources.waiting(slot)
        rates = self._coordination.rates(slot, backlogged(waiting))
        wanted = np.minimum(waiting, rates * (self._slot_s / 8))
        sent = emitted(wanted, self._source, self._room)
        passage = self._ports.forward(sent)
        self._sources.sent(sent)
        self._windows.answered(slot, sent, passage.delivered, passage.dropped)
        self._messages.sent(sent, passage.kept)
        self._tally.add(slot, sent, passage)

    def result(self, wall_seconds: float) -> Result:
        """Return the result of the slots so far, taken for the whole run."""
        return self._tally.result(
            sources=self._sources,
            windows=self._windows,
            ports=self._ports,
            messages=self._messages,
            coordination=self._coordination,
            wall_seconds=wall_seconds,
        )


def emitted(wanted: Floats, source: Indices, room: Floats) -> Floats:
    """Return the bytes that leave; a host with more than its link takes scales its flows down.

    All of shape (flows,); `room` is what the flow's host can send in a slot.
    """
    total = sums(source, wanted, 0)[source]
    fits = np.divide(room, total, out=np.ones(len(room)), where=total > room)
    sent: Floats = wanted * fits
    return sent


def _ways(scenario: Scenario) -> Routes:
    paths = Paths(scenario.topology)
    ends = zip(scenario.traffic.source.tolist(), scenario.traffic.destination.tolist(), strict=True)
    return routes(paths.path(source, destination) for source, destination in ends)


def _capacities(topology: Topology) -> Floats:
    """Return bits/s of each directed link, shape (2 * links,)."""
    return np.repeat([float(link.capacity_bps) for link in topology.links], 2)


def _buffers(scenario: Scenario) -> Floats:
    """Return bytes of buffer before each directed link, shape (2 * links,)."""
    sizes = (link.buffer_bytes for link in scenario.topology.links)
    return np.repeat([float(scenario.buffer_bytes if b is None else b) for b in sizes], 2)
