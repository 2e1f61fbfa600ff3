"""The other end of a veth, in any network namespace."""

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from xtc.kernel.joining import gso_segments, set_gso_segments
from xtc.kernel.namespaces import cookie, in_namespace
from xtc.kernel.offload import set_tso, set_uso, tso, uso

_LOOPBACK: Final = 0x8
"""IFF_LOOPBACK (netdevice(7))."""
_Result = TypeVar("_Result")
_found: dict[tuple[int, int], str] = {}
"""The last known paths of namespaces, by the requesting namespace's cookie and its number for them:
searching all processes takes milliseconds."""


class Peer(NamedTuple):
    """An interface by its namespace's path and its index there."""

    netns: str
    ifindex: int


class PeerSwitches(NamedTuple):
    """Settings at a veth's other end that determine how packets arrive."""

    tso: tuple[str, ...]
    """The TCP segmentation offloads that are on, by ethtool's names."""
    uso: bool
    """Whether UDP datagrams that a guest has joined pass whole."""
    segments: int | None
    """How many segments a packet may have; None means unknown, and is not set."""


CUT: Final = PeerSwitches(tso=(), uso=False, segments=1)
"""Every packet is split there, and passed to the NAPI of this end."""


def peer_switches(interface: str) -> PeerSwitches | None:
    """Return the switches of a veth's peer; None if it is not a veth.

    Raises:
        OSError: ENXIO, the peer's namespace was not found.
    """
    return _at_peer(interface, _switches, None)


def set_peer_switches(interface: str, wanted: PeerSwitches) -> None:
    """Set the switches of a veth's peer; do nothing for other interfaces."""
    _at_peer(interface, partial(_set_switches, wanted=wanted), None)


def _switches(peer: str) -> PeerSwitches:
    return PeerSwitches(tso(peer), uso(peer), gso_segments(peer))


def _set_switches(peer: str, wanted: PeerSwitches) -> None:
    set_tso(peer, wanted.tso)
    set_uso(peer, on=wanted.uso)
    if wanted.segments is not None:
        set_gso_segments(peer, wanted.segments)


def _at_peer(interface: str, work: Callable[[str], _Result], otherwise: _Result) -> _Result:
    peer = find_peer(interface)
    if peer is None:
        return otherwise
    return in_namespace(peer.netns, lambda: work(socket.if_indextoname(peer.ifindex)))


def find_peer(interface: str) -> Peer | None:
    """Return the other end of a veth of the calling thread's namespace, None if it is not a veth.

    Raises:
        OSError: ENODEV, no such interface; ENXIO, the peer's namespace was not found.
    """
    with IPRoute() as route:
        link = _link(route, interface)
        info = link.get_attr("IFLA_LINKINFO")
        if info is None or info.get_attr("IFLA_INFO_KIND") != "veth":
            return None
        number = link.get_attr("IFLA_LINK_NETNSID")
        here = number is None or number < 0
        netns = _own() if here else _namespace(route, number)
    if netns is None:
        raise OSError(errno.ENXIO, "the other end's namespace cannot be found", interface)
    return Peer(netns, link.get_attr("IFLA_LINK"))


def other_ends(netns: str) -> dict[str, int]:
    """Return the interfaces of the calling thread's namespace, except the loopback.

    The value is the index of the other end for a veth that ends in the given namespace, otherwise
    0.

    Raises:
        OSError: the namespace cannot be opened, or netlink refuses.
    """
    namespace = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with IPRoute() as route:
            links = [link for link in route.get_links() if not link["flags"] & _LOOPBACK]
            number = _number(route, namespace)  # the links' other ends have got a number for it
    except NetlinkError as error:
        raise OSError(error.code, os.strerror(error.code), netns) from error
    finally:
        os.close(namespace)
    return {readable(link.get_attr("IFLA_IFNAME")): _end_in(number, link) for link in links}


def readable(name: str | bytes) -> str:
    """Return an interface's name as text, with invalid UTF-8 in Python's escapes.

    `xtc.measure.meter` does the same; pyroute2 returns such a name as bytes, and socket(3) hides
    the bytes.
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _end_in(number: int | None, link: Any) -> int:
    info = link.get_attr("IFLA_LINKINFO")
    veth = info is not None and info.get_attr("IFLA_INFO_KIND") == "veth"
    there = number is not None and link.get_attr("IFLA_LINK_NETNSID") == number
    return int(link.get_attr("IFLA_LINK")) if veth and there else 0


def _link(route: IPRoute, interface: str) -> Any:
    try:
        return route.link("get", ifname=interface)[0]
    except NetlinkError as error:
        raise OSError(error.code, os.strerror(error.code), interface) from error


def _own() -> str:
    return f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net"


def _namespace(route: IPRoute, number: int) -> str | None:
    """Return the namespace that has a number in the calling thread's namespace (rtnetlink(7))."""
    seen: set[int] = set()
    last = _found.pop((cookie(), number), None)
    for path in _candidates() if last is None else chain([last], _candidates()):
        try:
            namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # its process ended, or may not be read
        try:
            inode = os.fstat(namespace).st_ino
            if inode not in seen and _number(route, namespace) == number:
                _found[cookie(), number] = path
                return path
            seen.add(inode)
        finally:
            os.close(namespace)
    return None


def _candidates() -> Iterator[str]:
    yield f"/proc/{os.getpid()}/ns/net"  # the daemon's namespace: the host's end of most veths
    yield from map(str, Path("/run/netns").glob("*"))
    yield from map(str, Path("/proc").glob("[0-9]*/ns/net"))


def _number(route: IPRoute, namespace: int) -> int | None:
    try:
        answer = route.get_netnsid(fd=namespace)
    except NetlinkError:
        return None  # a file in /run/netns that is not a namespace
    return None if answer is None else answer["nsid"]
