"""The queueing disciplines of all interfaces with their statistics, over rtnetlink(7).

One request takes some microseconds; the same through pyroute2 takes a hundred times as long, which
is too slow for a look every few milliseconds.
"""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xco.ports.xstats import attributes

ROOT: Final = 0xFFFFFFFF
"""Parent of a root qdisc."""
INGRESS: Final = 0xFFFFFFF1
"""Parent of the qdiscs of incoming packets."""

_HEADER: Final = struct.Struct("=IHHII")
_TCMSG: Final = struct.Struct("=BxxxiIII")
_GET_QDISC: Final = 38
_REQUEST_DUMP: Final = 0x301
_ERROR, _DONE = 2, 3
_HIDDEN_TOO: Final = struct.pack("=HH", 4, 10)
"""TCA_DUMP_INVISIBLE: qdiscs that the kernel has made by itself."""
_KIND, _OPTIONS, _STATS = 1, 2, 7
_BASIC, _QUEUE, _APP = 1, 3, 4
_LARGEST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Qdisc:
    """One qdisc; counters as the kernel has them, `packets` and `drops` with 32 bits."""

    interface: int
    handle: int
    parent: int
    kind: str
    sent_bytes: int
    packets: int
    drops: int
    backlog_bytes: int
    xstats: bytes = b""
    options: bytes = b""


class QdiscSocket:
    """A netlink socket in the network namespace of the process."""

    def __init__(self, *, timeout_s: float = 1.0) -> None:
        """Open it. Raises OSError."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.settimeout(timeout_s)
        self._sequence = 0

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def qdiscs(self) -> list[Qdisc]:
        """Return all qdiscs. Raises OSError if the kernel refuses or does not answer."""
        self._sequence += 1
        body = _TCMSG.pack(0, 0, 0, 0, 0) + _HIDDEN_TOO
        length = _HEADER.size + len(body)
        head = _HEADER.pack(length, _GET_QDISC, _REQUEST_DUMP, self._sequence, 0)
        self._socket.send(head + body)
        return [qdisc for qdisc in map(parsed, self._answers()) if qdisc is not None]

    def _answers(self) -> Iterator[bytes]:
        """Yield the body of each answer to the last request."""
        while True:
            for kind, sequence, body in _messages(self._socket.recv(_LARGEST)):
                if sequence != self._sequence:
                    continue  # the end of an answer that came too late
                if kind in (_DONE, _ERROR):
                    _check(body)
                    return
                yield body


def parsed(message: bytes) -> Qdisc | None:
    """Return the qdisc of a message (struct tcmsg and attributes); None if it has no statistics."""
    if len(message) < _TCMSG.size:
        return None
    _, interface, handle, parent, _ = _TCMSG.unpack_from(message)
    found = dict(attributes(message[_TCMSG.size :]))
    stats = dict(attributes(found.get(_STATS, b"")))
    basic, queue = stats.get(_BASIC, b""), stats.get(_QUEUE, b"")
    if len(basic) < 12 or len(queue) < 12:
        return None
    total, packets = struct.unpack_from("=QI", basic)
    _, backlog, drops = struct.unpack_from("=III", queue)
    kind = found.get(_KIND, b"").rstrip(b"\0").decode("ascii", "replace")
    more = stats.get(_APP, b""), found.get(_OPTIONS, b"")
    return Qdisc(interface, handle, parent, kind, total, packets, drops, backlog, *more)


def _messages(packet: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield kind, sequence and body of each message."""
    at = 0
    while at + _HEADER.size <= len(packet):
        length, kind, _, sequence, _ = _HEADER.unpack_from(packet, at)
        yield kind, sequence, packet[at + _HEADER.size : at + length]
        at += max(length + 3 & ~3, _HEADER.size)


def _check(body: bytes) -> None:
    """Raise the error of a message that ends an answer, if there is one."""
    code = -struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
    if code > 0:
        raise OSError(code, "the kernel does not list queueing disciplines")
