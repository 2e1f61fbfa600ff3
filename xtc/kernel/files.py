"""Small kernel files kept open: read and written as a whole, without a path look-up."""

import os
from pathlib import Path

_USUAL = 4_096  # more than every counter and parameter read here; a larger buffer costs time


def lines_of(path: Path) -> list[str]:
    """Return the lines of a small kernel file, which may contain names chosen by tenants.

    Splits only at line feeds, the only byte that the kernel allows in no name; invalid UTF-8 is
    decoded as by `os.fsdecode`. Raises the kernel's OSError.
    """
    return [os.fsdecode(line) for line in path.read_bytes().split(b"\n") if line]


class KeptFile:
    """One file of cgroupfs, procfs or sysfs, closed with its last reference.

    An open file belongs to the object it was opened for: after its removal, reading fails (ENODEV,
    ESRCH), even if a new object has the same name.
    """

    __slots__ = ("_fd",)

    def __init__(self, path: str, *, directory: int | None = None, writable: bool = False) -> None:
        self._fd = -1  # for __del__ if open fails
        mode = os.O_RDWR if writable else os.O_RDONLY
        self._fd = os.open(path, mode | os.O_CLOEXEC, dir_fd=directory)

    def read(self, largest: int = _USUAL) -> str:
        """Return at most this many bytes of the content. Raises the kernel's OSError."""
        return os.pread(self._fd, largest, 0).decode()

    def write(self, value: str) -> None:
        """Write the content in one system call. Raises the kernel's OSError."""
        os.pwrite(self._fd, value.encode(), 0)

    def close(self) -> None:
        """Close the file; later calls do nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()
