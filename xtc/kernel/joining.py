"""Joining of packets on their way through an interface: by GRO, and by senders.

A veth has a NAPI only while GRO is on, but GRO joins TCP segments into packets of up to 64 KB that
are then forwarded, and counted, as one. GRO joins nothing that would exceed the interface's largest
joined packet (gro_max_size: rtnetlink, Linux 5.19): with a size below every frame, each packet
stays single, and the counters of `/proc/net/dev` are true.

A veth passes packets whole that a sender (TCP, `UDP_SEGMENT`) or another interface's GRO has
joined. For an interface that accepts one segment at most (gso_max_segs), the kernel splits them
first; this is set at the veth's other end. A packet that a guest has joined has no segment count
yet: it is split where the offload of its kind is off (`xtc.kernel.offload`).

Works in the calling thread's network namespace.
"""

import errno
from typing import Final

from xtc.kernel.rtlink import Link, open_links
from xtc.spec import Joining

SINGLE: Final = 1
"""A limit for joined packets, in bytes, that no two packets fit into."""
_IFLA_GSO_MAX_SEGS: Final = 40
_IFLA_GRO_MAX_SIZE, _IFLA_GRO_IPV4_MAX_SIZE = 58, 64


def joining(interface: str) -> Joining:
    """Return what GRO may join on an interface.

    Raises:
        OSError: ENODEV, no such interface; EOPNOTSUPP, the kernel is older than Linux 5.19.
    """
    with open_links() as links:
        return joining_of(links.get(interface))


def joining_of(link: Link) -> Joining:
    """Return what GRO may join on an interface. Raises OSError: EOPNOTSUPP, before Linux 5.19."""
    size = link.number(_IFLA_GRO_MAX_SIZE)
    if size is None:
        raise OSError(errno.EOPNOTSUPP, "the kernel has no gro_max_size (Linux 5.19)", link.name)
    return Joining(size, link.number(_IFLA_GRO_IPV4_MAX_SIZE))


def set_joining(interface: str, wanted: Joining) -> None:
    """Set what GRO may join; packets in reception are unaffected.

    Raises:
        OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN.
    """
    attributes = {_IFLA_GRO_MAX_SIZE: wanted.size}
    if wanted.ipv4_size is not None:
        attributes[_IFLA_GRO_IPV4_MAX_SIZE] = wanted.ipv4_size
    with open_links() as links:
        links.change(interface, attributes)


def keep_single(interface: str) -> Joining:
    """Stop GRO from joining on an interface; return the previous setting, for restoring it.

    Raises:
        OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN; EOPNOTSUPP, the kernel is
            older than Linux 5.19.
    """
    before = joining(interface)
    set_joining(interface, Joining(SINGLE, None if before.ipv4_size is None else SINGLE))
    return before


def gso_segments(interface: str) -> int:
    """Return how many segments a packet for an interface may have.

    Raises:
        OSError: ENODEV, no such interface.
    """
    with open_links() as links:
        found = links.get(interface).number(_IFLA_GSO_MAX_SEGS)
    if found is None:
        raise OSError(errno.EOPNOTSUPP, "the kernel does not report gso_max_segs", interface)
    return found


def set_gso_segments(interface: str, segments: int) -> None:
    """Set how many segments a packet for an interface may have; 1 splits all.

    Raises:
        OSError: ENODEV, no such interface; EPERM, no CAP_NET_ADMIN; EINVAL, more than it supports.
    """
    with open_links() as links:
        links.change(interface, {_IFLA_GSO_MAX_SEGS: segments})
