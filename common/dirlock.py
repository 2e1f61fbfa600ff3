"""A directory that belongs to one daemon at a time (flock(2))."""

import contextlib
import fcntl
import os
from pathlib import Path

from common.directories import open_directory, open_within
from common.errors import Busy

LOCK = "lock"
Identity = tuple[int, int]
"""Device and inode of a file."""


def hold(directory: Path, key: str) -> int:
    """Lock the directory until the descriptor is closed, which the kernel does when a daemon dies.

    Args:
        directory: created if it is missing.
        key: the key of the configuration that names it, for the message.

    Raises:
        Busy: another daemon holds it.
        OSError: the lock file cannot be created, or another user could replace it.
    """
    opened = open_directory(directory, mode=0o755)
    try:
        return hold_within(opened, directory, key)
    finally:
        os.close(opened)


def still_held(opened: int, lock: int) -> bool:
    """Whether a lock still belongs to the directory: `take_over` replaces it."""
    held = os.fstat(lock)
    # if it was removed, no other process took it
    return lock_of(opened) in {None, (held.st_dev, held.st_ino)}


def take_over(opened: int, directory: Path, found: Identity | None) -> int:
    """Take an open directory from a daemon that holds it without answering; else like `hold`.

    The daemon keeps its lock on a file that no longer belongs to the directory, and detects this.

    Args:
        opened: the directory.
        directory: its path, for messages.
        found: the busy lock, from `lock_of` before the attempt to lock it.

    Raises:
        Busy: another process has taken it over since, or does so at the same time.
        OSError: the lock file cannot be replaced.
    """
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one takeover at a time
    except BlockingIOError:
        raise Busy(f"{directory} is being taken over by another process") from None
    try:
        if lock_of(opened) != found:
            raise Busy(f"{directory} was taken over by another process just now")
        return _replaced(opened)
    finally:
        fcntl.flock(opened, fcntl.LOCK_UN)


def _replaced(opened: int) -> int:
    name = f"{LOCK}.{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=opened)  # left by a process that died here, with our number
    lock = open_within(opened, name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(name, LOCK, src_dir_fd=opened, dst_dir_fd=opened)
    except OSError:
        os.close(lock)
        raise
    return lock


def lock_of(opened: int) -> Identity | None:
    """Return the current lock file of an open directory, None if there is none."""
    try:
        found = os.stat(LOCK, dir_fd=opened, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def holders(directory: Path) -> list[int]:
    """Return the processes that hold a directory (/proc/locks, proc(5)); [] if not known."""
    try:
        wanted = (directory / LOCK).lstat()
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    place = f"{os.major(wanted.st_dev):02x}:{os.minor(wanted.st_dev):02x}:{wanted.st_ino}"
    fields = [line.split() for line in lines if " FLOCK " in line]
    return [int(each[4]) for each in fields if len(each) > 5 and each[5] == place]


def hold_within(opened: int, directory: Path, key: str) -> int:
    """Lock an open directory, like `hold`."""
    while True:
        lock = open_within(opened, LOCK, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            words = f"stop it, or give this one another {key}"
            raise Busy(f"{directory} is held by a running xtc daemon; {words}") from None
        if still_held(opened, lock):
            return lock
        os.close(lock)  # taken over between the two calls: ours is the previous lock
