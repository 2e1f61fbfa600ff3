"""Replaces files atomically: at any time, and after a crash, one has its old or its new content."""

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, content: bytes, *, durable: bool = False, mode: int = 0o644) -> None:
    """Replace a file, or create it.

    The new content is written to NAME.PID.new in the same directory, without following a link
    that another user put there, and renamed (rename(2)).

    Args:
        path: the file; its directory exists.
        content: all of it.
        durable: whether it must survive a power failure: waits for the disk (fsync(2)).
        mode: of the file, before the umask.

    Raises:
        OSError: it cannot be written, and the old content stays; or the new one is in place, but
            may not survive a power failure.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        _create(new, content, durable=durable, mode=mode)
        new.replace(path)
        if durable:
            _sync_directory(path.parent)
    except OSError:
        with contextlib.suppress(OSError):  # the first error is the one to report
            new.unlink()
        raise


def _create(new: Path, content: bytes, *, durable: bool, mode: int) -> None:
    new.unlink(missing_ok=True)  # of an earlier process with this number
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(new, flags, mode), "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
