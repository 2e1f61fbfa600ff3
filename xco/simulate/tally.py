"""Sums up the slots of a run, and makes its result."""

from collections.abc import Iterator

import numpy as np

from xco.arrays import Floats, Indices, jain
from xco.simulate.coordination import Coordination
from xco.simulate.messages import Messages
from xco.simulate.ports import Passage, Ports
from xco.simulate.results import FlowResult, Layer, Result, Series, Speed
from xco.simulate.scenario import Scenario
from xco.simulate.sources import Sources
from xco.simulate.windows import Windows

PARTS = 200
FEW = 64
"""Results list at most this many flows one by one."""


class Tally:
    """Sums over the slots of one run."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        flows = len(scenario.traffic)
        self.sent, self.delivered, self.dropped = (np.zeros(flows) for _ in range(3))
        parts = min(PARTS, scenario.slots)
        self._part: Indices = np.arange(scenario.slots) * parts // scenario.slots
        self._delivered, self._dropped = np.zeros(parts), np.zeros(parts)

    def add(self, slot: int, sent: Floats, passage: Passage) -> None:
        """Count one slot; arrays of shape (flows,)."""
        self.sent += sent
        self.delivered += passage.delivered
        self.dropped += passage.dropped
        self._delivered[self._part[slot]] += passage.delivered.sum()
        self._dropped[self._part[slot]] += passage.dropped.sum()

    def result(
        self,
        *,
        sources: Sources,
        windows: Windows,
        ports: Ports,
        messages: Messages,
        coordination: Coordination,
        wall_seconds: float,
    ) -> Result:
        """Return the result of the run."""
        scenario, seconds = self._scenario, self._seconds
        goodput = self.delivered * 8 / seconds
        udp = messages.whole_bytes * 8 / seconds
        application = np.where(scenario.traffic.windowed, goodput, udp)
        scheduled = scenario.strategy in {"timeslice", "hybrid"}
        return Result(
            strategy=scenario.strategy,
            policy=scenario.policy if scheduled else None,
            hosts=len(scenario.topology.hosts),
            flows=len(scenario.traffic),
            seconds=seconds,
            slots=scenario.slots,
            offered_bytes=float(sources.offered.sum()),
            waiting_bytes=float(sources.queued.sum()),
            sent_bytes=float(self.sent.sum()),
            delivered_bytes=float(self.delivered.sum()),
            dropped_bytes=float(self.dropped.sum()),
            queued_bytes=ports.held,
            loss=_ratio(self.dropped.sum(), self.sent.sum()),
            goodput_bps=float(goodput.sum()),
            application_bps=float(application.sum()),
            fairness=jain(goodput),
            starved_flows=int(np.count_nonzero(goodput == 0)),
            least_bps=float(goodput.min()),
            most_bps=float(goodput.max()),
            timeouts=int(windows.timeouts.sum()),
            events=coordination.events,
            decisions=coordination.decisions,
            layers=list(self._layers(ports)),
            flow=self._flows(goodput, application) if len(goodput) <= FEW else [],
            series=self._series(),
            speed=_speed(scenario.slots, coordination, wall_seconds),
        )

    @property
    def _seconds(self) -> float:
        return self._scenario.slots * self._scenario.slot_ns / 1e9

    def _layers(self, ports: Ports) -> Iterator[Layer]:
        """Yield the hosts' own links, then the ports' layers in order."""
        links = ports.host_links
        yield self._layer(1, links, self.sent.sum(), 0.0, self.sent.sum())
        for hop, port in enumerate(ports.stages, 2):
            figures = port.arrived.sum(), port.dropped.sum(), port.carried.sum()
            yield self._layer(hop, port.stage.links, *figures)

    def _layer(
        self, hop: int, links: Indices, arrived: float, dropped: float, carried: float
    ) -> Layer:
        topology = self._scenario.topology
        capacity = sum(map(topology.capacity_bps, links.tolist()))
        first = topology.links[int(links[0]) >> 1]
        ends = (first.b, first.a) if links[0] & 1 else (first.a, first.b)
        return Layer(
            hop=hop,
            example=" > ".join(ends),
            links=len(links),
            capacity_bps=capacity,
            utilisation=float(carried) * 8 / self._seconds / capacity,
            loss=_ratio(dropped, arrived),
            dropped_bytes=float(dropped),
        )

    def _flows(self, goodput: Floats, application: Floats) -> list[FlowResult]:
        traffic, hosts = self._scenario.traffic, self._scenario.topology.hosts
        return [
            FlowResult(
                source=hosts[traffic.source[flow]].name,
                destination=hosts[traffic.destination[flow]].name,
                kind="tcp" if traffic.windowed[flow] else "udp",
                sent_bps=float(self.sent[flow]) * 8 / self._seconds,
                goodput_bps=float(goodput[flow]),
                application_bps=float(application[flow]),
                loss=_ratio(self.dropped[flow], self.sent[flow]),
            )
            for flow in range(len(goodput))
        ]

    def _series(self) -> Series:
        length = np.bincount(self._part) * self._scenario.slot_ns / 1e9
        middle = np.cumsum(length) - length / 2
        rates = (np.round(bits * 8 / length).tolist() for bits in (self._delivered, self._dropped))
        return Series(middle.tolist(), *rates)


def _speed(slots: int, coordination: Coordination, wall_seconds: float) -> Speed:
    spent = coordination.spent_ns / 1e9
    return Speed(
        wall_seconds=wall_seconds,
        slots_per_second=slots / wall_seconds,
        scheduler_seconds=spent,
        decisions_per_second=coordination.decisions / spent if spent else None,
    )


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else 0.0
