"""Runs functions in a network namespace, without moving the whole process there."""

import ctypes
import os
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

_CLONE_NEWNET: Final = 0x40000000
_SO_NETNS_COOKIE: Final = 71  # Linux 5.14; not in Python's socket module
_libc = ctypes.CDLL(None, use_errno=True)
_Result = TypeVar("_Result")


def in_namespace(path: str, work: Callable[[], _Result]) -> _Result:
    """Run the work in a new thread that has entered the namespace, and wait for it.

    The thread ends with the work, so that no other code runs in the wrong namespace (setns(2) moves
    one thread only).

    Raises:
        OSError: ENOENT, no such file; EINVAL, no network namespace; EPERM, no CAP_SYS_ADMIN.
    """
    outcome: Future[_Result] = Future()
    thread = threading.Thread(target=_run, args=(path, work, outcome), name="xtc-netns")
    thread.start()
    thread.join()
    return outcome.result()


def cookie() -> int:
    """Return the number of the calling thread's network namespace, which is never reused.

    Raises:
        OSError: ENOPROTOOPT on kernels before Linux 5.14.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return int(struct.unpack("Q", probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8))[0])


def _run(path: str, work: Callable[[], _Result], outcome: Future[_Result]) -> None:
    try:
        _enter(path)
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001  carried to the caller, who raises it
        outcome.set_exception(error)


def _enter(path: str) -> None:
    namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(namespace, _CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(namespace)
