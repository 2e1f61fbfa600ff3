"""One database: reads and writes as transactions, on SQLite and PostgreSQL.

SQLite: write-ahead log, so that readers never wait; a writer takes the lock when it begins (BEGIN
IMMEDIATE), not half-way, where it could not wait for it. PostgreSQL: bounded waits, and what was
committed is on disk, whatever the server's default.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from policer.errors import SettingsError, StoreGone
from policer.store.database.faults import mapped

_SAFE_OPTIONS = (
    "-c synchronous_commit=on -c timezone=UTC -c idle_in_transaction_session_timeout=30000"
    # The server drops a client whose machine died within seconds, and with it the leader's lock.
    " -c tcp_keepalives_idle=2 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3"
    " -c tcp_user_timeout=5000"
)
_KEEPALIVE = {
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}

_HUNG_S = 30.0
"""A statement that takes this long, without waiting for a lock, will not return."""


class Database:
    """A database that is reached by its URL."""

    def __init__(self, url: str, busy_s: float, *, create: bool) -> None:
        """Find the database.

        Args:
            url: sqlite:////path or postgresql://user:password@host/name.
            busy_s: how long to wait for locks and connections, seconds.
            create: whether an SQLite file may be made.

        Raises:
            SettingsError: the URL is of neither kind, or its driver is not installed.
            StoreGone: there is no such file, or it cannot be opened.
        """
        parsed = _parsed(url)
        self._url = parsed
        self.path: Path | None = None
        """SQLite's file; None on PostgreSQL."""
        self._inode = (0, 0)
        if parsed.get_backend_name() == "sqlite":
            self.path = Path(str(parsed.database)).resolve()  # each file has one lock next to it
            self._inode = _inode_of(self.path, create=create)
            self._engine = _sqlite_engine(self.path, busy_s)
        else:
            self._engine = _postgresql_engine(
                parsed, busy_s, _HUNG_S, pool_timeout=busy_s, pool_pre_ping=True
            )

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read within one transaction; raises what `faults.mapped` raises."""
        with self._begun(writes=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Change things in one transaction, all or nothing; raises what `faults.mapped` raises."""
        with self._begun(writes=True) as connection:
            yield connection

    def insert(self, table: Table) -> "postgresql.Insert | sqlite.Insert":
        """Return an INSERT that can handle an existing row."""
        return sqlite.insert(table) if self.path else postgresql.insert(table)

    def own_engine(self, wait_s: float) -> Engine:
        """Return an engine for one exclusive connection, with its own timeout."""
        return _postgresql_engine(self._url, wait_s, 2 * wait_s, poolclass=NullPool)

    def copy_to(self, target: Path) -> None:
        """Copy SQLite's database as of one instant; raises what `faults.mapped` raises."""
        self._verify_file()
        with mapped(), self._engine.connect() as connection:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            with closing(sqlite3.connect(target)) as copy:
                source.backup(copy)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._engine.dispose()

    @contextmanager
    def _begun(self, *, writes: bool) -> Iterator[Connection]:
        self._verify_file()
        with mapped(), self._engine.connect() as connection:
            connection.execution_options(writes=writes)
            with connection.begin():
                yield connection

    def _verify_file(self) -> None:
        """Check that the opened file still exists: writes to a removed one are lost."""
        if self.path is not None and _inode_of(self.path, create=False) != self._inode:
            raise StoreGone(f"{self.path} was replaced while it was open (restart the policer)")


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Without the text, which may hold a password.
        raise _unusable("it is no URL") from None
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:" or parsed.query:
            raise _unusable("SQLite takes the path of a file and nothing else")
        return parsed
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise _unusable(f"{parsed.get_backend_name()} is not supported")
    return parsed.set(drivername="postgresql+psycopg")


def _unusable(problem: str) -> SettingsError:
    fix = "give sqlite:////path/to/file or postgresql://user:password@host/name"
    return SettingsError("store.url", problem, fix)


def _inode_of(path: Path, *, create: bool) -> tuple[int, int]:
    """Return the identity of a file; create it, accessible only to its owner, if permitted."""
    try:
        if create:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        status = path.stat()
    except OSError as error:
        fix = " (`policer config check` says why)" if isinstance(error, PermissionError) else ""
        raise StoreGone(f"{path}: {error.strerror}{fix}") from error
    return status.st_dev, status.st_ino


def _sqlite_engine(path: Path, busy_s: float) -> Engine:
    def connect() -> sqlite3.Connection:
        # mode=rw: a file that is gone is an error, not an empty database.
        where = f"file:{quote(str(path))}?mode=rw"
        connection = sqlite3.connect(
            where, timeout=busy_s, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}").close()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        creator=connect,
        pool_timeout=busy_s,
        hide_parameters=True,
    )
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """Begin the transaction explicitly; Python's own driver begins late, and never for a read."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgresql_engine(url: URL, busy_s: float, hung_s: float, **pool: Any) -> Engine:
    waits = f"-c lock_timeout={int(1000 * busy_s)} -c statement_timeout={int(1000 * hung_s)}"
    connect = {
        "connect_timeout": max(2, int(busy_s)),
        "options": f"{_SAFE_OPTIONS} {waits}",
        **_KEEPALIVE,
    }
    try:
        return create_engine(url, connect_args=connect, hide_parameters=True, **pool)
    except ImportError as error:
        fix = "pip install 'xtc[postgresql]'"
        raise SettingsError("store.url", f"PostgreSQL's driver is missing: {error}", fix) from error
