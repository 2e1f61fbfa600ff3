"""Leadership: one lock, and an epoch above all earlier ones, durable before it is given out.

The lock is released when its holder dies: the kernel releases flock(2), and PostgreSQL releases the
locks of a session that ended. An epoch is also never below the seconds since 1970. So a policer
with a lost or restored database still gives epochs above those that daemons remember.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import Connection, select, text

from common.file_lock import FileLock
from policer.errors import StoreBusy, StoreError, StoreGone
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.faults import mapped
from policer.store.database.records import Clock

_ADVISORY_KEY: Final = 0x7874635F6C656164
"""Of PostgreSQL's lock that the leader holds ("xtc_lead")."""
_ANSWER_S: Final = 0.5
"""How long SQLite may take to return the latest epoch, before the lock alone decides."""
_PATIENCE_S: Final = 1.0
"""How long a call waits for an unfinished call of another thread."""


class Holder(NamedTuple):
    """The last policer that took the lead."""

    name: str
    """"" if the lead was released, or never taken."""
    epoch: int


class Leadership(ABC):
    """Leadership of one policer; threads may share it, calls run one at a time."""

    def __init__(self, database: Database, holder: str, clock: Clock) -> None:
        self._database, self._name, self._clock = database, holder, clock
        self._epoch = 0
        self._since = 0
        self._mutex = threading.Lock()

    @property
    def since(self) -> int:
        """The epoch since which no other policer has led, as of the last lead taken."""
        return self._since

    def acquire(self, above: int = 0) -> int | None:
        """Return a new epoch if this policer leads now; None while another does.

        A policer that leads already gets another epoch.

        Args:
            above: an epoch that the new one must exceed.

        Raises:
            StoreError: the database did not answer, and this policer does not lead.
        """
        with self._alone():
            if not self._lock():
                return None
            try:
                last, epoch = self._new_epoch(above)
            except StoreError:
                self._unlock()
                raise
            if not self._since or last != self._epoch:
                self._since = epoch
            self._epoch = epoch
            return epoch

    def still(self) -> bool:
        """Whether this policer still leads; permanently False once its lock was lost.

        Raises:
            StoreBusy: the database did not answer in time.
        """
        with self._alone():
            held = self._held()
            if not held:
                self._unlock()
            return held

    def release(self) -> None:
        """Release the lead, if this policer has it; raises StoreError if that cannot be recorded.

        The lock is released in any case.
        """
        with self._alone():
            try:
                if self._held():
                    self._forget()
            finally:
                self._unlock()

    def holder(self) -> Holder:
        """Return the policer that took the lead last, dead or alive; raises StoreError."""
        table = tables.leadership
        with self._database.read() as connection:
            row = connection.execute(select(table.c.holder, table.c.epoch)).one()
        return Holder(row.holder, row.epoch)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._mutex.acquire(timeout=_PATIENCE_S):
            raise StoreBusy("the database has not answered the last question about the lead yet")
        try:
            yield
        finally:
            self._mutex.release()

    @abstractmethod
    def _lock(self) -> bool:
        """Take the lock, or keep it; False if another policer has it."""

    @abstractmethod
    def _held(self) -> bool:
        """Whether the lock is certainly held."""

    @abstractmethod
    def _unlock(self) -> None:
        """Release the lock, if it is held; never fails."""

    @abstractmethod
    def _new_epoch(self, above: int) -> tuple[int, int]:
        """Make a new epoch durable; return the previous one and the new one."""

    @abstractmethod
    def _forget(self) -> None:
        """Record that no policer leads."""

    def _raise_epoch(self, connection: Connection, above: int) -> tuple[int, int]:
        table = tables.leadership
        last = int(connection.execute(select(table.c.epoch).with_for_update()).scalar_one())
        epoch = max(last + 1, above + 1, int(self._clock().timestamp()))
        connection.execute(table.update().values(epoch=epoch, holder=self._name))
        return last, epoch

    def _clear_holder(self, connection: Connection) -> None:
        table = tables.leadership
        mine = table.update().where(table.c.epoch == self._epoch)
        connection.execute(mine.values(holder=""))


class FileLeadership(Leadership):
    """The lead by flock(2) on a file next to SQLite's: among the policers of one machine."""

    def __init__(self, database: Database, path: Path, holder: str, clock: Clock) -> None:
        super().__init__(database, holder, clock)
        self._file, self._path = path, path.with_name(path.name + ".lock")
        self._file_lock = FileLock(self._path, 0o600)
        self._stored = 0
        """The latest epoch in the database, by its last answer."""
        self._requester = threading.Thread()

    def _lock(self) -> bool:
        if not self._has_lock():
            self._check_name()
        with self._failing():
            return self._file_lock.take()

    def _check_name(self) -> None:
        """Refuse a database with several names, each of which would have its own lock."""
        try:
            names = self._file.stat().st_nlink
        except OSError as error:
            raise StoreGone(f"{self._file}: {error.strerror}") from error
        if names > 1:
            fix = "leave it one, so that all policers have one lock"
            raise StoreGone(f"{self._file} has {names} names, by hard links ({fix})")

    def _held(self) -> bool:
        """Whether the lock is held, and no later epoch was taken under another name of the file.

        The lock is the kernel's: a leader keeps it even if the disk hangs.
        """
        if not self._has_lock():
            return False
        if not self._requester.is_alive():
            self._requester = threading.Thread(target=self._ask, daemon=True)
            self._requester.start()
        self._requester.join(_ANSWER_S)
        return self._stored <= self._epoch

    def _ask(self) -> None:
        # All other readers of the database find and report its errors.
        with suppress(StoreError):
            self._stored = self.holder().epoch

    def _has_lock(self) -> bool:
        with self._failing():
            return self._file_lock.held()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreGone(f"{self._path}: {error.strerror}") from error

    def _unlock(self) -> None:
        self._file_lock.release()

    def _new_epoch(self, above: int) -> tuple[int, int]:
        with self._database.write() as connection:
            return self._raise_epoch(connection, above)

    def _forget(self) -> None:
        with self._database.write() as connection:
            self._clear_holder(connection)


class PostgresLeadership(Leadership):
    """The lead by an advisory lock of a session of its own: among policers anywhere."""

    def __init__(self, database: Database, holder: str, clock: Clock) -> None:
        super().__init__(database, holder, clock)
        self._engine = database.own_engine(_PATIENCE_S)
        self._connection: Connection | None = None

    def _lock(self) -> bool:
        if self._held():
            return True
        self._unlock()
        with mapped():
            self._connection = self._engine.connect()
        try:
            with mapped(), self._connection.begin():
                query = text("SELECT pg_try_advisory_lock(:key)")
                locked = self._connection.execute(query, {"key": _ADVISORY_KEY}).scalar_one()
        except StoreError:
            self._unlock()
            raise
        if not locked:
            self._unlock()
        return bool(locked)

    def _held(self) -> bool:
        """Query the lock's own session: as long as it answers, it has its locks."""
        if self._connection is None:
            return False
        table = tables.leadership
        try:
            with mapped(), self._connection.begin():
                epoch = self._connection.execute(select(table.c.epoch)).scalar_one()
        except StoreGone:
            return False
        return int(epoch) == self._epoch

    def _unlock(self) -> None:
        if self._connection is not None:
            # The session ends, and its locks with it; a lost session cannot be used.
            self._connection.invalidate()
            self._connection.close()
            self._connection = None

    def _new_epoch(self, above: int) -> tuple[int, int]:
        assert self._connection is not None
        with mapped(), self._connection.begin():
            return self._raise_epoch(self._connection, above)

    def _forget(self) -> None:
        assert self._connection is not None
        with mapped(), self._connection.begin():
            self._clear_holder(self._connection)
            unlock = text("SELECT pg_advisory_unlock(:key)")
            self._connection.execute(unlock, {"key": _ADVISORY_KEY})
