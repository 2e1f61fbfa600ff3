"""A model of the switch without loss: who gets each frame, in which order, and as which bytes.

It knows no rings and no turns. A destination may get the first frame of any of its queues, one for
each source and class, and no other.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from zovn.native.switch import PortSettings, Settings
from zovn.oracle.frames import Ethernet, parse

RESERVED = bytes((0x01, 0x80, 0xC2, 0, 0))
"""The addresses from ...:00 to ...:0f, which bridges do not forward."""


@dataclass(frozen=True)
class Queue:
    """Frames stay in order within one."""

    source: int
    destination: int
    klass: int


class ExpectedSwitch:
    """What the switch does with frames that it takes in a given order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ports: dict[int, PortSettings] = {}
        self.addresses: dict[tuple[int, bytes], tuple[int, float]] = {}
        self.queues: dict[Queue, deque[bytes]] = {}
        self.drops: Counter[tuple[int, str]] = Counter()

    def add(self, port: int, settings: PortSettings) -> None:
        """Add a port."""
        self.ports[port] = settings

    def remove(self, port: int) -> None:
        """Drop what comes from a port or waits for it, and forget its addresses."""
        for queue, frames in self.queues.items():
            if port in {queue.source, queue.destination}:
                self.drops[queue.source, "removed"] += len(frames)
                frames.clear()
        self.addresses = {key: at for key, at in self.addresses.items() if at[0] != port}
        del self.ports[port]

    def take(self, source: int, frame: bytes, now_s: float) -> None:
        """Classify a frame, and queue it for its destinations."""
        header = parse(frame)
        if header is None or (problem := self._refused(source, header)):
            self.drops[source, "malformed" if header is None else problem] += 1
            return
        vlan = header.vlan or self.ports[source].vlan
        targets = list(self._targets(source, vlan, header.destination, now_s))
        self.addresses[vlan, header.source] = (source, now_s)
        if not targets:
            self.drops[source, "no_destination"] += 1
        for target in targets:
            queue = Queue(source, target, self._class_of(source, header))
            self.queues.setdefault(queue, deque()).append(self._leaving(target, vlan, header))

    def receive(self, destination: int, frame: bytes) -> Queue:
        """Accept a frame that a destination got.

        Raises:
            AssertionError: it is not the first of any queue.
        """
        for queue, frames in self.queues.items():
            if queue.destination == destination and frames and frames[0] == frame:
                frames.popleft()
                return queue
        raise AssertionError(f"port {destination} got {frame.hex()}, which is not its turn")

    def waiting(self) -> int:
        """Return how many frames are yet to be received."""
        return sum(map(len, self.queues.values()))

    def _refused(self, source: int, header: Ethernet) -> str:
        settings = self.ports[source]
        if header.source[0] & 1 or not any(header.source):
            return "malformed"
        if header.destination[:5] == RESERVED and header.destination[5] < 16:
            return "reserved"
        vlan = header.vlan or settings.vlan
        tagged = settings.tagged is not None
        accepted = vlan and (tagged or not header.vlan) and carries(settings, vlan)
        return "" if accepted else "vlan"

    def _targets(self, source: int, vlan: int, address: bytes, now_s: float) -> Iterator[int]:
        known, seen_s = self.addresses.get((vlan, address), (None, 0.0))
        if known is None or address[0] & 1 or now_s - seen_s > self.settings.age_s:
            known = None
        for port, settings in self.ports.items():
            if port != source and carries(settings, vlan) and known in {None, port}:
                yield port

    def _class_of(self, source: int, header: Ethernet) -> int:
        settings = self.ports[source]
        if settings.trust == "priority" and header.tag is not None:
            return self.settings.class_of_priority.get(header.tag >> 13, 0)
        if settings.trust == "dscp" and header.dscp is not None:
            return self.settings.class_of_dscp.get(header.dscp, 0)
        return settings.klass

    def _leaving(self, target: int, vlan: int, header: Ethernet) -> bytes:
        settings = self.ports[target]
        shown = vlan != settings.vlan or header.hides_a_tag
        if settings.tagged is None or not shown:
            return replace(header, tag=None).as_bytes()
        return replace(header, tag=(header.tag or 0) & 0xF000 | vlan).as_bytes()


def carries(settings: PortSettings, vlan: int) -> bool:
    """Return whether a port is in a VLAN."""
    return vlan == settings.vlan or vlan in (settings.tagged or ())
