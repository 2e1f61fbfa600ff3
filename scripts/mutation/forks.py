"""Run work in a child process with a time limit."""

import contextlib
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from common.process import end_with_parent

TIMED_OUT = -1
BROKEN = 70
"""The work raised an exception."""
DATA_BYTES = 3 << 30
"""Memory limit of a mutant: an endless append must not exhaust the machine."""
CPU_FACTOR, CPU_SECONDS = 4.0, 5.0
WALL_FACTOR = 10.0
"""Processor time limits a mutant; the clock only ends one that waits on a busy machine."""


def run(work: Callable[[], int], seconds: float | None = None) -> tuple[int, float]:
    """Return a child's exit code, or TIMED_OUT, and the processor time that it took.

    Args:
        work: what the child does; it returns the exit code.
        seconds: its processor time without a mutation.
    """
    limit = None if seconds is None else seconds * CPU_FACTOR + CPU_SECONDS
    pid = os.fork()
    if pid == 0:
        _child(work, limit)
    with contextlib.closing(_Ended(pid)) as ended:
        in_time = ended.wait(None if limit is None else limit * WALL_FACTOR)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status) if in_time else TIMED_OUT
    return (code if code >= 0 else TIMED_OUT), used.ru_utime + used.ru_stime


class _Ended:
    """Wait for the end of a process, and keep its group addressable until it is reaped."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def wait(self, seconds: float | None) -> bool:
        return bool(select.select([self._descriptor], [], [], seconds)[0])

    def close(self) -> None:
        os.close(self._descriptor)


def _child(work: Callable[[], int], limit: float | None) -> NoReturn:
    code = BROKEN
    try:
        end_with_parent(signal.SIGKILL)
        os.setsid()
        if limit is not None:
            spent = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(spent + limit) + 1,) * 2)
            resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
        code = work()
    except BaseException:  # noqa: BLE001 nothing may go on as a second parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
