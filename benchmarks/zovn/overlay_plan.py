"""What `benchmarks.zovn.overlay` builds, by pure functions: containers, settings, buffers.

The letters are those of the paper: the first is the virtual network, the second the physical one;
L drops, Z is lossless.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from lab.fabric.plan import DATA_INTERFACE
from lab.fabric.star import OVERLAY_MTU, StarHost
from lab.traffic.star import Buffers, headroom, lossless

Background = Literal["none", "shared", "own"]
BACKGROUNDS: Final[tuple[Background, ...]] = ("none", "shared", "own")
"""No background; in the class of the queries; in a lower class of its own."""
FOREGROUND_CLASS, BACKGROUND_CLASS = 5, 0
FRAME_BYTES: Final = OVERLAY_MTU + 18
"""Of the largest frame on a line, with its tag."""
LATE_BYTES: Final = 100_000
"""Room for what comes while a switch waits for a CPU, on a machine that runs all of them."""
VNI: Final = 42


@dataclass(frozen=True)
class Mode:
    """Which networks lose nothing."""

    virtual: bool
    physical: bool


MODES: Final = MappingProxyType(
    {
        "LL": Mode(virtual=False, physical=False),
        "LZ": Mode(virtual=False, physical=True),
        "ZL": Mode(virtual=True, physical=False),
        "ZZ": Mode(virtual=True, physical=True),
    }
)


@dataclass(frozen=True)
class Request:
    """One network."""

    mode: str
    hosts: int
    workers: int
    line_bps: int
    delay_s: float
    queue: int
    """Full frames that a queue of a lossy virtual network holds."""
    star_queue: int
    """Full frames for a class of a port in the star: of an output that drops, or of an input."""
    background: Background

    @property
    def reaction_s(self) -> float:
        """How late a pause may be obeyed."""
        return LATE_BYTES * 8 / self.line_bps

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes in use."""
        return (FOREGROUND_CLASS, *([BACKGROUND_CLASS] if self.background == "own" else []))


@dataclass(frozen=True)
class Container:
    """A container on a host."""

    host: int
    slot: int
    class_: int

    @property
    def name(self) -> str:
        """Of its namespace, without the prefix."""
        return f"h{self.host}c{self.slot}"

    @property
    def port(self) -> str:
        """The host's end of its veth."""
        return f"c{self.slot}"

    @property
    def address(self) -> str:
        """Its IPv4 address."""
        return f"10.242.{self.host}.{self.slot}"

    @property
    def mac(self) -> str:
        """Its Ethernet address."""
        return f"02:00:f2:00:{self.host:02x}:{self.slot:02x}"


@dataclass(frozen=True)
class Containers:
    """All containers of a network."""

    top: Container
    workers: Sequence[Container]
    background: Sequence[Container]
    """One on each host, if there is background traffic."""

    @property
    def all(self) -> Sequence[Container]:
        """All of them."""
        return [self.top, *self.workers, *self.background]


def containers(request: Request) -> Containers:
    """Return the aggregator on host 1, and workers on all hosts in turn."""
    hosts = range(1, request.hosts + 1)
    workers = [
        Container(1 + number % request.hosts, 2 + number // request.hosts, FOREGROUND_CLASS)
        for number in range(request.workers)
    ]
    below = BACKGROUND_CLASS if request.background == "own" else FOREGROUND_CLASS
    extra = [] if request.background == "none" else [Container(host, 254, below) for host in hosts]
    return Containers(Container(1, 1, FOREGROUND_CLASS), workers, extra)


def buffers(request: Request) -> Buffers:
    """Return the buffers of the physical switch: equal room, as queues or with headroom."""
    if not MODES[request.mode].physical:
        return Buffers(request.star_queue * FRAME_BYTES)
    late = wire_headroom(request)
    return lossless(request.star_queue * FRAME_BYTES + late, late, request.classes)


def wire_headroom(request: Request) -> int:
    """Return what may come after a pause."""
    return headroom(
        request.line_bps, request.delay_s, reaction_s=request.reaction_s, frame_bytes=FRAME_BYTES
    )


def settings(request: Request, host: StarHost, control: str, locations: str) -> str:
    """Return the configuration of a host's switch, in TOML."""
    mine = [each for each in containers(request).all if each.host == host.index]
    return "\n".join(
        [
            "[switch]",
            f'control = "{control}"',
            *_classes(request),
            *(line for each in mine for line in _container_port(each)),
            *_wire_port(request, host, locations),
            "",
        ]
    )


def locations(request: Request, hosts: Sequence[StarHost]) -> str:
    """Return where each container is, for the wires."""
    addresses = {host.index: host.address for host in hosts}
    lines = [f"station {each.mac} {addresses[each.host]}" for each in containers(request).all]
    return "\n".join([*lines, ""])


def _classes(request: Request) -> list[str]:
    """Return the classes: strict for queries; with limits where the virtual network drops."""
    limit = 0 if MODES[request.mode].virtual else request.queue * FRAME_BYTES
    weights = {FOREGROUND_CLASS: 0, BACKGROUND_CLASS: 1}
    return [
        line
        for each, weight in weights.items()
        for line in (
            f"[switch.classes.{each}]",
            f"weight = {weight}",
            f"limit_bytes = {limit}",
        )
    ]


def _container_port(container: Container) -> list[str]:
    return [
        "[[switch.port]]",
        f'name = "{container.port}"',
        'kind = "veth"',
        f'interface = "{container.port}"',
        f'addresses = ["{container.mac}"]',
        f"class = {container.class_}",
    ]


def _wire_port(request: Request, host: StarHost, locations: str) -> list[str]:
    """Return the wire; it tags frames with their class only where it has PFC.

    A lossy star sends no pauses, and obeys none.
    """
    return [
        "[[switch.port]]",
        'name = "wire"',
        'kind = "wire"',
        f'interface = "{DATA_INTERFACE}"',
        f"class = {FOREGROUND_CLASS}",
        "[switch.port.wire]",
        f'local = "{host.address}"',
        f"vni = {VNI}",
        f'locations = "{locations}"',
        f'line_rate = "{request.line_bps}bit/s"',
        f'delay = "{round(request.delay_s * 1e6)}us"',
        f'response = "{round(request.reaction_s * 1e6)}us"',
        f"pfc = {list(request.classes)}",
    ]
