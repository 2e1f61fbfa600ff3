"""The leader's lease on a file; persists a strictly increasing epoch before using it.

The lease ends when its holder dies, without a time-out to tune: the kernel releases flock(2), and
PostgreSQL releases the locks of a session that ended. An epoch is never below the nanoseconds since
1970. So a controller that lost its directory still gives epochs above those that hosts remember,
and two controllers that wrongly have a lease each give different ones.
"""

import time
from pathlib import Path

from common.durable import replace_file
from common.file_lock import FileLock
from xco.errors import ControllerError
from xco.leader.base import Clock, Lease, next_epoch


class FileLease:
    """A lease for controllers that share one directory: a locked file, and the epoch next to it.

    The directory must be on one machine, or on a file system whose flock(2) reaches all of them.
    """

    def __init__(self, directory: Path, clock: Clock = time.time_ns) -> None:
        self._directory, self._clock = directory, clock
        self._lock, self._epoch_path = FileLock(directory / "lease"), directory / "epoch"

    def acquire(self, above: int = 0) -> int | None:
        """Return a new epoch, or None; see `Lease`."""
        try:
            self._directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            if not self._lock.take():
                return None
            return self._new_epoch(above)
        except OSError as error:
            self.release()
            fix = "give the controller a lease directory that it may write to"
            problem = error.strerror or str(error)
            raise ControllerError(str(self._directory), problem, fix) from error

    def still(self) -> bool:
        """Whether the lock is held, and is on the file that others would try to lock."""
        try:
            return self._lock.held()
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def _new_epoch(self, above: int) -> int:
        epoch = next_epoch(self._clock(), self._last_epoch(), above)
        replace_file(self._epoch_path, f"{epoch}\n".encode(), durable=True)
        return epoch

    def _last_epoch(self) -> int:
        """Return the last epoch given; 0 if it cannot be read."""
        try:
            text = self._epoch_path.read_text().strip()
        except FileNotFoundError:
            return 0
        return int(text) if text.isdecimal() and len(text) < 20 else 0


def make_lease(where: str, holder: str) -> Lease:
    """Return the lease that a setting names: a directory, or a PostgreSQL URL.

    Raises:
        ControllerError: a URL without the libraries for it, or of another database.
    """
    if "://" not in where:
        return FileLease(Path(where))
    try:
        from xco.leader.postgres import PostgresLease  # noqa: PLC0415  an extra: only for a URL
    except ImportError as error:
        fix = "install SQLAlchemy and psycopg, or name a directory"
        raise ControllerError("lease", f"{error.name} is not installed", fix) from error
    return PostgresLease(where, holder)
