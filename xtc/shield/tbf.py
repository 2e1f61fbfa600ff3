"""Limits traffic from the host into a virtual router, to save the cost of packets it would drop.

A router held at its setpoint drops excess load, but only after the host has carried each packet
across the interface: in the paper's section 7.3, Dom0 pays for packets that the router then drops.
A token bucket on the host's side of that interface (tc-tbf(8)) drops them first, at the price of an
enqueue.

A token bucket counts bytes. Its ``mpu`` makes every packet of any size cost as much as the largest
frame of the interface, so that the limit holds in packets/s for any mix of sizes, and smaller
packets cannot evade it. Packets that the host has joined (GRO, a local sender's segmentation
offload) cost their bytes: full-size segments cost as many frames as they contain, but small joined
segments cost less, and a flood of them exceeds the limit.
"""

import errno
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyroute2 import IPRoute
from pyroute2.netlink import (
    NLM_F_ACK,
    NLM_F_CREATE,
    NLM_F_ECHO,
    NLM_F_REPLACE,
    NLM_F_REQUEST,
)
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import RTM_GETQDISC, RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import tcmsg
from pyroute2.netlink.rtnl.tcmsg.common import calc_xmittime

from common.errors import UnitError
from common.units import PacketsPerSecond, check_rate
from xtc.errors import ActuatorError, Denied, Gone, Permanent, Transient, Unsupported

HANDLE: Final = 0x7C00_0000
"""The handle ``7c00:``, by which the limiter recognises its own qdisc."""
_ETHERNET_HEADER: Final = 14  # a qdisc includes it in the frame size
_ETHERNET: Final = 1  # TC_LINKLAYER_ETHERNET
_MAX_MPU: Final = 2**16 - 1
_MAX_BYTE_RATE: Final = 2**32 - 1  # tc_ratespec.rate, in bytes/s
_BURST_S, _MIN_BURST = 0.01, 16  # burst: the host's timer may be late by this much
_QUEUE_S, _MIN_QUEUE = 0.02, 32  # queue: an acceptable delay for a flow


class Limiter:
    """Sets packet rate limits on interfaces of the calling thread's network namespace.

    Each call opens its own netlink socket (3 ms): pyroute2 ties sockets to threads.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        """Numbers of limited interfaces: an interface keeps its number when renamed."""

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit traffic from the host through an interface, in packets/s; drop the excess.

        The burst is 10 ms of packets, the queue 20 ms. Above 4.29 GB/s (2.8 Mp/s of full
        frames) bytes count instead of packets.

        Raises:
            Gone: there is no such interface.
            Permanent: the rate is invalid, or a foreign qdisc is on the interface.
            Denied: no CAP_NET_ADMIN.
            Unsupported: the kernel has no tbf.
        """
        try:
            check_rate(rate)
        except UnitError as error:
            raise Permanent(interface, str(error)) from error
        with _netlink(interface) as route:
            index, frame = _link(route, interface)
            _check_replaceable(interface, _root(route, index))
            route.nlm_request_batch([_token_bucket(index, rate, frame)])
            # tbf's own queue counts bytes; this one counts packets
            queue = max(_MIN_QUEUE, round(rate * _QUEUE_S))
            route.tc("replace", "pfifo", index, parent=HANDLE | 1, limit=queue)
        self._numbers[interface] = index

    def lift(self, interface: str) -> None:
        """Remove our limit, if the interface exists and has one.

        A renamed interface is found by its number.

        Raises:
            Denied: no CAP_NET_ADMIN.
        """
        for index in {self._numbers.get(interface, 0), _number(interface)} - {0}:
            try:
                with _netlink(interface) as route:
                    if _our_parameters(_root(route, index)) is not None:
                        route.tc("del", index=index, handle=HANDLE, parent=TC_H_ROOT)
            except Gone:
                continue  # the limit is gone with the interface
        self._numbers.pop(interface, None)

    def current(self, interface: str) -> PacketsPerSecond | None:
        """Return the limit in force, in packets/s, None if there is none of ours.

        Raises:
            Gone: there is no such interface.
        """
        with _netlink(interface) as route:
            parameters = _our_parameters(_root(route, _link(route, interface)[0]))
        if parameters is None:
            return None
        return PacketsPerSecond(parameters["rate"] / parameters["rate_mpu"])

    def obstacle(self, interface: str) -> str:
        """Return why this limiter cannot be used on an interface, "" if it can; changes nothing."""
        try:
            with _netlink(interface) as route:
                _check_replaceable(interface, _root(route, _link(route, interface)[0]))
        except ActuatorError as error:
            return error.problem
        return ""

    def dropped(self, interfaces: Iterable[str]) -> dict[str, int]:
        """Return the drops of our limit on each interface since it was set, modulo 2^32.

        The kernel counts these packets at the qdisc only (TCA_STATS), not at the interface.
        Interfaces that are gone, or have no limit of ours, are omitted. Each is queried separately:
        the cost of a dump of all qdiscs grows with the interfaces of the host.

        Raises:
            Transient: the kernel did not answer.
        """
        counts = {}
        with _netlink("its qdisc") as route:
            for interface in interfaces:
                try:
                    index = socket.if_nametoindex(interface)
                except OSError:
                    continue  # gone
                for qdisc in route.nlm_request_batch([_question(index)]):
                    if _our_parameters(qdisc) is not None:
                        counts[interface] = int(qdisc.get_attr("TCA_STATS")["drop"])
        return counts


def _number(interface: str) -> int:
    try:
        return socket.if_nametoindex(interface)
    except OSError:
        return 0  # gone


def _link(route: IPRoute, interface: str) -> tuple[int, int]:
    """Return an interface's index and the bytes of its largest frame."""
    link = route.link("get", ifname=interface)[0]
    return link["index"], link.get_attr("IFLA_MTU") + _ETHERNET_HEADER


def _root(route: IPRoute, index: int) -> Any | None:
    qdiscs = route.get_qdiscs(index=index)
    return next((qdisc for qdisc in qdiscs if qdisc["parent"] == TC_H_ROOT), None)


def _check_replaceable(interface: str, root: Any | None) -> None:
    # the kernel's own default (noqueue, pfifo_fast, fq_codel, mq) has the handle 0
    if root is None or root["handle"] == 0 or _our_parameters(root) is not None:
        return
    kind, number = root.get_attr("TCA_KIND"), root["handle"] >> 16
    fix = f"remove it (tc qdisc del dev {interface} root), or switch the limit off"
    raise Permanent(interface, f"qdisc {kind} {number:x}: belongs to another program", fix)


def _our_parameters(qdisc: Any | None) -> Any | None:
    """Return the parameters of a token bucket that this module has set, None for any other."""
    if qdisc is None or qdisc["handle"] != HANDLE or qdisc.get_attr("TCA_KIND") != "tbf":
        return None
    parameters = qdisc.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")
    return parameters if parameters["rate_mpu"] else None


def _question(index: int) -> tcmsg:
    """Request an interface's root qdisc; without ECHO, the kernel does not answer the sender."""
    request = tcmsg()
    request["header"]["type"] = RTM_GETQDISC
    request["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO
    request["index"], request["parent"] = index, TC_H_ROOT
    return request


def _token_bucket(index: int, rate: PacketsPerSecond, frame: int) -> tcmsg:
    """Build the request; pyroute2's own builder does not support mpu."""
    cost = max(1, min(frame, _MAX_MPU, int(_MAX_BYTE_RATE / rate)))
    byte_rate = max(1, round(rate * cost))
    burst = max(_MIN_BURST, rate * _BURST_S) * cost
    parameters = {
        "rate": byte_rate,
        "rate_mpu": cost,
        "rate___reserved": _ETHERNET,  # this field is the link layer since Linux 3.10
        "buffer": calc_xmittime(byte_rate, burst),
        "limit": round(max(_MIN_QUEUE, rate * _QUEUE_S) * cost),
        "mtu": 0,
    }
    request = tcmsg()
    request["header"]["type"] = RTM_NEWQDISC
    request["header"]["flags"] = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE
    request["index"], request["handle"], request["parent"] = index, HANDLE, TC_H_ROOT
    options = {"attrs": [["TCA_TBF_PARMS", parameters]]}
    request["attrs"] = [["TCA_KIND", "tbf"], ["TCA_OPTIONS", options]]
    return request


@contextmanager
def _netlink(interface: str) -> Iterator[IPRoute]:
    try:
        with IPRoute() as route:
            yield route
    except NetlinkError as error:
        raise explain(interface, error.code) from error
    except OSError as error:  # no socket, or it failed
        raise explain(interface, error.errno or errno.EIO) from error


def explain(interface: str, code: int) -> ActuatorError:
    """Return the meaning of the kernel's refusal of a limit, and the fix."""
    match code:
        case errno.ENODEV:
            return Gone(interface, "the interface does not exist")
        case errno.EPERM | errno.EACCES:
            return Denied(interface, "its qdisc may not be set", "give the daemon CAP_NET_ADMIN")
        case errno.ENOENT | errno.EOPNOTSUPP:
            return Unsupported(interface, "the kernel has no tbf or pfifo", "load sch_tbf")
        case _:
            return Transient(interface, os.strerror(code))
