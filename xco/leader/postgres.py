"""A lease in PostgreSQL: a session's advisory lock, and the epoch in a table of one row.

Every query has a deadline on the client's side: a server or a network that falls silent must not
keep a controller from noticing that it no longer leads.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from xco.errors import ControllerError
from xco.leader.base import EPOCH_AHEAD_NS, Clock, next_epoch

T = TypeVar("T")

KEY: Final = 0x78636F5F6C656164
"""Key of the advisory lock ("xco_lead")."""
PATIENCE_MS: Final = 1000
"""How long one statement may take before the lease counts as lost."""
CONNECT_S: Final = 3
"""Time limit for connecting."""

_LOCK: Final = text("SELECT pg_try_advisory_lock(:key)")
_HELD: Final = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND pid = pg_backend_pid() AND objsubid = 1"
    " AND (classid::bigint << 32 | objid::bigint) = :key"
)
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS xco_epoch (
    sole boolean PRIMARY KEY DEFAULT true CHECK (sole),
    epoch bigint NOT NULL,
    holder text NOT NULL
)"""
_NEXT: Final = """
INSERT INTO xco_epoch AS kept (epoch, holder) VALUES (:least, :holder)
ON CONFLICT (sole) DO UPDATE
SET epoch = greatest(CASE WHEN kept.epoch <= :most THEN kept.epoch + 1 END, excluded.epoch),
    holder = excluded.holder
RETURNING epoch"""


class PostgresLease:
    """A lease for controllers on several machines; see `xco.leader.base.Lease`.

    Each lease has its own connection: the lock ends with it, however the controller ends.
    """

    def __init__(self, url: str, holder: str, clock: Clock = time.time_ns) -> None:
        """Take a URL such as ``postgresql+psycopg://user@host/database``.

        Raises:
            ControllerError: it is not a URL, or not of PostgreSQL.
        """
        self._holder, self._clock = holder, clock
        self._engine = _engine(url)
        self._connection: Connection | None = None
        self._asked: Future[Any] = Future()
        """The last query; the connection is not used again before it has finished."""

    def acquire(self, above: int = 0) -> int | None:
        """Return a new epoch, or None; see `Lease`."""
        try:
            if not self.still():
                self._take()
            if self._connection is None:
                return None
            return self._ask(
                partial(_new_epoch, self._connection, self._clock(), above, self._holder)
            )
        except (SQLAlchemyError, TimeoutError) as error:
            self.release()
            problem = str(error.__cause__ or error).partition("\n")[0] or "no answer in time"
            raise ControllerError("lease", problem, "see that the database answers") from error

    def still(self) -> bool:
        """Whether the session that holds the lock is alive and holds it."""
        if self._connection is None:
            return False
        try:
            return self._ask(partial(_holds, self._connection))
        except (SQLAlchemyError, TimeoutError):
            return False

    def release(self) -> None:
        """End the session, and with it the lock; after any pending answer."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._asked.add_done_callback(lambda _: _end(connection))

    def _take(self) -> None:
        """Take the lock, unless another session holds it."""
        self.release()
        try:
            patience_s = CONNECT_S + PATIENCE_MS / 1000
            self._connection = self._ask(partial(_locked, self._engine), patience_s)
        except TimeoutError:
            self._asked.add_done_callback(_end_late)
            raise

    def _ask(self, question: Callable[[], T], patience_s: float = PATIENCE_MS / 1000) -> T:
        """Return an answer, or raise its error.

        Raises:
            TimeoutError: it did not arrive in time; it may arrive later.
        """
        asked: Future[T] = Future()
        self._asked = asked
        Thread(target=_answer, args=(asked, question), name="lease", daemon=True).start()
        return asked.result(patience_s)


def _answer(asked: Future[T], question: Callable[[], T]) -> None:
    try:
        asked.set_result(question())
    except BaseException as error:  # noqa: BLE001  raised again where the answer is waited for
        asked.set_exception(error)


def _locked(engine: Engine) -> Connection | None:
    """Return a session that holds the lock; None if another holds it."""
    connection = engine.connect()
    try:
        if connection.execute(_LOCK, {"key": KEY}).scalar_one():
            return connection
    except SQLAlchemyError:
        _end(connection)
        raise
    _end(connection)
    return None


def _holds(connection: Connection) -> bool:
    return int(connection.execute(_HELD, {"key": KEY}).scalar_one()) == 1


def _new_epoch(connection: Connection, now_ns: int, above: int, holder: str) -> int:
    connection.execute(text(_TABLE))
    least, most = next_epoch(now_ns, above), now_ns + EPOCH_AHEAD_NS
    values = {"least": least, "most": most, "holder": holder}
    return int(connection.execute(text(_NEXT), values).scalar_one())


def _end(connection: Connection) -> None:
    with suppress(SQLAlchemyError):  # the server releases the lock when the socket closes
        connection.invalidate()
        connection.close()


def _end_late(asked: Future[Connection | None]) -> None:
    """End a session that was opened too late to be used."""
    connection = None if asked.exception() else asked.result()
    if connection is not None:
        _end(connection)


def _engine(url: str) -> Engine:
    options = f"-c statement_timeout={PATIENCE_MS} -c synchronous_commit=on"
    keepalives = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 2}
    arguments = {
        "connect_timeout": CONNECT_S,
        "tcp_user_timeout": PATIENCE_MS,
        **keepalives,
        "options": options,
        "application_name": "xco-controller",
    }
    try:
        engine = create_engine(
            url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments
        )
    except (ArgumentError, ImportError) as error:
        fix = "write postgresql+psycopg://user@host/database"
        raise ControllerError("lease", str(error), fix) from error
    if engine.dialect.name != "postgresql":
        fix = "write postgresql+psycopg://user@host/database, or name a directory"
        raise ControllerError("lease", f"{engine.dialect.name} has no advisory locks", fix)
    return engine
