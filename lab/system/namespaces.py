"""Network namespaces: create, find, enter and remove them.

Everything runs in threads of this process that enter the namespace. pyroute2's own way, a forked
child ended by SIGTERM, runs this process's signal handlers in that child.
"""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pyroute2 import IPRoute, netns

from lab.system.launch import enter_netns

RUN: Final = Path("/run/netns")
Result = TypeVar("Result")


def path(name: str) -> str:
    """Return the path of a named namespace (ip-netns(8))."""
    return str(RUN / name)


def create(name: str) -> None:
    """Create a named namespace with IPv6 off and the loopback interface still down."""
    inside_new(lambda: netns.attach(name, f"self/task/{threading.get_native_id()}"))
    write_sysctls(name, {"ipv6/conf/all/disable_ipv6": 1, "ipv6/conf/default/disable_ipv6": 1})


def remove(name: str) -> None:
    """Remove a named namespace, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        netns.remove(name)


class Handle:
    """Keeps a namespace open, to distinguish it from a later one of the same name."""

    def __init__(self, name: str) -> None:
        """Open the namespace that has the name now."""
        self._path = path(name)
        self._descriptor = os.open(self._path, os.O_RDONLY)

    def current(self) -> bool:
        """Whether the name still denotes this namespace."""
        try:
            return Path(self._path).samefile(f"/proc/self/fd/{self._descriptor}")
        except FileNotFoundError:
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def named(prefix: str) -> list[str]:
    """Return the namespaces of a lab, in order."""
    return sorted(entry.name for entry in RUN.glob(f"{prefix}-*"))


def inside(name: str, function: Callable[[], Result]) -> Result:
    """Run the function in a named namespace and return its result.

    A new thread enters the namespace, so that the caller's stays the same.

    Raises:
        OSError: there is no such namespace; other errors come from the function.
    """
    return _in_thread(lambda: enter_netns(path(name)), function)


def inside_new(function: Callable[[], Result]) -> Result:
    """Run the function in a nameless namespace that ends with it (unshare(2)).

    Raises:
        OSError: the caller lacks CAP_SYS_ADMIN; other errors come from the function.
    """
    return _in_thread(_unshare, function)


def _unshare() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")


def _in_thread(enter: Callable[[], None], function: Callable[[], Result]) -> Result:
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            enter()
            results.append(function())
        except BaseException as error:  # noqa: BLE001  carried over to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def configure(name: str, work: Callable[[Any], Result]) -> Result:
    """Call ``work`` with a netlink socket of the named namespace and return its result.

    Raises:
        NetlinkError: the kernel refuses.
    """

    def run() -> Result:
        with IPRoute() as ip:
            return work(ip)

    return inside(name, run)


def write_sysctls(name: str, values: dict[str, int]) -> None:
    """Set values below /proc/sys/net of the namespace; those that the kernel lacks are skipped."""

    def write() -> None:
        for key, value in values.items():
            with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
                Path("/proc/sys/net", key).write_text(str(value))

    inside(name, write)


def interfaces(name: str) -> list[str]:
    """Return the names of a namespace's interfaces, without the loopback."""

    def read() -> list[str]:
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
        return [line.split(":")[0].strip() for line in lines]

    return sorted(entry for entry in inside(name, read) if entry != "lo")
