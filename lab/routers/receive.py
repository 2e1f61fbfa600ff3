"""Moves the receive path of an interface into a kernel thread, and pins it to a CPU.

Receiving a packet is more than taking it from the interface: the same thread also does all further
processing, until the next interface or a socket gets it (networking/napi.rst, threaded NAPI). A
veth has a NAPI only while receive offload is on. That would also join the segments of a flow; a
maximum joined size of one byte keeps packets separate.
"""

import ctypes
import os
from pathlib import Path
from typing import Any, Final

from pyroute2 import Ethtool, IPRoute
from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

from lab.errors import LabError
from lab.system import namespaces
from lab.system.links import OFFLOADS, index_of

RECEIVE_OFFLOAD: Final = OFFLOADS[0]
_NAPI_GET: Final = 11  # NETDEV_CMD_NAPI_GET, linux/netdev.h
_CLONE_NEWNS: Final = 0x20000
_MS_REC_PRIVATE: Final = 0x4000 | 0x40000


def on_cpu(netns: str, interface: str, cpu: int | None) -> int:
    """Process all packets that an interface receives in a kernel thread; return its pid.

    Args:
        netns: the name of the interface's namespace.
        interface: a veth that is up, as is its other end.
        cpu: where the thread is pinned; None lets the kernel choose.

    Raises:
        LabError: the kernel has no threaded NAPI (Linux 5.12) or does not report its threads (6.8).
    """
    try:
        pid = namespaces.inside(netns, lambda: _to_thread(interface))
    except (OSError, NetlinkError) as error:
        raise LabError(f"{interface}: its receiving cannot be given a thread: {error}") from error
    if cpu is not None:
        os.sched_setaffinity(pid, {cpu})
    return pid


def _to_thread(interface: str) -> int:
    """Work in a new thread that has entered the namespace, and ends with the work."""
    with IPRoute() as ip:
        index = index_of(ip, interface)
        ip.link("set", index=index, gro_max_size=1)
    with Ethtool() as ethtool:
        ethtool.set_offload_flag(interface, RECEIVE_OFFLOAD, 1)
    _mount_own_sysfs()
    Path("/sys/class/net", interface, "threaded").write_text("1")
    return _thread_of(index)


def _mount_own_sysfs() -> None:
    """Mount a private /sys for the calling thread: a mount shows its mounter's namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    _succeed(libc.unshare(_CLONE_NEWNS))
    _succeed(libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None))
    _succeed(libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))


def _succeed(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "/sys")


def _thread_of(index: int) -> int:
    for message in _napis():
        pid = message.get_attr("NETDEV_A_NAPI_PID")
        if message.get_attr("NETDEV_A_NAPI_IFINDEX") == index and pid:
            return int(pid)
    raise OSError("the kernel reports no thread for it")


class _NapiMessage(genlmsg):  # type: ignore[misc]  # pyroute2 ships no type information
    prefix = "NETDEV_A_NAPI_"
    nla_map = (
        ("NETDEV_A_NAPI_UNSPEC", "none"),
        ("NETDEV_A_NAPI_IFINDEX", "uint32"),
        ("NETDEV_A_NAPI_ID", "uint32"),
        ("NETDEV_A_NAPI_IRQ", "uint32"),
        ("NETDEV_A_NAPI_PID", "uint32"),
    )


def _napis() -> list[Any]:
    """Return the NAPI instances of the calling thread's namespace (netlink's netdev family)."""
    with GenericNetlinkSocket() as netlink:
        netlink.bind("netdev", _NapiMessage)
        request = _NapiMessage()
        request["cmd"], request["version"] = _NAPI_GET, 1
        flags = NLM_F_REQUEST | NLM_F_DUMP
        return list(netlink.nlm_request(request, msg_type=netlink.prid, msg_flags=flags))
