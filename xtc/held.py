"""A directory that belongs to one daemon at a time (flock(2))."""

import fcntl
import os
from pathlib import Path

from xtc.errors import Busy


def hold(directory: Path, key: str) -> int:
    """Take the directory until the descriptor is closed, as the kernel does when a daemon dies.

    Args:
        directory: must exist.
        key: the key of the configuration that names it, for the message.

    Raises:
        Busy: another daemon holds it.
        OSError: the lock file cannot be made.
    """
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Busy(
            f"{directory} is held by a running xtc daemon; stop it, or give this one another {key}"
        ) from None
    return lock
