"""Ties a process to the life of its parent."""

import ctypes
import os

_PR_SET_PDEATHSIG = 1


def end_with_parent(signal_number: int) -> None:
    """Have the kernel signal this process when the thread that started it ends (prctl(2)).

    A parent that ended before this call is not noticed: compare os.getppid() afterwards.

    Raises:
        OSError: the kernel refuses the signal.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal_number) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl: {os.strerror(code)}")
