"""The store on SQLite and on PostgreSQL, for tests that run the same on both.

For tests that say `pytest_plugins = ["store_rig"]`.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from support.stores import hurried, with_tables

from policer.store import Store, open_store

if TYPE_CHECKING:
    from benchmarks.policer.postgres import PostgresServer

pytest_plugins = ["postgres_rig"]

BEGINNING = datetime(2026, 3, 1, 12, tzinfo=UTC)
BUSY_S = 0.3


class FakeTime:
    """A time of day that stands until it is moved."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)


class Backend:
    """One test's database: opened as often as the test likes, and looked into from beside."""

    def __init__(self, url: str, connect: Callable[[], Any], stack: ExitStack) -> None:
        self.url, self._connect, self._stack = url, connect, stack
        self.is_sqlite = url.startswith("sqlite")
        self.clock = FakeTime()

    @property
    def path(self) -> Path:
        """The file of SQLite."""
        return Path(self.url.removeprefix("sqlite:///"))

    def open(self, **options: Any) -> Store:
        """Open the database, as one policer does; it is closed with the test."""
        store = open_store(self.url, **{"busy_s": BUSY_S, "clock": self.clock, **options})
        self._stack.callback(store.close)
        return store

    def aside(self) -> Any:
        """Return another program's connection; each of its statements is a transaction."""
        connection = self._connect()
        self._stack.callback(connection.close)
        return connection

    def everything(self) -> bytes:
        """Return all that is stored, as bytes: SQLite's files, or PostgreSQL's tables as text."""
        if self.is_sqlite:
            files = self.path.parent.glob(f"{self.path.name}*")
            return b"".join(file.read_bytes() for file in sorted(files))
        aside = self.aside()
        names = aside.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [aside.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names.fetchall()]
        return repr(rows).encode()


@pytest.fixture(scope="session")
def postgres_tables(postgres: "PostgresServer") -> Iterator[str]:
    """The URL of a database with the store's tables, to be copied: Alembic takes long."""
    with postgres.database() as url:
        open_store(url).close()
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.external)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """An empty database of each kind."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            path = tmp_path / "policer.db"
            yield Backend(f"sqlite:///{path}", lambda: _sqlite(path), stack)
        else:
            server = request.getfixturevalue("postgres")
            filled = "tables" in request.fixturenames
            like = request.getfixturevalue("postgres_tables") if filled else None
            url = stack.enter_context(server.database(like))
            stack.enter_context(_time_to_connect())
            yield Backend(url, lambda: psycopg.connect(url, autocommit=True), stack)


@pytest.fixture
def tables(backend: Backend) -> Backend:
    """A database of each kind that has the store's tables, with nothing in them."""
    if backend.is_sqlite:
        with_tables(backend.path)
    return backend


@pytest.fixture
def store(tables: Backend) -> Store:
    """A store on an empty database of each kind."""
    return hurried(tables.open())


@contextmanager
def _time_to_connect() -> Iterator[None]:
    """Give connections a minute: a store takes BUSY_S for them, too, and no server here hangs."""
    event.listen(PGDialect_psycopg, "do_connect", _wait_long)
    try:
        yield
    finally:
        event.remove(PGDialect_psycopg, "do_connect", _wait_long)


def _wait_long(_dialect: object, _record: object, _words: object, options: dict[str, Any]) -> None:
    options["connect_timeout"] = 60


def _sqlite(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
