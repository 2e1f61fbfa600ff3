"""Finds the kernel threads of each interface's NAPI, in the calling thread's namespace."""

import errno
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

_NAPI_GET: Final = 11  # NETDEV_CMD_NAPI_GET, linux/netdev.h
_THREAD_NAME = re.compile(r"napi/(?P<interface>.+)-(?P<id>\d+)")
_MISSING = (errno.ENOENT, errno.EOPNOTSUPP)  # no such family, no such command


class _NapiMessage(genlmsg):  # type: ignore[misc]  # pyroute2 ships no type information
    prefix = "NETDEV_A_NAPI_"
    nla_map = (
        ("NETDEV_A_NAPI_UNSPEC", "none"),
        ("NETDEV_A_NAPI_IFINDEX", "uint32"),
        ("NETDEV_A_NAPI_ID", "uint32"),
        ("NETDEV_A_NAPI_IRQ", "uint32"),
        ("NETDEV_A_NAPI_PID", "uint32"),
    )


def napi_threads(interfaces: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the threads of each interface (name to index), none where NAPI is not threaded.

    Uses netlink's netdev family (Linux 6.8); before that, the names of all kernel threads.

    Raises:
        OSError: ENOTUNIQ, this kernel identifies threads by interface names only, and two
            interfaces of this host have the same name.
    """
    try:
        return _from_netlink(interfaces)
    except NetlinkError as error:
        if error.code not in _MISSING:
            raise OSError(error.code, "netdev napi-get") from error
        return threads_by_name(interfaces, kernel_threads())


def threads_by_name(
    interfaces: Iterable[str], threads: Iterable[tuple[int, str]]
) -> dict[str, tuple[int, ...]]:
    """Select from (pid, name) the threads called ``napi/<interface>-<id>`` (net/core/dev.c).

    Raises:
        OSError: ENOTUNIQ, an interface has more than one: they may belong to another namespace.
    """
    found: dict[str, list[int]] = {interface: [] for interface in interfaces}
    for pid, name in threads:
        match = _THREAD_NAME.fullmatch(name)
        if match and match["interface"] in found:
            found[match["interface"]].append(pid)
    for interface, pids in found.items():
        if len(pids) > 1:
            raise OSError(errno.ENOTUNIQ, f"several threads are called napi/{interface}-*")
    return {interface: tuple(pids) for interface, pids in found.items()}


def kernel_threads() -> Iterator[tuple[int, str]]:
    """Yield pid and name of every process in /proc; those that end in between are ignored."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                yield int(entry.name), (entry / "comm").read_text().strip()
            except (FileNotFoundError, ProcessLookupError):
                continue


def _from_netlink(interfaces: dict[str, int]) -> dict[str, tuple[int, ...]]:
    names = {index: name for name, index in interfaces.items()}
    found: dict[str, list[int]] = {interface: [] for interface in interfaces}
    for message in _dump():
        name = names.get(message.get_attr("NETDEV_A_NAPI_IFINDEX"))
        pid = message.get_attr("NETDEV_A_NAPI_PID")
        if name is not None and pid:
            found[name].append(pid)
    return {interface: tuple(pids) for interface, pids in found.items()}


def _dump() -> list[_NapiMessage]:
    # pyroute2 makes one socket a thread: create, use and close it in this thread
    with GenericNetlinkSocket() as netlink:
        netlink.bind("netdev", _NapiMessage)
        request = _NapiMessage()
        request["cmd"], request["version"] = _NAPI_GET, 1
        flags = NLM_F_REQUEST | NLM_F_DUMP
        return list(netlink.nlm_request(request, msg_type=netlink.prid, msg_flags=flags))
