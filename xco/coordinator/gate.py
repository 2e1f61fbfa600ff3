"""Gates of an interface: whether it can be gated, whether it is, and how to remove them.

The compiled coordinator creates, opens and closes the gates itself (xco/core/qdisc/gate.h). This is
what an operator needs without it: a check before the start, and the removal of what a killed
coordinator left.
"""

import ctypes
import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import TC_H_ROOT

from xco.errors import Denied, GateError, Gone, Unsupported

ROOT: Final = 0x7C01_0000
"""The handle ``7c01:``, which identifies our root."""
NEEDED: Final = ("htb", "tbf", "bfifo", "u32")
"""What the kernel must support for token-bucket gates: qdiscs, and the filter."""
NEEDED_BY_EDT: Final = ("fq",)
"""What it must support for departure-time gates; mq is always available."""
_KINDS: Final = frozenset({"htb", "mq", "fq"})
"""Kinds that our root can have."""
_FILTERS: Final = frozenset({"u32"})
_CLONE_NEWNET: Final = 0x4000_0000
_ETH_P_ALL: Final = 3
Result = TypeVar("Result")


def check(interface: str, needed: Sequence[str] = NEEDED) -> None:
    """Check that an interface can be gated, without touching its traffic.

    Raises:
        Gone: there is no such interface.
        GateError: another program's root qdisc is installed.
        Denied: CAP_NET_ADMIN is lacking.
        Unsupported: the kernel lacks a required feature; the message names it.
    """
    with _netlink(interface) as route:
        root = _root(route, _index(route, interface))
    if root is not None and root["handle"] not in {0, ROOT}:
        kind, number = root.get_attr("TCA_KIND"), root["handle"] >> 16
        fix = f"remove it: tc qdisc del dev {interface} root"
        raise GateError(
            interface, f"its root qdisc {kind} {number:x}: belongs to another program", fix
        )
    if missing := lacking(needed):
        fix = f"load what has it: modprobe {' '.join(map(_module, missing))}"
        raise Unsupported(interface, f"the kernel lacks {', '.join(missing)}", fix)


def gated(interface: str) -> bool:
    """Whether our root is installed on an interface.

    Raises:
        Gone: there is no such interface.
        GateError: the kernel does not answer.
    """
    with _netlink(interface) as route:
        root = _root(route, _index(route, interface))
    return _is_ours(root)


def release(interface: str) -> bool:
    """Remove our tree from an interface, which restores the kernel's default.

    Returns whether there was one; False if the interface no longer exists.

    Raises:
        Denied: CAP_NET_ADMIN is lacking.
        GateError: the kernel refuses.
    """
    try:
        with _netlink(interface) as route:
            index = _index(route, interface)
            if not _is_ours(_root(route, index)):
                return False
            route.tc("del", index=index, handle=ROOT, parent=TC_H_ROOT)
    except Gone:
        return False
    return True


def lacking(kinds: Sequence[str]) -> list[str]:
    """Return which of these qdiscs and filters the kernel does not have.

    Each is tried on the loopback interface of a temporary network namespace; the host is not
    affected.

    Raises:
        Denied: CAP_SYS_ADMIN is lacking.
        GateError: the kernel refuses for another reason.
    """
    return _in_new_namespace(lambda: [kind for kind in kinds if not _has(kind)])


def _has(kind: str) -> bool:
    """Whether the kernel supports a kind; run it in a network namespace of its own."""
    with _netlink(kind) as route:
        index = _index(route, "lo")
        request: dict[str, Any] = {"index": index, "handle": ROOT}
        try:
            if kind in _FILTERS:
                route.tc("add", "htb", default=0, **request)
                keys = ["0x0/0x0+0"]
                target = {"parent": ROOT, "target": ROOT | 1, "protocol": _ETH_P_ALL, "prio": 1}
                route.tc("add-filter", kind, index=index, keys=keys, **target)
            else:
                route.tc("add", kind, **request, **_OPTIONS.get(kind, {}))
            route.tc("del", index=index, handle=ROOT, parent=TC_H_ROOT)
        except NetlinkError as error:
            if error.code in {errno.ENOENT, errno.EOPNOTSUPP}:
                return False
            raise
    return True


_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "htb": {"default": 0},
    "tbf": {"rate": "1mbit", "burst": 3000, "limit": 9000},
}


def _module(kind: str) -> str:
    return ("cls_" if kind in _FILTERS else "sch_") + kind.replace("bfifo", "fifo")


def _index(route: IPRoute, interface: str) -> int:
    if found := route.link_lookup(ifname=interface):
        return int(found[0])
    raise Gone(interface, "there is no such interface", "name another with coordinator.interface")


def _root(route: IPRoute, index: int) -> Any | None:
    qdiscs = route.get_qdiscs(index=index)
    return next((qdisc for qdisc in qdiscs if qdisc["parent"] == TC_H_ROOT), None)


def _is_ours(root: Any | None) -> bool:
    return root is not None and root["handle"] == ROOT and root.get_attr("TCA_KIND") in _KINDS


@contextmanager
def _netlink(target: str) -> Iterator[IPRoute]:
    try:
        with IPRoute() as route:
            yield route
    except NetlinkError as error:
        raise explain(target, error.code) from error
    except OSError as error:
        raise explain(target, error.errno or errno.EIO) from error


def explain(target: str, code: int) -> GateError:
    """Return what the kernel's error means for a gate, and what to do about it."""
    match code:
        case errno.ENODEV:
            return Gone(target, "the interface does not exist")
        case errno.EPERM | errno.EACCES:
            fix = "give it CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN"
            return Denied(target, "its queues may not be set", fix)
        case errno.ENOENT | errno.EOPNOTSUPP:
            return Unsupported(
                target, "the kernel lacks a qdisc or filter", "see xco/coordinator/gate.py"
            )
        case _:
            return GateError(target, os.strerror(code))


def _in_new_namespace(function: Callable[[], Result]) -> Result:
    """Run a function in a thread with a network namespace of its own (unshare(2))."""
    results: list[Result] = []
    errors: list[GateError] = []

    def work() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            if libc.unshare(_CLONE_NEWNET) != 0:
                raise explain("unshare", ctypes.get_errno())
            results.append(function())
        except GateError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
