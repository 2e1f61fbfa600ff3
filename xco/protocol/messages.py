"""Messages between the controller, the local coordinators and the port agents, as values.

Messages are states, not increments: the next one makes up for a lost one.
docs/decisions/0026-state-not-increments.md gives the reasons.
"""

from dataclasses import dataclass
from enum import STRICT, IntEnum, IntFlag
from typing import ClassVar

Digest = bytes
"""32 bytes; a name of its own, since counters have a field `bytes`."""


class Mode(IntEnum):
    """What a directive permits from its start to its end."""

    CLOSED = 0
    SLICE = 1
    RATE = 2
    OPEN = 3


class Strategy(IntEnum):
    """How the controller coordinates (paper, sections 3.2 and 3.3)."""

    TIMESLICE = 0
    RATE = 1
    HYBRID = 2
    GCC = 3


class Status(IntEnum):
    """A controller's answer to a HELLO."""

    JOINED = 0
    TOPOLOGY_DIFFERS = 1
    UNKNOWN_HOST = 2
    HELLO_FIRST = 3


class Flag(IntFlag, boundary=STRICT):
    """Flags of a report next to its backlog group; other bits raise a ValueError."""

    NONE = 0
    FELL_BACK = 1
    MORE = 2


@dataclass(frozen=True, slots=True)
class Header:
    """Sender and time of a message; `sent_ns` is on the sender's monotonic clock."""

    host: int
    epoch: int
    sequence: int
    sent_ns: int


@dataclass(frozen=True, slots=True)
class Hello:
    """Host to controller: request to join."""

    kind: ClassVar[int] = 1
    header: Header
    digest: bytes


@dataclass(frozen=True, slots=True)
class Welcome:
    """Controller to host: joined, or why not."""

    kind: ClassVar[int] = 2
    header: Header
    to: int
    status: Status
    strategy: Strategy
    slice_ns: int
    silence_ns: int
    echo_sent_ns: int
    echo_received_ns: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A member of a backlog group: destination, waiting bytes, recent rate, and all bytes sent.

    `weight` and `guarantee_mbps` are sums over the VMs that send to it, 0 where none is listed.
    """

    destination: int
    backlog_bytes: int
    rate_kbps: int
    sent_bytes: int = 0
    """48 bits; then it begins again."""
    weight: int = 0
    guarantee_mbps: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Host to controller: the whole backlog here (paper, section 3.2.1: the backlog group)."""

    kind: ClassVar[int] = 3
    header: Header
    flags: Flag
    directive_sequence: int
    gave_up_sequence: int
    waiting: tuple[Waiting, ...] = ()
    free_ns: int = 0
    """End of the slice given up, in the controller's clock; 0: immediately."""


@dataclass(frozen=True, slots=True)
class Permit:
    """A destination that the host may send to; rate 0: as fast as the host can."""

    destination: int
    rate_bps: int


@dataclass(frozen=True, slots=True)
class Directive:
    """Controller to host: what it may send, from when to when by the controller's clock.

    Before `start_ns` the preceding directive stays in force, up to its own end. After `end_ns` all
    coordinated gates are closed; an end of 0 means until the next directive.
    """

    kind: ClassVar[int] = 4
    header: Header
    to: int
    mode: Mode
    start_ns: int
    end_ns: int
    echo_sent_ns: int
    echo_received_ns: int
    permits: tuple[Permit, ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """Host to controller: do not schedule me."""

    kind: ClassVar[int] = 5
    header: Header


class Kind(IntEnum):
    """Kinds of address; an IPv4 address is mapped into IPv6, a MAC comes first.

    HOST is no address: the host of this number has named all that are behind it.
    """

    MAC = 1
    IP = 2
    HOST = 3


@dataclass(frozen=True, slots=True)
class Located:
    """An address (16 bytes) and the host behind which it is; 65535: none."""

    address: bytes
    vlan: int
    kind: Kind
    host: int


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes between two versions of a log of addresses.

    `since` is the version that the reader must have (0: start over), `until` the one it has
    afterwards, `last` the newest, and `heard` what the writer has of the reader's own log.
    """

    header: Header
    to: int
    since: int
    until: int
    last: int
    heard: int
    entries: tuple[Located, ...] = ()


@dataclass(frozen=True, slots=True)
class Places(_Changes):
    """Host to controller: addresses behind the host, since a version."""

    kind: ClassVar[int] = 6


@dataclass(frozen=True, slots=True)
class Map(_Changes):
    """Controller to host: which address is at which host, since a version."""

    kind: ClassVar[int] = 7


@dataclass(frozen=True, slots=True)
class Marks:
    """Host to host: what arrived from `to`, and what `to` may send to the writer.

    Counters are cumulative; one that falls was restarted. `read_ns` is on the writer's clock; an
    offer of 0 is none. Marks are those that the writer's own port does not explain. `wants_bps` is
    what the writer could send to `to`, 0 where nothing waits for it; `weight` and `guarantee_mbps`
    are as in `Waiting`.
    """

    kind: ClassVar[int] = 8
    header: Header
    to: int
    read_ns: int
    packets: int
    bytes: int
    marks: int
    digest: Digest
    """Of the hosts' names (`Topology.hosts_digest`)."""
    offer_bps: int = 0
    wants_bps: int = 0
    weight: int = 0
    guarantee_mbps: int = 0


@dataclass(frozen=True, slots=True)
class PortCounts:
    """What left the port of a node towards another one, and what waits there now.

    Nodes are numbered as in `Topology.node_indices`. Counters are cumulative; one that falls was
    restarted. `read_ns` is on the agent's clock.
    """

    source: int
    target: int
    read_ns: int
    packets: int
    bytes: int
    marks: int
    drops: int
    backlog_bytes: int
    coordinated_bytes: int = 0
    """Of the bytes, from hosts of the topology; only the host behind the port knows it."""


@dataclass(frozen=True, slots=True)
class Port:
    """Port agent to controller, or a host for its own port: counters of ports."""

    kind: ClassVar[int] = 9
    header: Header
    digest: bytes
    """Of the names of all nodes (`Topology.nodes_digest`)."""
    ports: tuple[PortCounts, ...] = ()


Message = Hello | Welcome | Report | Directive | Leave | Places | Map | Marks | Port
