"""Moves a router's receive path, including forwarding, into kernel threads, and back.

Every function works in the calling thread's network namespace. Threaded NAPI is switched through
sysfs, not through netlink's napi-set (Linux 6.17): sysfs supports it since Linux 5.12, and its
switch belongs to the interface, so that a NAPI created by `ip link set up` is threaded, too.

A veth passes packets to its NAPI only while the other end does no TCP segmentation offload
(veth_skb_is_eligible_for_gro in drivers/net/veth.c): with it on, they are forwarded in the sender's
context, where no cap applies.

GRO would join packets, and a joined packet is forwarded and counted as one. It is on because NAPI
needs it, but joins nothing (`xtc.kernel.joining`); packets that a sender has joined are split at
the other end.
"""

import errno
import os
from collections.abc import Iterable

from xtc.kernel.joining import SINGLE, joining, joining_of, keep_single, set_joining
from xtc.kernel.napi import napi_threads
from xtc.kernel.offload import gro, gro_list, set_gro, set_gro_list
from xtc.kernel.peer import CUT, PeerSwitches, peer_switches, set_peer_switches
from xtc.kernel.rtlink import Link
from xtc.kernel.scheduling import SCHED_OTHER, get_policy, set_policy
from xtc.kernel.sysfs import NetSysfs, namespace_sysfs
from xtc.spec import InterfaceOriginal, Joining, ThreadPolicy

_ORDINARY = ThreadPolicy(
    policy=SCHED_OTHER, nice=0, priority=0, runtime_ns=0, deadline_ns=0, period_ns=0
)

_NO_PEER = PeerSwitches(tso=(), uso=False, segments=None)


def capture(interfaces: Iterable[str]) -> tuple[InterfaceOriginal, ...]:
    """Return the settings of each interface. Raises OSError: ENODEV, one does not exist."""
    with namespace_sysfs() as sysfs:
        threads = _threads(sysfs, interfaces)
        return tuple(_capture(sysfs, name, tids) for name, tids in threads.items())


def threads(interfaces: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return each interface's NAPI threads. Raises OSError: ENODEV, one does not exist."""
    with namespace_sysfs() as sysfs:
        return _threads(sysfs, interfaces)


def enable(interfaces: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Switch GRO and threaded NAPI on, all joining of packets off; return each interface's threads.

    An interface that is down has none. Before Linux 5.19 GRO keeps joining.

    Raises:
        OSError: ENODEV, an interface does not exist; EOPNOTSUPP, its driver has no NAPI;
            ENXIO, the other end of a veth was not found.
    """
    with namespace_sysfs() as sysfs:
        for name in _present(sysfs, interfaces):
            if not gro(name):
                set_gro(name, on=True)  # a veth has a NAPI only with GRO (drivers/net/veth.c)
            _keep_single(name)
            if sysfs.is_up(name) and not sysfs.threaded(name):
                sysfs.set_threaded(name, threaded=True)
        return _threads(sysfs, interfaces)


def _keep_single(name: str) -> None:
    """Keep packets single on their way into an interface."""
    if _joining(name) is not None:
        keep_single(name)
    set_gro_list(name, on=False)
    set_peer_switches(name, CUT)


def _joining(name: str) -> Joining | None:
    try:
        return joining(name)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return None  # before Linux 5.19


def stands(links: Iterable[Link]) -> bool:
    """Return whether NAPI is threaded and joins nothing on the interfaces that are up.

    Checks only what the router's tenant can change alone: see `peers_stand`.
    """
    with namespace_sysfs() as sysfs:
        return all(sysfs.threaded(link.name) and _joins_nothing(link) for link in links if link.up)


def _joins_nothing(link: Link) -> bool:
    try:
        stood = joining_of(link)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return not gro_list(link.name)  # before Linux 5.19
    single = stood.size == SINGLE and stood.ipv4_size in {None, SINGLE}
    return single and not gro_list(link.name)


def peers_stand(links: Iterable[Link]) -> bool:
    """Return whether the veths' other ends split joined packets, so that NAPI is used."""
    return all(peer_switches(link.name) in {None, CUT} for link in links)


def put_back(originals: Iterable[InterfaceOriginal]) -> tuple[str, ...]:
    """Restore policy, threaded NAPI, GRO and the peer's offloads of the interfaces that exist.

    Returns:
        The interfaces that are down, so that their NAPI could not be switched back.
    """
    with namespace_sysfs() as sysfs:
        there = sysfs.interfaces()
        present = [original for original in originals if original.interface in there]
        _put_back_policies(sysfs, present)
        return tuple(item.interface for item in present if not _put_back_switches(sysfs, item))


def _capture(sysfs: NetSysfs, name: str, tids: tuple[int, ...]) -> InterfaceOriginal:
    policy = get_policy(tids[0]) if tids else None
    peer = peer_switches(name) or _NO_PEER
    return InterfaceOriginal(
        interface=name,
        gro=gro(name),
        threaded=sysfs.threaded(name),
        policy=policy,
        peer_tso=peer.tso,
        joining=_joining(name),
        ifindex=sysfs.index(name),
        peer_segments=peer.segments,
        peer_uso=peer.uso,
        gro_list=gro_list(name),
    )


def _threads(sysfs: NetSysfs, interfaces: Iterable[str]) -> dict[str, tuple[int, ...]]:
    return napi_threads({name: sysfs.index(name) for name in _present(sysfs, interfaces)})


def _present(sysfs: NetSysfs, interfaces: Iterable[str]) -> tuple[str, ...]:
    wanted, there = tuple(interfaces), sysfs.interfaces()
    for name in wanted:
        if name not in there:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), name)
    return wanted


def _put_back_policies(sysfs: NetSysfs, originals: list[InterfaceOriginal]) -> None:
    found = _threads(sysfs, [original.interface for original in originals])
    for original in originals:
        for tid in found[original.interface]:
            try:
                set_policy(tid, original.policy or _ORDINARY)
            except ProcessLookupError:
                continue  # it has ended, and its policy with it


def _put_back_switches(sysfs: NetSysfs, original: InterfaceOriginal) -> bool:
    name, up = original.interface, sysfs.is_up(original.interface)
    differs = sysfs.threaded(name) != original.threaded
    if differs and up:
        if not gro(name):
            set_gro(name, on=True)  # without its NAPI, a veth refuses the switch
        sysfs.set_threaded(name, original.threaded)
    if gro(name) != original.gro:
        set_gro(name, on=original.gro)
    if original.joining is not None:
        set_joining(name, original.joining)
    set_gro_list(name, on=original.gro_list)
    peer = PeerSwitches(original.peer_tso, original.peer_uso, original.peer_segments)
    set_peer_switches(name, peer)
    return up or not differs or not original.gro  # without GRO, a veth has no NAPI to switch
