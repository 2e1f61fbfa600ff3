"""Reads interfaces and their queueing disciplines over netlink, and offloads by ioctl."""

import ctypes
import fcntl
import socket
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from pyroute2 import IPRoute

from zovn.check.facts import Interface, Offloads, Qdisc
from zovn.check.queues import CLASSFUL

_SIOCETHTOOL: Final = 0x8946
_GET_DRIVER: Final = 0x03  # ETHTOOL_GDRVINFO
_GET_TX_CHECKSUM: Final = 0x16
_GET_TSO: Final = 0x1E
_GET_GRO: Final = 0x2B
_GET_FLAGS: Final = 0x25
_TX_VLAN: Final = 1 << 7  # ETH_FLAG_TXVLAN
_ANY: Final = 0xFFFFFFFF
_DRIVER_INFO: Final = 196
"""Bytes of struct ethtool_drvinfo, of which the name begins at 4 and has 32."""
_UP: Final = 1
_LOOPBACK: Final = 8
_OWN_LEAVES: Final = frozenset({"mq", "mqprio", "taprio"})
"""They list the queues of their classes themselves."""


def read_interfaces() -> tuple[Interface, ...]:
    """Return the interfaces of the calling thread's namespace, without the loopback."""
    with IPRoute() as ip, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        queues: dict[int, list[Qdisc]] = defaultdict(list)
        for message in ip.get_qdiscs():
            queues[message["index"]].append(_qdisc(message))
        links = [link for link in ip.get_links() if not link["flags"] & _LOOPBACK]
        found = [_interface(ip, control, link, queues[link["index"]]) for link in links]
    return tuple(sorted(found, key=lambda each: each.name))


def _interface(ip: Any, control: socket.socket, link: Any, queues: list[Qdisc]) -> Interface:
    name = link.get_attr("IFLA_IFNAME")
    info, counts = link.get_attr("IFLA_LINKINFO"), link.get_attr("IFLA_STATS64") or {}
    length = link.get_attr("IFLA_TXQLEN") or 0
    ask = partial(_ask, control, name)
    return Interface(
        name=name,
        kind=(info and info.get_attr("IFLA_INFO_KIND")) or _driver(ask) or "unknown",
        up=bool(link["flags"] & _UP),
        txqueuelen=length,
        qdiscs=(*queues, *_hidden(ip, link["index"], queues, length)),
        offloads=_offloads(ask),
        rx_dropped=counts.get("rx_dropped", 0),
        tx_dropped=counts.get("tx_dropped", 0),
    )


def _qdisc(message: Any) -> Qdisc:
    kind, counts = message.get_attr("TCA_KIND"), message.get_attr("TCA_STATS2")
    queue = counts and counts.get_attr("TCA_STATS_QUEUE")
    return Qdisc(
        kind=kind,
        handle=message["handle"],
        parent=message["parent"],
        limit=limit_in(kind, message.get_attr("TCA_OPTIONS")),
        drops=queue["drops"] if queue else 0,
    )


def limit_in(kind: str, options: Any) -> int | None:
    """Return the limit in a queue's netlink options, which differ by kind."""
    if kind == "tbf" and options is not None:
        return int(options.get_attr("TCA_TBF_PARMS")["limit"])
    if kind == "bfifo" and isinstance(options, str):  # pyroute2 leaves it as hex digits
        return int.from_bytes(bytes.fromhex(options.replace(":", ""))[:4], "little")
    if kind in {"pfifo", "pfifo_head_drop"} and options is not None:
        return int(options["limit"])
    return None


def _hidden(ip: Any, index: int, queues: list[Qdisc], length: int) -> Iterator[Qdisc]:
    """Yield the queues that the kernel gives to classes and does not list: pfifo."""
    if not any(each.kind in CLASSFUL - _OWN_LEAVES for each in queues):
        return
    shown = {each.parent for each in queues}
    classes = list(ip.get_classes(index=index))
    inner = {each["parent"] for each in classes}
    for each in classes:
        if each["handle"] not in shown | inner and each["handle"] & 0xFFFF:
            yield Qdisc(kind="pfifo", parent=each["handle"], limit=length or 1)


def _ask(control: socket.socket, name: str, request: bytes) -> bytes | None:
    """Ask ethtool's ioctl; None if the device does not answer it."""
    buffer = ctypes.create_string_buffer(request, len(request))
    order = struct.pack("16sP16x", name.encode(), ctypes.addressof(buffer))
    try:
        fcntl.ioctl(control, _SIOCETHTOOL, order)
    except OSError:  # it has no such operation
        return None
    return buffer.raw


def _driver(ask: Callable[[bytes], bytes | None]) -> str:
    answer = ask(struct.pack("I", _GET_DRIVER).ljust(_DRIVER_INFO, b"\0"))
    return "" if answer is None else answer[4:36].split(b"\0")[0].decode(errors="replace")


def _offloads(ask: Callable[[bytes], bytes | None]) -> Offloads:
    def on(command: int, bits: int = _ANY) -> bool | None:
        answer = ask(struct.pack("II", command, 0))
        return None if answer is None else bool(struct.unpack("II", answer)[1] & bits)

    return Offloads(
        tx_checksum=on(_GET_TX_CHECKSUM),
        tso=on(_GET_TSO),
        gro=on(_GET_GRO),
        tx_vlan=on(_GET_FLAGS, _TX_VLAN),
    )
