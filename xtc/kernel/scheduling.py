"""sched_setattr(2) and sched_getattr(2), which neither Python nor older C libraries wrap."""

import ctypes
import errno
import os
import platform
from typing import Final

from xtc.spec import ThreadPolicy

SCHED_OTHER: Final = 0
SCHED_DEADLINE: Final = 6
MIN_RUNTIME_NS: Final = 1024
"""The kernel's smallest runtime of a deadline thread (Linux, sched-deadline.rst)."""

_CALLS = {  # (sched_setattr, sched_getattr)
    "x86_64": (314, 315),
    "aarch64": (274, 275),
    "riscv64": (274, 275),
    "ppc64le": (355, 356),
    "s390x": (345, 346),
}
_libc = ctypes.CDLL(None, use_errno=True)


class _SchedAttr(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("sched_policy", ctypes.c_uint32),
        ("sched_flags", ctypes.c_uint64),
        ("sched_nice", ctypes.c_int32),
        ("sched_priority", ctypes.c_uint32),
        ("sched_runtime", ctypes.c_uint64),
        ("sched_deadline", ctypes.c_uint64),
        ("sched_period", ctypes.c_uint64),
    )


def get_policy(tid: int) -> ThreadPolicy:
    """Return a thread's scheduling policy; 0 is the calling thread.

    Raises:
        OSError: ESRCH, there is no such thread; ENOSYS, unknown machine architecture.
    """
    attr = _SchedAttr()
    _call(1, tid, ctypes.byref(attr), ctypes.sizeof(attr), 0)
    return ThreadPolicy(
        policy=attr.sched_policy,
        nice=attr.sched_nice,
        priority=attr.sched_priority,
        runtime_ns=attr.sched_runtime,
        deadline_ns=attr.sched_deadline,
        period_ns=attr.sched_period,
    )


def set_policy(tid: int, policy: ThreadPolicy) -> None:
    """Give a thread a scheduling policy; 0 is the calling thread.

    Raises:
        OSError: ESRCH, no such thread; EPERM, no privilege or the thread is pinned; EBUSY, no CPU
            time left to reserve; EINVAL, a policy out of range.
    """
    deadline = policy.policy == SCHED_DEADLINE
    attr = _SchedAttr(
        size=ctypes.sizeof(_SchedAttr),
        sched_policy=policy.policy,
        sched_nice=policy.nice,
        sched_priority=policy.priority,
        # sched_getattr(2) reports a slice as the runtime of an ordinary thread: do not set it
        sched_runtime=policy.runtime_ns if deadline else 0,
        sched_deadline=policy.deadline_ns if deadline else 0,
        sched_period=policy.period_ns if deadline else 0,
    )
    _call(0, tid, ctypes.byref(attr), 0)


def deadline_policy(runtime_ns: int, period_ns: int) -> ThreadPolicy:
    """Return SCHED_DEADLINE with the deadline at the end of the period."""
    return ThreadPolicy(
        policy=SCHED_DEADLINE,
        nice=0,
        priority=0,
        runtime_ns=runtime_ns,
        deadline_ns=period_ns,
        period_ns=period_ns,
    )


def _call(which: int, *arguments: object) -> None:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        raise OSError(errno.ENOSYS, f"sched_setattr is not known on {platform.machine()}")
    if _libc.syscall(numbers[which], *arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
