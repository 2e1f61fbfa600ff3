"""Interfaces by rtnetlink(7), in microseconds, in the calling thread's network namespace."""

import errno
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from xtc.kernel.netlink import ERROR, HEADER, attribute, attributes, check, opened, text

_RTM_NEWLINK, _RTM_GETLINK = 16, 18
_NLM_F_REQUEST, _NLM_F_ACK = 1, 4
_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_INFO_KIND = 3, 18, 1
_IFF_UP: Final = 1
_LINK: Final = struct.Struct("=BxHiII")
_SIZE: Final = struct.Struct("=I")


@dataclass(frozen=True, slots=True)
class Link:
    """The current state of an interface."""

    index: int
    """Its index, which stays when its name changes."""
    name: str
    kind: str
    """Such as "veth"; empty for hardware."""
    up: bool
    attributes: Mapping[int, bytes] = field(repr=False)

    def number(self, attribute: int) -> int | None:
        """Return an attribute of 32 bits (IFLA_...), None where the kernel lacks it."""
        value = self.attributes.get(attribute)
        return None if value is None else int(_SIZE.unpack(value)[0])


class Links:
    """The interfaces of the namespace in which it was opened."""

    def __init__(self, netlink: socket.socket) -> None:
        self._netlink = netlink

    def find(self, which: int | str) -> Link | None:
        """Return an interface by its index or its name, None if there is none."""
        if not which:
            return None  # for which the kernel would not answer at all
        try:
            return self.get(which)
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise
            return None

    def get(self, which: int | str) -> Link:
        """Return an interface by its index or its name. Raises OSError: ENODEV, none such."""
        return _link(self._ask(_RTM_GETLINK, which, _NLM_F_REQUEST))

    def change(self, which: int | str, values: Mapping[int, int]) -> None:
        """Set attributes of 32 bits.

        Raises:
            OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN; EINVAL, out of range.
        """
        packed = b"".join(attribute(kind, _SIZE.pack(value)) for kind, value in values.items())
        self._ask(_RTM_NEWLINK, which, _NLM_F_REQUEST | _NLM_F_ACK, packed)

    def _ask(self, kind: int, which: int | str, flags: int, packed: bytes = b"") -> bytes:
        """Send one request; return the body of the answer, empty on success."""
        index = which if isinstance(which, int) else 0
        if isinstance(which, str):
            packed = attribute(_IFLA_IFNAME, os.fsencode(which) + b"\0") + packed
        body = _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0) + packed
        self._netlink.send(HEADER.pack(HEADER.size + len(body), kind, flags, 1, 0) + body)
        answer = self._netlink.recv(1 << 16)
        length, answered, _, _, _ = HEADER.unpack_from(answer)
        if answered != ERROR:
            return answer[HEADER.size : length]
        check(answer[HEADER.size :], str(which))
        return b""


@contextmanager
def open_links() -> Iterator[Links]:
    """Open the interfaces of the calling thread's namespace, which the socket keeps alive."""
    with opened() as netlink:
        yield Links(netlink)


def _link(message: bytes) -> Link:
    _, _, index, flags, _ = _LINK.unpack_from(message)
    found = attributes(message, _LINK.size)
    info = attributes(found.get(_IFLA_LINKINFO, b""))
    return Link(
        index=index,
        name=text(found[_IFLA_IFNAME]),
        kind=text(info.get(_IFLA_INFO_KIND, b"")),
        up=bool(flags & _IFF_UP),
        attributes=found,
    )
