"""Switch ports: a buffer in bytes, proportional tail drop, a capacity per slot."""

from dataclasses import dataclass

import numpy as np

from xco.arrays import Floats, sums
from xco.simulate.routes import Routes, Stage


@dataclass(frozen=True, slots=True)
class Passage:
    """The fate of one slot's traffic; arrays of shape (flows,)."""

    delivered: Floats
    """Bytes that left the last port."""
    dropped: Floats
    """Bytes that found a buffer full."""
    kept: Floats
    """Share that all ports of the path together accept in this slot."""


class Port:
    """The output ports of one stage.

    Fluid model: arrivals above capacity and free buffer are dropped in proportion over all flows.
    Held bytes leave in proportion, so a slot's order of frames does not matter.
    """

    def __init__(self, stage: Stage, room: Floats, buffer: Floats) -> None:
        """Take bytes a slot and bytes of buffer, both of shape (links,)."""
        self.stage = stage
        self._room, self._buffer = room[stage.links], buffer[stage.links]
        self._held = np.zeros(len(stage.flows))
        self.arrived = np.zeros(len(stage.links))
        self.dropped = np.zeros(len(stage.links))
        self.carried = np.zeros(len(stage.links))

    @property
    def held(self) -> Floats:
        """Bytes that wait in each of these ports, shape (ports,)."""
        return sums(self.stage.port, self._held, len(self._room))

    def forward(self, moving: Floats, dropped: Floats, kept: Floats) -> None:
        """Pass a slot's bytes through; all of shape (flows,), changed in place."""
        flows, port = self.stage.flows, self.stage.port
        arriving = moving[flows]
        arrived = sums(port, arriving, len(self._room))
        queued = self.held
        excess = np.clip(queued + arrived - self._room - self._buffer, 0.0, arrived)
        self.arrived += arrived
        if excess.any():
            accepted = 1.0 - _share(excess, arrived, 0.0)
            kept[flows] *= accepted[port]
            dropped[flows] += arriving * (1.0 - accepted[port])
            arriving = arriving * accepted[port]
            self.dropped += excess
        total = queued + arrived - excess
        leaving = _share(np.minimum(self._room, total), total, 1.0)
        waiting = self._held + arriving
        moving[flows] = waiting * leaving[port]
        self._held = waiting - moving[flows]
        self.carried += total * leaving


class Ports:
    """All switch ports of a topology that a flow crosses; the hosts' own links have none."""

    def __init__(self, routes: Routes, room: Floats, buffer: Floats) -> None:
        """Take bytes a slot and bytes of buffer, both of shape (links,)."""
        self.host_links = routes.stages[0].links
        self.stages = tuple(Port(stage, room, buffer) for stage in routes.stages[1:])

    def forward(self, sent: Floats) -> Passage:
        """Pass the hosts' bytes of one slot, shape (flows,), through all ports in order.

        Bytes that no port delays cross the whole tree within their slot.
        """
        moving, dropped, kept = sent.copy(), np.zeros(len(sent)), np.ones(len(sent))
        for port in self.stages:
            port.forward(moving, dropped, kept)
        return Passage(moving, dropped, kept)

    @property
    def held(self) -> float:
        """Bytes that wait in all ports."""
        return sum(float(port.held.sum()) for port in self.stages)


def _share(part: Floats, whole: Floats, otherwise: float) -> Floats:
    """Return part / whole, and a default where whole is 0."""
    share: Floats = np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0)
    return share
