"""The messages of OpenFlow 1.3 that statistics of ports need (Open Networking Foundation TS-023).

Strict: any bytes give messages or `SwitchGarbled`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from xco.errors import SwitchGarbled

VERSION: Final = 4
"""OpenFlow 1.3 on the wire."""
_NEWEST: Final = 6
"""OpenFlow 1.5: the newest version that a HELLO may name."""
PORT_MOST: Final = 0xFFFFFF00
"""Largest number of an ordinary port (OFPP_MAX)."""

_HEADER: Final = struct.Struct("!BBHI")
_MULTIPART: Final = struct.Struct("!HHxxxx")
_PORT_REQUEST: Final = struct.Struct("!Ixxxx")
_QUEUE_REQUEST: Final = struct.Struct("!II")
_PORT: Final = struct.Struct("!Ixxxx12QII")
_QUEUE: Final = struct.Struct("!IIQQQII")
_ERROR: Final = struct.Struct("!HH")
_MORE: Final = 1


class Type(IntEnum):
    """Types of messages; a switch may send others, which the reader skips."""

    HELLO = 0
    ERROR = 1
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    MULTIPART_REQUEST = 18
    MULTIPART_REPLY = 19


class Part(IntEnum):
    """What a multipart message asks for."""

    PORT_STATS = 4
    QUEUE_STATS = 5


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `type` is a number that `Type` need not have."""

    version: int
    type: int
    xid: int
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Sent:
    """What left a port, or one of its queues; `queue` is None for the port."""

    port: int
    queue: int | None
    packets: int
    bytes: int
    drops: int


def encoded(message: Message) -> bytes:
    """Return a message as sent."""
    length = _HEADER.size + len(message.body)
    return _HEADER.pack(message.version, message.type, length, message.xid) + message.body


def request(port: int, queue: int | None, xid: int) -> bytes:
    """Return the request for the statistics of a port, or of one of its queues."""
    if queue is None:
        body = _MULTIPART.pack(Part.PORT_STATS, 0) + _PORT_REQUEST.pack(port)
    else:
        body = _MULTIPART.pack(Part.QUEUE_STATS, 0) + _QUEUE_REQUEST.pack(port, queue)
    return encoded(Message(VERSION, Type.MULTIPART_REQUEST, xid, body))


class Stream:
    """Splits what a connection receives into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def messages(self, received: bytes) -> Iterator[Message]:
        """Yield the messages that are complete.

        Raises:
            SwitchGarbled: a version or length that no message has.
        """
        self._rest += received
        while len(self._rest) >= _HEADER.size:
            version, kind, length, xid = _HEADER.unpack_from(self._rest)
            if length < _HEADER.size or not 1 <= version <= _NEWEST:
                raise SwitchGarbled("OpenFlow", f"version {version}, {length} bytes: no message")
            if len(self._rest) < length:
                return
            body, self._rest = self._rest[_HEADER.size : length], self._rest[length:]
            yield Message(version, kind, xid, body)


def check_version(message: Message) -> None:
    """Check that a message other than HELLO is of OpenFlow 1.3.

    Raises:
        SwitchGarbled: it is not.
    """
    if message.version != VERSION:
        raise SwitchGarbled("OpenFlow", f"version {message.version} after version {VERSION}")


def statistics(message: Message) -> tuple[list[Sent], bool]:
    """Return the entries of a multipart reply, and whether more follow.

    Raises:
        SwitchGarbled: it is not one of ports or queues, or cut short.
    """
    if len(message.body) < _MULTIPART.size:
        raise SwitchGarbled("OpenFlow", f"statistics of {len(message.body)} bytes")
    part, flags = _MULTIPART.unpack_from(message.body)
    entries = message.body[_MULTIPART.size :]
    size = {Part.PORT_STATS: _PORT.size, Part.QUEUE_STATS: _QUEUE.size}.get(part)
    if size is None:
        raise SwitchGarbled("OpenFlow", f"statistics of type {part}, which were not requested")
    if len(entries) % size:
        raise SwitchGarbled("OpenFlow", f"{len(entries)} bytes of entries of {size}")
    found = _ports(entries) if part == Part.PORT_STATS else _queues(entries)
    return list(found), bool(flags & _MORE)


def _ports(entries: bytes) -> Iterator[Sent]:
    for port, _, packets, _, sent, _, dropped, *_ in _PORT.iter_unpack(entries):
        yield Sent(port, None, packets, sent, dropped)


def _queues(entries: bytes) -> Iterator[Sent]:
    for port, queue, sent, packets, errors, *_ in _QUEUE.iter_unpack(entries):
        yield Sent(port, queue, packets, sent, errors)


def error(message: Message) -> tuple[int, int]:
    """Return type and code of an error.

    Raises:
        SwitchGarbled: it is cut short.
    """
    if len(message.body) < _ERROR.size:
        raise SwitchGarbled("OpenFlow", f"an error of {len(message.body)} bytes")
    kind, code = _ERROR.unpack_from(message.body)
    return kind, code
