"""The rtnetlink(7) messages that xtc needs, in the calling thread's network namespace.

Opening a pyroute2 socket takes milliseconds, which is too slow for queries in each tick.
"""

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

HEADER: Final = struct.Struct("=IHHII")
ERROR: Final = 2
_DONE: Final = 3
_REQUEST, _DUMP = 0x1, 0x300
_ATTRIBUTE: Final = struct.Struct("=HH")
_LARGEST: Final = 1 << 16
"""Maximum bytes of messages that the kernel combines."""


def opened() -> socket.socket:
    """Return a socket of the calling thread's namespace, which the socket keeps alive."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)


def dump(kind: int, body: bytes) -> Iterator[bytes]:
    """Request all objects of a kind, and yield the body of each answer. Raises OSError."""
    with opened() as netlink:
        netlink.send(HEADER.pack(HEADER.size + len(body), kind, _REQUEST | _DUMP, 1, 0) + body)
        while True:
            for answered, answer in _messages(netlink.recv(_LARGEST)):
                if answered in (_DONE, ERROR):
                    check(answer)
                    return
                yield answer


def check(answer: bytes, about: str | None = None) -> None:
    """Raise the error in an answer that ends a conversation, if there is one."""
    code = -struct.unpack_from("=i", answer)[0]
    if code:
        raise OSError(code, os.strerror(code), about)


def _messages(packet: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + HEADER.size <= len(packet):
        length, kind, _, _, _ = HEADER.unpack_from(packet, at)
        yield kind, packet[at + HEADER.size : at + length]
        at += max(length + 3 & ~3, HEADER.size)


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute in message format."""
    packed = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value
    return packed.ljust(len(packed) + 3 & ~3, b"\0")


def attributes(message: bytes, at: int = 0) -> dict[int, bytes]:
    """Return the attributes from an offset on; the last one if a kind occurs twice."""
    found = {}
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        found[kind & 0x3FFF] = message[at + _ATTRIBUTE.size : at + length]
        at += max(length + 3 & ~3, _ATTRIBUTE.size)
    return found


def text(value: bytes) -> str:
    """Return the text of an attribute."""
    return os.fsdecode(value.rstrip(b"\0"))
