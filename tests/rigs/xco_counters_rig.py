"""Counters of one port in simulated time, and the messages that carry them."""

from itertools import count

from xco_controller_scenes import EPOCH, MS, Scene

from xco.protocol.messages import Header, Port, PortCounts
from xco.protocol.wire import AGENT

GBPS = 10**9
PACKET = 1500


class Counters:
    """Counters of one port, and the messages that carry them."""

    def __init__(self, scene: Scene, source: int, target: int, reporter: int) -> None:
        self.scene, self.ends, self.reporter = scene, (source, target), reporter
        self.bytes = self.coordinated = self.marks = self.drops = 0
        self.sequences = count(10**6)
        self.epoch, self.digest = EPOCH, scene.topology.nodes_digest()

    def run(
        self,
        milliseconds: int,
        used: float,
        coordinated: float,
        *,
        marked: float = 0.0,
        drops: int = 0,
        period_ms: int = 10,
    ) -> None:
        """Let time pass while a share of 1 Gb/s leaves the port, with a report each period."""
        for _ in range(milliseconds // period_ms):
            self.scene.run_until(self.scene.now_ns + period_ms * MS)
            self.bytes += round(used * GBPS / 8000 * period_ms)
            self.coordinated += round(coordinated * GBPS / 8000 * period_ms)
            self.marks += round(marked * used * GBPS / 8000 * period_ms / PACKET)
            self.drops += drops
            self.send()

    def message(self) -> Port:
        known = self.coordinated if self.reporter != AGENT else 0
        counts = PortCounts(
            *self.ends,
            self.scene.now_ns,
            self.bytes // PACKET,
            self.bytes,
            self.marks,
            self.drops,
            0,
            known,
        )
        if self.reporter == AGENT:
            header = Header(AGENT, self.epoch, next(self.sequences), self.scene.now_ns)
        else:
            header = self.scene.hosts[self.reporter].header(self.scene.now_ns)
        return Port(header, self.digest, (counts,))

    def send(self) -> None:
        self.scene.say(self.message())
