"""Whether packets are joined on their way through an interface: by GRO, and by who sends them.

A veth has a NAPI only while GRO is on, but GRO joins TCP segments into packets of up to 64 KB that
are then forwarded, and counted, as one. GRO joins nothing that would exceed the interface's
largest joined packet (gro_max_size: rtnetlink, Linux 5.19): with a size below every frame, each
packet stays single, and the counters of `/proc/net/dev` are true.

What a sender has joined itself (TCP, `UDP_SEGMENT`) or another interface's GRO has, a veth hands
over whole. An interface that takes one segment at most (gso_max_segs) has the kernel cut it first;
that is for the veth's other end. A packet that a guest has joined carries no count yet: it is cut
where the offload of its kind is switched off (`xtc.kernel.offload`).

Works in the calling thread's network namespace.
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

from xtc.actuator.spec import Joining

SINGLE: Final = 1
"""A largest joined packet, in bytes, that no two packets fit into."""
_RTM_NEWLINK, _RTM_GETLINK, _NLMSG_ERROR = 16, 18, 2
_NLM_F_REQUEST, _NLM_F_ACK = 1, 4
_IFLA_GSO_MAX_SEGS: Final = 40
_IFLA_GRO_MAX_SIZE, _IFLA_GRO_IPV4_MAX_SIZE = 58, 64
_HEADER: Final = struct.Struct("=IHHII")
_LINK: Final = struct.Struct("=BxHiII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_SIZE: Final = struct.Struct("=I")


def joining(interface: str) -> Joining:
    """Return what GRO may join on an interface.

    Raises:
        OSError: ENODEV, no such interface; EOPNOTSUPP, the kernel is older than Linux 5.19.
    """
    found = _attributes(_ask(_RTM_GETLINK, interface, _NLM_F_REQUEST))
    if _IFLA_GRO_MAX_SIZE not in found:
        raise OSError(errno.EOPNOTSUPP, "the kernel has no gro_max_size (Linux 5.19)", interface)
    size, ipv4_size = found[_IFLA_GRO_MAX_SIZE], found.get(_IFLA_GRO_IPV4_MAX_SIZE)
    return Joining(_number(size), None if ipv4_size is None else _number(ipv4_size))


def set_joining(interface: str, wanted: Joining) -> None:
    """Set what GRO may join; packets that are being received are not disturbed.

    Raises:
        OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN.
    """
    attributes = _attribute(_IFLA_GRO_MAX_SIZE, wanted.size)
    if wanted.ipv4_size is not None:
        attributes += _attribute(_IFLA_GRO_IPV4_MAX_SIZE, wanted.ipv4_size)
    _ask(_RTM_NEWLINK, interface, _NLM_F_REQUEST | _NLM_F_ACK, attributes)


def keep_single(interface: str) -> Joining:
    """Have GRO join nothing on an interface; return what stood before, to be put back.

    Raises:
        OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN; EOPNOTSUPP, the kernel is
            older than Linux 5.19.
    """
    before = joining(interface)
    set_joining(interface, Joining(SINGLE, None if before.ipv4_size is None else SINGLE))
    return before


def gso_segments(interface: str) -> int:
    """Return how many segments a packet may hold that is handed to an interface.

    Raises:
        OSError: ENODEV, no such interface.
    """
    return _number(_attributes(_ask(_RTM_GETLINK, interface, _NLM_F_REQUEST))[_IFLA_GSO_MAX_SEGS])


def set_gso_segments(interface: str, segments: int) -> None:
    """Set how many segments a packet may hold that is handed to an interface; 1 has all cut.

    Raises:
        OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN; EINVAL, more than it can.
    """
    attribute = _attribute(_IFLA_GSO_MAX_SEGS, segments)
    _ask(_RTM_NEWLINK, interface, _NLM_F_REQUEST | _NLM_F_ACK, attribute)


def _ask(kind: int, interface: str, flags: int, attributes: bytes = b"") -> bytes:
    """Send one request about an interface; return the body of the answer, empty if it is done."""
    try:
        index = socket.if_nametoindex(interface)
    except OSError as error:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), interface) from error
    body = _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0) + attributes
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)
        answer = netlink.recv(1 << 16)
    length, answered, _, _, _ = _HEADER.unpack_from(answer)
    if answered != _NLMSG_ERROR:
        return answer[_HEADER.size : length]
    code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
    if code:
        raise OSError(code, os.strerror(code), interface)
    return b""


def _attribute(kind: int, value: int) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + _SIZE.size, kind) + _SIZE.pack(value)


def _attributes(link: bytes) -> dict[int, bytes]:
    return dict(_each(link, _LINK.size))


def _each(message: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        yield kind & 0x3FFF, message[at + _ATTRIBUTE.size : at + length]
        at += max(length + 3 & ~3, _ATTRIBUTE.size)


def _number(value: bytes) -> int:
    return int(_SIZE.unpack(value)[0])
