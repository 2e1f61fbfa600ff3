"""The sysfs of the calling thread's network namespace, without mounting it."""

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from xtc.kernel.files import KeptFile

_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same on every architecture
_FSOPEN_CLOEXEC: Final = 1
_FSCONFIG_CMD_CREATE: Final = 6
_FSMOUNT_CLOEXEC: Final = 1
_IFF_UP: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


class NetSysfs:
    """/sys/class/net of one namespace; a mounted sysfs shows only the namespace of its mounter."""

    def __init__(self, root: int) -> None:
        self._root = root

    def interfaces(self) -> frozenset[str]:
        """Return the names of the interfaces in the namespace."""
        directory = os.open("class/net", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._root)
        try:
            with os.scandir(directory) as entries:
                return frozenset(entry.name for entry in entries)
        finally:
            os.close(directory)

    def is_up(self, interface: str) -> bool:
        """Return whether the interface is administratively up."""
        return bool(int(self._open(interface, "flags").read(), 16) & _IFF_UP)

    def index(self, interface: str) -> int:
        """Return the interface's index."""
        return int(self._open(interface, "ifindex").read())

    def threaded(self, interface: str) -> bool:
        """Return whether the interface's NAPI runs in kernel threads."""
        return self._open(interface, "threaded").read().strip() != "0"

    def set_threaded(self, interface: str, threaded: bool) -> None:
        """Switch threaded NAPI (Linux 5.12, net/napi.rst), for existing and future NAPIs.

        Raises:
            OSError: EOPNOTSUPP, the interface has no NAPI; a veth has one while GRO is on and
                it is up.
        """
        self._open(interface, "threaded", writable=True).write("1" if threaded else "0")

    def _open(self, interface: str, name: str, *, writable: bool = False) -> KeptFile:
        return KeptFile(f"class/net/{interface}/{name}", directory=self._root, writable=writable)


@contextmanager
def namespace_sysfs() -> Iterator[NetSysfs]:
    """Open the sysfs of the calling thread's namespace: fsopen(2), Linux 5.2.

    Raises:
        OSError: EPERM, the thread lacks CAP_SYS_ADMIN.
    """
    context = _checked(_libc.syscall(_FSOPEN, b"sysfs", _FSOPEN_CLOEXEC))
    try:
        _checked(_libc.syscall(_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0))
        root = _checked(_libc.syscall(_FSMOUNT, context, _FSMOUNT_CLOEXEC, 0))
    finally:
        os.close(context)
    try:
        yield NetSysfs(root)
    finally:
        os.close(root)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno() or errno.EIO
        raise OSError(code, os.strerror(code), "sysfs")
    return result
