"""Small kernel files kept open: read and written whole, at offset 0, without a path look-up."""

import os
from pathlib import Path

_USUAL = 4_096  # beyond every counter and parameter read here; a larger buffer costs time


def lines_of(path: Path) -> list[str]:
    """Return the lines of a small file of the kernel, which tenants may have named things in.

    Cut at line feeds alone, the one byte that the kernel lets no name hold; bytes that are no
    UTF-8 survive as `os.fsdecode` has them. Raises OSError as the kernel gives it.
    """
    return [os.fsdecode(line) for line in path.read_bytes().split(b"\n") if line]


class KeptFile:
    """One file of cgroupfs, procfs or sysfs, closed with its last reference.

    An open file stays with the object it was opened for: when that is removed, reading fails
    (ENODEV, ESRCH), even where a new object has taken the name.
    """

    __slots__ = ("_fd",)

    def __init__(self, path: str, *, directory: int | None = None, writable: bool = False) -> None:
        self._fd = -1  # so that __del__ finds it where open fails
        mode = os.O_RDWR if writable else os.O_RDONLY
        self._fd = os.open(path, mode | os.O_CLOEXEC, dir_fd=directory)

    def read(self, largest: int = _USUAL) -> str:
        """Return at most so many bytes of the content. Raises OSError as the kernel gives it."""
        return os.pread(self._fd, largest, 0).decode()

    def write(self, value: str) -> None:
        """Write the content in one system call. Raises OSError as the kernel gives it."""
        os.pwrite(self._fd, value.encode(), 0)

    def close(self) -> None:
        """Close the file; once closed it stays closed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()
