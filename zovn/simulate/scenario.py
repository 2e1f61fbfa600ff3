"""Input of a simulated run. Times are in seconds, sizes in bytes, rates in bits/s."""

from dataclasses import dataclass, fields
from typing import Final, Literal, get_args

from common.errors import ConfigError

Mode = Literal["LL", "LZ", "ZL", "ZZ"]
"""Virtual network first, then physical: L may drop packets, Z never does."""
Algorithm = Literal["newreno", "cubic", "vegas"]
Load = Literal["none", "light", "heavy"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
LOADS: Final[dict[Load, float]] = {"none": 0.0, "light": 0.05, "heavy": 0.4}
"""Background that each server offers, as a share of its link; the paper gives no numbers."""
MEAN_FLOW: Final = 2_425_000
"""Bytes of a mean background flow, of the distribution in zovn/core/simulate/background.c."""
LONGEST: Final = 3600.0
"""Seconds that any time in a scenario may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """A fat tree: servers on chassis switches, these on aggregation and core switches."""

    pods: int = 4
    chassis: int = 16
    servers: int = 16
    """In each chassis."""
    vms: int = 3
    """On each server; queries need three."""
    aggregations: int = 16
    """Aggregation switches in each pod, and uplinks of each chassis."""
    cores: int = 4
    """Uplinks of each aggregation switch."""
    link_bps: float = 10e9
    vm_bps: float = 40e9
    """Of a VM's virtual link, in each direction."""
    hop_s: float = 1e-6
    """Delay of each wire and switch."""
    stack_s: float = 10e-6
    """Delay of each packet in the receiving VM."""
    overlay: int = 54
    """Headers of the overlay."""
    mtu: int = 1446
    """Of VMs: 1500 without the overlay's headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """Room for packets that wait."""

    virtual_queue: int = 256
    """Packets of each queue in a virtual switch."""
    port: int = 128_000
    """Bytes of each port of a physical switch, divided among the classes."""
    blocking: bool = False
    """A VM that one destination stops sends to no other (head-of-line blocking, as in zVALE)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp:
    """TCP as in FreeBSD 9, with shorter timers (decision 0083); windows in segments."""

    algorithm: Algorithm = "newreno"
    window: int = 46
    """The receiver's: 64 KB."""
    initial_window: int = 16
    """Of connections that have been open for long: more than a message of 20 KB."""
    restart_idle: bool = False
    """Return to the initial window after an idle time (RFC 5681)."""
    rto_min_s: float = 0.03
    rto_slop_s: float = 0.0
    """Added to each retransmission timeout; FreeBSD 9: 0.2."""
    delayed_ack_s: float = 0.01
    """FreeBSD 9: 0.1, which is longer than the timeout without its slop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """Partition-aggregate with three tiers."""

    count: int = 200
    interval_s: float = 1e-3
    """Mean of the exponential time between two queries."""
    request: int = 20_000
    reply: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """UDP flows from each VM to random VMs, until the last query is complete."""

    load: float = 0.0
    """What each server offers while nothing stops it, as a share of its link."""
    socket: int = 1_000_000
    """Datagrams that may wait in a VM; a sender blocks above that (8: 12 KB)."""
    own_class: bool = False
    """A class (priority) of its own, with its own queues, buffers and PFC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One message from a VM to another; servers and VMs count from 0."""

    source: tuple[int, int]
    destination: tuple[int, int]
    size: int
    start_s: float = 0.0
    traffic_class: int = 0
    datagrams: bool = False
    """UDP, as fast as the VM's link takes it, instead of TCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole run. The same scenario has the same result."""

    mode: Mode = "LL"
    fabric: Fabric = Fabric()
    buffers: Buffers = Buffers()
    tcp: Tcp = Tcp()
    queries: Queries = Queries()
    background: Background = Background()
    flows: tuple[Flow, ...] = ()
    classes: int = 0
    """0: as many as the background and the flows use."""
    seed: int = 1
    limit_s: float = 60.0
    """Simulated time after which the run ends; what is not complete then is reported."""

    def check(self) -> None:
        """Find the first invalid value.

        Raises:
            ConfigError: names the field and the fix.
        """
        for part in ("fabric", "buffers", "tcp", "queries", "background"):
            for one in fields(getattr(self, part)):
                _check(f"{part}.{one.name}", getattr(getattr(self, part), one.name))
        _choice("mode", self.mode, MODES)
        _check("seed", self.seed)
        _check("limit_s", self.limit_s)
        if self.fabric.chassis % self.fabric.pods:
            fix = f"a multiple of the {self.fabric.pods} pods"
            raise ConfigError("fabric.chassis", f"{self.fabric.chassis}", fix)
        if self.queries.count and self.fabric.vms < 3:
            fix = "3 or more, or queries.count = 0"
            raise ConfigError("fabric.vms", "queries need three VMs on each server", fix)
        if self.classes not in {0, 1, 2} or 0 < self.classes < self.used_classes:
            raise ConfigError("classes", f"{self.classes}", f"{self.used_classes} or 2")
        for index, flow in enumerate(self.flows):
            _check_flow(self, f"flows[{index}]", flow)
        _check_headroom(self)

    @property
    def used_classes(self) -> int:
        """The number of classes that carry traffic."""
        second = self.background.own_class or any(flow.traffic_class for flow in self.flows)
        return 2 if second else 1

    @property
    def class_count(self) -> int:
        """The number of classes that share queues, buffers and links."""
        return self.classes or self.used_classes


BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "fabric.pods": (1, 64),
    "fabric.chassis": (1, 1024),
    "fabric.servers": (1, 64),
    "fabric.vms": (1, 7),
    "fabric.aggregations": (1, 64),
    "fabric.cores": (1, 64),
    "fabric.link_bps": (1e6, 1e12),
    "fabric.vm_bps": (1e6, 1e12),
    "fabric.hop_s": (0, 1),
    "fabric.stack_s": (0, 1),
    "fabric.overlay": (0, 200),
    "fabric.mtu": (100, 9000),
    "buffers.virtual_queue": (5, 1_000_000),
    "buffers.port": (1, 1_000_000_000),
    "tcp.window": (2, 64),
    "tcp.initial_window": (1, 64),
    "tcp.rto_min_s": (1e-6, 60),
    "tcp.rto_slop_s": (0, 60),
    "tcp.delayed_ack_s": (0, 60),
    "queries.count": (0, 1_000_000),
    "queries.interval_s": (1e-9, LONGEST),
    "queries.request": (1, 1_000_000_000),
    "queries.reply": (1, 1_000_000_000),
    "background.load": (0, 10),
    "background.socket": (1, 1_000_000_000),
    "seed": (0, 2**62),
    "limit_s": (1e-9, LONGEST),
}
"""What each number may be."""


def _check(name: str, value: object) -> None:
    if name == "tcp.algorithm":
        _choice(name, value, ALGORITHMS)
    if name not in BOUNDS:
        return
    least, most = BOUNDS[name]
    fraction = name.endswith(("_s", "_bps", "load"))
    right = type(value) is int or (fraction and type(value) is float)
    if not (right and isinstance(value, int | float) and least <= value <= most):
        raise ConfigError(name, f"{value}", f"{_unit(name)} from {least:g} to {most:g}")


def _unit(name: str) -> str:
    """Return what the number of a field is."""
    if name.endswith("_s"):
        return "seconds"
    if name.endswith("_bps"):
        return "bits per second"
    return "a number" if name.endswith("load") else "a whole number"


def _choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(name, f"{value!r}", f"one of {', '.join(choices)}")


def _check_flow(scenario: Scenario, name: str, flow: Flow) -> None:
    servers = scenario.fabric.chassis * scenario.fabric.servers
    for end in ("source", "destination"):
        server, vm = getattr(flow, end)
        if not (0 <= server < servers and 0 <= vm < scenario.fabric.vms):
            fix = f"a server below {servers} and a VM below {scenario.fabric.vms}"
            raise ConfigError(f"{name}.{end}", f"{(server, vm)} does not exist", fix)
    if flow.source == flow.destination:
        raise ConfigError(f"{name}.destination", "the source itself", "another VM")
    if not 1 <= flow.size <= 1_000_000_000:
        raise ConfigError(f"{name}.size", f"{flow.size}", "from 1 to 1000000000 bytes")
    if not 0 <= flow.start_s <= LONGEST:
        raise ConfigError(f"{name}.start_s", f"{flow.start_s:g}", f"from 0 to {LONGEST:g}")
    if flow.traffic_class not in {0, 1}:
        raise ConfigError(f"{name}.traffic_class", f"{flow.traffic_class}", "0 or 1")


def headroom(fabric: Fabric) -> float:
    """Return what a paused port of a switch needs beyond its thresholds (links.c)."""
    frame = fabric.mtu + fabric.overlay
    late_s = 2 * fabric.hop_s + (frame + 104) * 8 / fabric.link_bps
    return late_s * fabric.link_bps / 8 + 2 * (frame + 20) + 2 * frame


def _check_headroom(scenario: Scenario) -> None:
    least = round(headroom(scenario.fabric) * scenario.class_count) + 10
    if scenario.mode[1] == "Z" and scenario.buffers.port < least:
        problem = f"{scenario.buffers.port} bytes are too few to pause senders in time"
        raise ConfigError("buffers.port", problem, f"at least {least}")
