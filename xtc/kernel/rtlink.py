"""Interfaces by rtnetlink(7), some microseconds each, in the calling thread's network namespace."""

import errno
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

_RTM_NEWLINK, _RTM_GETLINK, _NLMSG_ERROR = 16, 18, 2
_NLM_F_REQUEST, _NLM_F_ACK = 1, 4
_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_INFO_KIND = 3, 18, 1
_IFF_UP: Final = 1
_HEADER: Final = struct.Struct("=IHHII")
_LINK: Final = struct.Struct("=BxHiII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_SIZE: Final = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class Link:
    """An interface as it is now."""

    index: int
    """What it keeps while its name changes."""
    name: str
    kind: str
    """Such as "veth"; empty for hardware."""
    up: bool
    attributes: Mapping[int, bytes] = field(repr=False)

    def number(self, attribute: int) -> int | None:
        """Return an attribute of 32 bits (IFLA_...), None where the kernel has none such."""
        value = self.attributes.get(attribute)
        return None if value is None else int(_SIZE.unpack(value)[0])


class Links:
    """The interfaces of the namespace in which it was opened."""

    def __init__(self, netlink: socket.socket) -> None:
        self._netlink = netlink

    def find(self, which: int | str) -> Link | None:
        """Return an interface by its index or its name, None where there is none."""
        if not which:
            return None  # which the kernel would take for no answer at all
        try:
            return self.get(which)
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise
            return None

    def get(self, which: int | str) -> Link:
        """Return an interface by its index or its name. Raises OSError: ENODEV, none such."""
        return _link(self._ask(_RTM_GETLINK, which, _NLM_F_REQUEST))

    def change(self, which: int | str, attributes: Mapping[int, int]) -> None:
        """Set attributes of 32 bits.

        Raises:
            OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN; EINVAL, out of range.
        """
        packed = b"".join(_attribute(kind, _SIZE.pack(value)) for kind, value in attributes.items())
        self._ask(_RTM_NEWLINK, which, _NLM_F_REQUEST | _NLM_F_ACK, packed)

    def _ask(self, kind: int, which: int | str, flags: int, attributes: bytes = b"") -> bytes:
        """Send one request; return the body of the answer, empty if it is done."""
        index = which if isinstance(which, int) else 0
        if isinstance(which, str):
            attributes = _attribute(_IFLA_IFNAME, os.fsencode(which) + b"\0") + attributes
        body = _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0) + attributes
        self._netlink.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)
        answer = self._netlink.recv(1 << 16)
        length, answered, _, _, _ = _HEADER.unpack_from(answer)
        if answered != _NLMSG_ERROR:
            return answer[_HEADER.size : length]
        code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if code:
            raise OSError(code, os.strerror(code), str(which))
        return b""


@contextmanager
def open_links() -> Iterator[Links]:
    """Open the interfaces of the calling thread's namespace, which the socket keeps alive."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        yield Links(netlink)


def _link(message: bytes) -> Link:
    _, _, index, flags, _ = _LINK.unpack_from(message)
    found = dict(_each(message, _LINK.size))
    info = dict(_each(found.get(_IFLA_LINKINFO, b""), 0))
    return Link(
        index=index,
        name=_text(found[_IFLA_IFNAME]),
        kind=_text(info.get(_IFLA_INFO_KIND, b"")),
        up=bool(flags & _IFF_UP),
        attributes=found,
    )


def _text(value: bytes) -> str:
    return os.fsdecode(value.rstrip(b"\0"))


def _attribute(kind: int, value: bytes) -> bytes:
    packed = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value
    return packed.ljust(len(packed) + 3 & ~3, b"\0")


def _each(message: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        yield kind & 0x3FFF, message[at + _ATTRIBUTE.size : at + length]
        at += max(length + 3 & ~3, _ATTRIBUTE.size)
