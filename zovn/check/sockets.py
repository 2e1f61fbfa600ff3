"""Reads the buffers of open sockets (sock_diag(7)) and the settings that new ones start with."""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Final, Literal

from pyroute2 import DiagSocket
from pyroute2.netlink.exceptions import NetlinkError

from zovn.check.facts import Settings, Socket

Protocol = Literal["tcp", "udp"]
_NUMBERS: Final[tuple[tuple[Protocol, int], ...]] = (
    ("udp", socket.IPPROTO_UDP),
    ("tcp", socket.IPPROTO_TCP),
)
_SOCKET_MEMORY: Final = 1 << 6
"""Asks for INET_DIAG_SKMEMINFO: nine numbers, of which the second and fourth are the buffers."""
_IDLE: Final = frozenset({6, 10})
"""TCP states in which a socket sends no data: TIME_WAIT and LISTEN."""
_MORE_THAN_ALLOWED: Final = 1 << 30
_SYSCTL: Final = Path("/proc/sys/net/ipv4")


def read_sockets() -> tuple[Socket, ...]:
    """Return the UDP sockets and TCP connections of the calling thread's namespace."""
    with DiagSocket() as diag:
        diag.bind()
        families = (socket.AF_INET, socket.AF_INET6)
        found = [
            each
            for family, (protocol, number) in product(families, _NUMBERS)
            for each in _sockets(diag, family, protocol, number)
        ]
    return tuple(found)


def _sockets(diag: DiagSocket, family: int, protocol: Protocol, number: int) -> Iterator[Socket]:
    try:
        answers = diag.get_sock_stats(family=family, protocol=number, extensions=_SOCKET_MEMORY)
    except NetlinkError:  # a kernel without this protocol's diagnosis has none to show
        return
    for answer in answers:
        memory = answer.get_attr("INET_DIAG_SKMEMINFO")
        if memory and answer["idiag_state"] not in _IDLE:
            numbers = struct.unpack_from("=4I", bytes.fromhex(memory.replace(":", "")))
            yield Socket(protocol=protocol, send_buffer=numbers[3], receive_buffer=numbers[1])


def read_settings() -> Settings:
    """Return what new sockets get, found out with one: namespaces do not show all settings."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        send, receive = (
            probe.getsockopt(socket.SOL_SOCKET, each)
            for each in (socket.SO_SNDBUF, socket.SO_RCVBUF)
        )
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MORE_THAN_ALLOWED)
        largest = probe.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    return Settings(
        send_default=send,
        send_largest=largest,
        receive_default=receive,
        tcp_limit=_sysctl("tcp_limit_output_bytes", Settings().tcp_limit),
        forwards=bool(_sysctl("ip_forward", 0)),
    )


def _sysctl(name: str, otherwise: int) -> int:
    with suppress(OSError, ValueError):
        return int((_SYSCTL / name).read_text())
    return otherwise
