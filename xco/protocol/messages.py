"""What the controller and the local coordinators say to each other: the messages, as values.

Messages are states, not increments: losing one is cured by the next.
docs/decisions/0026-state-not-increments.md says why.
"""

from dataclasses import dataclass
from enum import STRICT, IntEnum, IntFlag
from typing import ClassVar


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


class Status(IntEnum):
    """What a controller says to a HELLO."""

    JOINED = 0
    TOPOLOGY_DIFFERS = 1
    UNKNOWN_HOST = 2
    HELLO_FIRST = 3


class Flag(IntFlag, boundary=STRICT):
    """What a report says beside its backlog group; other bits are a ValueError."""

    NONE = 0
    FELL_BACK = 1
    MORE = 2


@dataclass(frozen=True, slots=True)
class Header:
    """Who sent a message and when; `sent_ns` is the sender's monotonic clock."""

    host: int
    epoch: int
    sequence: int
    sent_ns: int


@dataclass(frozen=True, slots=True)
class Hello:
    """Host to controller: let me join."""

    kind: ClassVar[int] = 1
    header: Header
    digest: bytes


@dataclass(frozen=True, slots=True)
class Welcome:
    """Controller to host: you joined, or why not."""

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
    """A member of a backlog group: a destination, what waits for it, and what went of late."""

    destination: int
    backlog_bytes: int
    rate_kbps: int


@dataclass(frozen=True, slots=True)
class Report:
    """Host to controller: all that waits here (paper, section 3.2.1: the backlog group)."""

    kind: ClassVar[int] = 3
    header: Header
    flags: Flag
    directive_sequence: int
    gave_up_sequence: int
    waiting: tuple[Waiting, ...] = ()
    free_ns: int = 0
    """When the slice given up ends, in the controller's clock; 0: at once."""


@dataclass(frozen=True, slots=True)
class Permit:
    """A destination that may be sent to; rate 0 is as fast as the host can."""

    destination: int
    rate_bps: int


@dataclass(frozen=True, slots=True)
class Directive:
    """Controller to host: what may be sent, from when to when by the controller's clock.

    Before `start_ns` the directive before it goes on, to its own end. After `end_ns` everything
    coordinated is closed; an end of 0 is the next directive.
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
    """What an address is; an IPv4 address is mapped into IPv6, a MAC stands first."""

    MAC = 1
    IP = 2


@dataclass(frozen=True, slots=True)
class Located:
    """An address (16 bytes) and the host that it is behind; 65535: none."""

    address: bytes
    vlan: int
    kind: Kind
    host: int


@dataclass(frozen=True, slots=True)
class _Changes:
    """What changed between two versions of a log of addresses.

    `since` is what the reader must have to go on (0: it begins again), `until` what it has then,
    `last` what there is, and `heard` what the writer has of the reader's own log.
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
    """Host to controller: which addresses are behind the host, since a version."""

    kind: ClassVar[int] = 6


@dataclass(frozen=True, slots=True)
class Map(_Changes):
    """Controller to host: which address is at which host, since a version."""

    kind: ClassVar[int] = 7


Message = Hello | Welcome | Report | Directive | Leave | Places | Map
