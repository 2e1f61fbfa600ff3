"""A directory that belongs to one daemon at a time (flock(2))."""

import fcntl
import os
from pathlib import Path

from xtc.directories import open_directory, open_within
from xtc.errors import Busy

LOCK = "lock"


def hold(directory: Path, key: str) -> int:
    """Take the directory until the descriptor is closed, as the kernel does when a daemon dies.

    Args:
        directory: made where it is missing.
        key: the key of the configuration that names it, for the message.

    Raises:
        Busy: another daemon holds it.
        OSError: the lock file cannot be made, or another user could replace it.
    """
    opened = open_directory(directory, mode=0o755)
    try:
        return hold_within(opened, directory, key)
    finally:
        os.close(opened)


def hold_within(opened: int, directory: Path, key: str) -> int:
    """Take a directory that is open; as `hold` does."""
    lock = open_within(opened, LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Busy(
            f"{directory} is held by a running xtc daemon; stop it, or give this one another {key}"
        ) from None
    return lock
