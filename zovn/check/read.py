"""Reads the facts of an endpoint from the kernel, in this network namespace or a named one."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from pyroute2 import netns
from pyroute2.netlink.exceptions import NetlinkError

from zovn.check.counters import read_counters
from zovn.check.facts import Facts
from zovn.check.links import read_interfaces
from zovn.check.sockets import read_settings, read_sockets
from zovn.errors import CheckError

Result = TypeVar("Result")


def read_facts(namespace: str | None = None) -> Facts:
    """Return the facts of the current network namespace, or of one named by ip-netns(8).

    Raises:
        CheckError: there is no such namespace, it may not be entered, or the kernel refuses.
    """
    try:
        return _read() if namespace is None else _inside(namespace, _read)
    except (OSError, NetlinkError) as error:
        raise CheckError(namespace or "this namespace", str(error)) from error


def _read() -> Facts:
    return Facts(
        kernel=kernel_of(os.uname().release),
        interfaces=read_interfaces(),
        sockets=read_sockets(),
        settings=read_settings(),
        counters=read_counters(Path("/proc/thread-self/net")),
    )


def kernel_of(release: str) -> tuple[int, int]:
    """Return the two numbers with which a kernel's release begins; 0.0 for none."""
    major, _, rest = release.partition(".")
    minor = "".join(c if c.isdigit() else " " for c in rest).split(" ")[0]
    return (int(major), int(minor)) if major.isdigit() and minor else (0, 0)


def _inside(namespace: str, read: Callable[[], Result]) -> Result:
    """Read in a thread that has entered the namespace and ends then."""
    outcome: Future[Result] = Future()

    def work() -> None:
        try:
            netns.setns(namespace, flags=0)
            outcome.set_result(read())
        except BaseException as error:  # noqa: BLE001  carried to the caller, who raises it
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="zovn-check")
    thread.start()
    thread.join()
    return outcome.result()
