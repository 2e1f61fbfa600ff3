"""Hosts without a controller: their compiled pure parts, on fluid links in simulated time."""

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field

from xco_coordinator_rig import LINE, MS, NOW, SILENCE, Core, long

PERIOD_MS = 10
PACKET_BYTES = 1000
TAKEN, LATE, DIFFERS, MISDIRECTED = range(4)
Counts = tuple[int, int, int]
"""Packets, bytes and marks."""


@dataclass(frozen=True)
class Told:
    """The numbers of a MARKS."""

    to: int
    packets: int = 0
    bytes: int = 0
    marks: int = 0
    offer_bps: int = 0
    wants_bps: int = 0
    weight: int = 0
    guarantee_mbps: int = 0


class Peer:
    """A host: what it knows of others, and its gates to them."""

    def __init__(
        self,
        shim: ctypes.CDLL,
        number: int,
        hosts: int,
        port_bps: int = LINE,
        safe: int = LINE // 4,
    ) -> None:
        """Begin; `safe` is the safe share to each destination."""
        self.shim, self.number, self.hosts, self._safe = shim, number, hosts, safe
        rates = ctypes.c_uint64(LINE), ctypes.c_uint64(port_bps)
        self._peers = ctypes.c_void_p(shim.shim_peers(number, *rates, ctypes.c_size_t(hosts)))
        self.core = Core(shim)
        self.gates: dict[int, int] = {}
        self._sequences = itertools.count(1)

    def publish(self) -> "Peer":
        """Follow the published law from now on."""
        self.shim.shim_publish(self._peers)
        return self

    def take(
        self, now: int, sender: int, told: Told, sequence: int | None = None, digest: int = 0
    ) -> int:
        """Give a message; return what became of it."""
        numbers = (ctypes.c_uint64 * 8)(*astuple(told))
        known = next(self._sequences) if sequence is None else sequence
        place = ctypes.c_uint16(sender), ctypes.c_uint64(known), ctypes.c_uint8(digest)
        return int(self.shim.shim_peers_take(self._peers, long(now), *place, numbers))

    def count(self, now: int, arrived: Mapping[int, Counts]) -> None:
        """Give the counters of arrivals by host; `hosts` is all other sources."""
        flat = [number for at in range(self.hosts + 1) for number in arrived.get(at, (0, 0, 0))]
        counters = (ctypes.c_uint64 * len(flat))(*flat)
        self.shim.xco_offers_count(self._peers, long(now), long(SILENCE), counters)

    def written(self, now: int) -> list[Told]:
        """Return all messages that are due."""
        found, numbers = list[Told](), (ctypes.c_uint64 * 8)()
        while self.shim.shim_peers_write(self._peers, long(now), numbers):
            found.append(Told(*numbers))
        return found

    def offer(self, host: int) -> int:
        """Return what a host may send here."""
        return int(self.shim.shim_offer(self._peers, host))

    def between(self, host: int) -> int:
        """Return the marks of links in between."""
        return int(self.shim.shim_between(self._peers, host))

    def wants(self, host: int) -> int:
        """Return what this host could send to another."""
        return int(self.shim.shim_wants(self._peers, host))

    def gate(self, now: int, host: int) -> int:
        """Return the gate to a host; open one if there is none."""
        if host not in self.gates:
            self.gates[host] = self.core.add(now, host, (host, self._safe))
        return self.gates[host]

    def promise(self, host: int, weight: int, guarantee_mbps: int) -> None:
        """Set the weight and the guarantee of the VMs that send to a host."""
        numbers = ctypes.c_uint16(weight), ctypes.c_uint16(guarantee_mbps)
        self.shim.shim_promise(self.core.state, self.gates[host], *numbers)

    def first_entry(self) -> tuple[int, int, int]:
        """Return bytes sent, weight and guarantee of the first entry of a report."""
        numbers = (ctypes.c_uint64 * 3)()
        self.shim.shim_first_entry(self.core.state, numbers)
        return numbers[0], numbers[1], numbers[2]

    def allow(self, now: int) -> None:
        """Set what the gates may send."""
        self.shim.xco_allowances_set(self._peers, self.core.state, long(now))

    def allowed(self, host: int) -> int:
        """Return what other hosts allow to a destination; 0: its safe share."""
        return int(self.shim.shim_allowed(self.core.state, self.gates[host]))

    def rate(self, now: int, host: int) -> int:
        """Return the setting of the gate to a host."""
        self.core.decide(now)
        return int(self.shim.shim_gate_rate(self.core.state, self.gates[host], long(now)))


class Demand(ctypes.Structure):
    """struct xco_demand."""

    _fields_ = (
        ("rate_bps", ctypes.c_uint64),
        ("granted_bps", ctypes.c_uint64),
        ("guarantee_mbps", ctypes.c_uint32),
        ("weight", ctypes.c_uint32),
    )


def demanded(
    demands: list[tuple[int, int, int]], capacity: int
) -> tuple[ctypes.Array[Demand], ctypes.c_size_t, ctypes.c_uint64]:
    """Return C's arguments: demands of rate, guarantee and weight, and a capacity."""
    array = (Demand * max(1, len(demands)))(*((rate, 0, *more) for rate, *more in demands))
    return array, ctypes.c_size_t(len(demands)), ctypes.c_uint64(capacity)


@dataclass
class Flow:
    """What one host sends to another: all that it may, or a rate."""

    source: int
    target: int
    demand_bps: float = float("inf")
    links: tuple[str, ...] = ()
    """On the way before the receiver's port."""
    backlog: float = 0.0
    sent: float = 0.0
    arrived: float = 0.0
    marked: float = 0.0
    window: float = 0.0
    """Bits that arrived since the last call of `shares`."""


@dataclass
class Link:
    """A queue that marks above a threshold, in bits."""

    capacity_bps: float
    threshold: float = 400_000.0
    queue: float = 0.0
    waits: dict[int, float] = field(default_factory=dict)
    longest: float = 0.0

    def step(self, entered: Mapping[int, float], seconds: float) -> tuple[dict[int, float], bool]:
        """Take bits in by flow; return those that leave, and whether they are marked."""
        for flow, bits in entered.items():
            self.waits[flow] = self.waits.get(flow, 0.0) + bits
        total = sum(self.waits.values())
        share = min(1.0, self.capacity_bps * seconds / total) if total else 0.0
        left = {flow: bits * share for flow, bits in self.waits.items()}
        for flow, bits in left.items():
            self.waits[flow] -= bits
        self.queue = sum(self.waits.values())
        self.longest = max(self.longest, self.queue)
        return left, self.queue > self.threshold


class World:
    """Hosts whose ports have the capacity of a line, links in between, and flows."""

    def __init__(
        self, shim: ctypes.CDLL, hosts: int, links: Mapping[str, float] | None = None
    ) -> None:
        self.now = NOW
        self.hosts = [
            Peer(shim, number, hosts, safe=LINE // (hosts - 1)) for number in range(hosts)
        ]
        self.links = {name: Link(capacity) for name, capacity in (links or {}).items()}
        self.ports = [Link(LINE) for _ in range(hosts)]
        self.flows: list[Flow] = []
        self.foreign_bps = [0.0] * hosts
        self._foreign = [0.0] * hosts
        self.silent: set[int] = set()
        """Hosts that write nothing."""

    def promise(self, source: int, target: int, weight: int, guarantee_mbps: int = 0) -> None:
        """Set the weight and the guarantee of the VMs that send from one host to another."""
        self.hosts[source].promise(target, weight, guarantee_mbps)

    def send(self, source: int, target: int, demand: float = float("inf"), *links: str) -> Flow:
        """Begin a flow; its demand is a share of the line."""
        flow = Flow(source, target, demand * LINE, links)
        self.hosts[source].gate(self.now, target)
        self.flows.append(flow)
        return flow

    def run(self, milliseconds: int) -> None:
        """Let time pass."""
        for _ in range(milliseconds):
            self.now += MS
            self._carry()
            if self.now // MS % PERIOD_MS == 0:
                self._talk()

    def shares(self, milliseconds: int = 200) -> list[float]:
        """Return what each flow gets of the line over this time."""
        for flow in self.flows:
            flow.window = 0.0
        self.run(milliseconds)
        return [flow.window / (LINE * milliseconds / 1000) for flow in self.flows]

    def _released(self, flow: Flow) -> float:
        host = self.hosts[flow.source]
        most = host.rate(self.now, flow.target) * 1e-3
        offered = flow.demand_bps * 1e-3 + flow.backlog
        bits = min(most, offered)
        flow.backlog = min(offered - bits, 4e6)
        flow.sent += bits
        host.core.look(
            self.now, host.gates[flow.target], int(flow.backlog // 8), int(flow.sent // 8)
        )
        return bits

    def _carry(self) -> None:
        bits = {at: self._released(flow) for at, flow in enumerate(self.flows)}
        marked = dict.fromkeys(bits, False)
        for name, link in self.links.items():
            through = {at: bits[at] for at, flow in enumerate(self.flows) if name in flow.links}
            left, marks = link.step(through, 1e-3)
            bits |= left
            marked |= {at: marks or marked[at] for at in left}
        for target, port in enumerate(self.ports):
            self._arrive(target, port, bits, marked)

    def _arrive(
        self, target: int, port: Link, bits: Mapping[int, float], marked: Mapping[int, bool]
    ) -> None:
        entered = {at: bits[at] for at, flow in enumerate(self.flows) if flow.target == target}
        entered[-1] = self.foreign_bps[target] * 1e-3
        left, marks = port.step(entered, 1e-3)
        self._foreign[target] += left.pop(-1, 0.0)
        for at, count in left.items():
            flow = self.flows[at]
            flow.arrived += count
            flow.window += count
            flow.marked += count if marks or marked[at] else 0.0

    def _talk(self) -> None:
        for host in self.hosts:
            host.count(self.now, self._counters(host.number))
            host.allow(self.now)
        for host in self.hosts:
            for told in host.written(self.now) if host.number not in self.silent else ():
                self.hosts[told.to].take(self.now, host.number, told)

    def _counters(self, target: int) -> dict[int, Counts]:
        flows: Sequence[Flow] = [flow for flow in self.flows if flow.target == target]
        counted = {flow.source: _counts(flow.arrived, flow.marked) for flow in flows}
        return counted | {len(self.hosts): _counts(self._foreign[target], 0.0)}


def _counts(bits: float, marked: float) -> Counts:
    size = PACKET_BYTES * 8
    return int(bits // size), int(bits // 8), int(min(marked, bits) // size)
