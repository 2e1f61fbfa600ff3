"""Stops one thread of another process by ptrace(2), where signals stop all of them. As root."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_ALL_THREADS = 0x40000000
"""waitpid(2), __WALL."""


def threads_named(process: int, word: str) -> set[int]:
    """Return the threads of a process that have a word in their names, but for its first."""
    tasks = Path(f"/proc/{process}/task")
    named = {int(one.name) for one in tasks.iterdir() if word in (one / "comm").read_text()}
    return named - {process}


@contextmanager
def stopped(thread: int) -> Iterator[None]:
    """Stop a thread; it may end meanwhile."""
    _ptrace(_SEIZE, thread)
    try:
        _ptrace(_INTERRUPT, thread)
        os.waitpid(thread, _ALL_THREADS)
        yield
    finally:
        with suppress(ProcessLookupError):
            _ptrace(_DETACH, thread)


def wait_for_end(thread: int) -> None:
    """Wait until a stopped thread is killed."""
    _, status = os.waitpid(thread, _ALL_THREADS)
    assert os.WIFSIGNALED(status) or os.WIFEXITED(status)


def _ptrace(request: int, thread: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(request, thread, None, None) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
