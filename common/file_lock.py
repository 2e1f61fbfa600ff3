"""A lock on a file (flock(2)), which the kernel releases when its holder dies."""

import fcntl
import os
from pathlib import Path


class FileLock:
    """A lock that is worth something only on the file that others would lock, too."""

    def __init__(self, path: Path, mode: int = 0o644) -> None:
        """Lock the file at a path, which is created with this mode where it is missing."""
        self._path, self._mode = path, mode
        self._descriptor = -1

    def take(self) -> bool:
        """Take the lock, or keep it; return False if another holder has it.

        Raises:
            OSError: the file cannot be created or locked.
        """
        if self.held():
            return True
        self.release()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, self._mode)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
        except OSError:
            self.release()
            raise
        return self.held()  # not if the file was removed meanwhile: others create a new one

    def held(self) -> bool:
        """Whether the lock is held, and its file is still the one at the path.

        Raises:
            OSError: the path cannot be looked at.
        """
        if self._descriptor < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
