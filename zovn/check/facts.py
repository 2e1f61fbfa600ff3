"""What an endpoint is like: interfaces, queues, sockets, settings and counters of losses."""

from typing import Literal

import msgspec

ROOT = 0xFFFFFFFF
"""The parent of a queueing discipline at the root (TC_H_ROOT)."""


class Qdisc(msgspec.Struct, frozen=True, kw_only=True):
    """One queueing discipline, or the hidden queue of a class."""

    kind: str
    handle: int = 0
    parent: int = ROOT
    limit: int | None = None
    """Packets, or bytes, as its kind counts them; None: the kind has no such limit."""
    drops: int = 0


class Offloads(msgspec.Struct, frozen=True, kw_only=True):
    """What the device does instead of the network stack; None: unknown."""

    tx_checksum: bool | None = None
    tso: bool | None = None
    gro: bool | None = None
    tx_vlan: bool | None = None
    """The tags of VLAN interfaces, which are then no bytes of the packet."""


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface, seen from inside its namespace."""

    name: str
    kind: str
    """The type of a virtual link (ip-link(8)), else the driver: "veth", "virtio_net"."""
    up: bool = True
    txqueuelen: int = 1000
    qdiscs: tuple[Qdisc, ...] = ()
    offloads: Offloads = Offloads()
    rx_dropped: int = 0
    tx_dropped: int = 0


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """The buffers of one open socket, in bytes as the kernel charges them."""

    protocol: Literal["tcp", "udp"]
    send_buffer: int
    receive_buffer: int


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that sockets start with."""

    send_default: int = 212_992
    """Bytes of a new socket's send buffer (net.core.wmem_default)."""
    send_largest: int = 425_984
    """Bytes that a socket may have at most (twice net.core.wmem_max)."""
    receive_default: int = 212_992
    """Bytes of a new socket's receive buffer (net.core.rmem_default)."""
    tcp_limit: int = 4 << 20
    """Bytes that one TCP connection has in queues below (net.ipv4.tcp_limit_output_bytes)."""
    forwards: bool = False
    """Whether this end routes packets of others (net.ipv4.ip_forward)."""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """Losses so far that no setting hides."""

    udp_receive_buffer_errors: int = 0
    udp_send_buffer_errors: int = 0
    tcp_retransmitted: int = 0
    tcp_timeouts: int = 0
    softnet_dropped: int = 0
    """Packets dropped at the backlogs of CPUs, of the whole machine."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint."""

    kernel: tuple[int, int]
    interfaces: tuple[Interface, ...] = ()
    sockets: tuple[Socket, ...] = ()
    settings: Settings = Settings()
    counters: Counters = Counters()
