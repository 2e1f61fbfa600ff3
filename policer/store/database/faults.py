"""The one boundary at which errors of databases become the policer's own."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from policer.errors import StoreBusy, StoreError, StoreGone, StoreOutdated

_UPGRADE = "the database has not this program's tables (run `policer db upgrade`)"
_BUSY_IN_SQLITE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_BUSY_IN_POSTGRESQL = {
    "40001",  # serialization failure
    "40P01",  # deadlock
    "53300",  # too many connections
    "55P03",  # lock not available in time
    "57014",  # statement timeout
}
_NO_TABLE = {"42P01", "42703", "3F000"}


@contextmanager
def mapped() -> Iterator[None]:
    """Do something with a database.

    Raises:
        StoreBusy: it was locked, or all connections were in use, for longer than one waits.
        StoreOutdated: it has other tables than this program.
        StoreGone: it cannot be reached, read or written.
        StoreError: anything else that it says.
    """
    try:
        yield
    except PoolTimeout as error:
        raise StoreBusy("all connections to the database were in use for too long") from error
    except DBAPIError as error:
        raise _named(error) from error
    except sqlite3.Error as error:
        raise _of_sqlite(error, str(error)) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the database cannot do it: {error}") from error


def _named(error: DBAPIError) -> StoreError:
    """Return the policer's error for a driver's; its text holds no statement and no values."""
    words = " ".join(str(error.orig).split())
    if isinstance(error, IntegrityError | DataError):
        return StoreError(f"the database refuses it: {words}")
    if isinstance(error.orig, sqlite3.Error):
        return _of_sqlite(error.orig, words)
    state = getattr(error.orig, "sqlstate", None)
    if state in _BUSY_IN_POSTGRESQL:
        return StoreBusy(f"the database was busy for too long: {words}")
    if state in _NO_TABLE:
        return StoreOutdated(f"{_UPGRADE}: {words}")
    return StoreGone(f"the database cannot be used: {words}")


def _of_sqlite(error: sqlite3.Error, words: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    # The low byte is the kind, the rest its details.
    if code & 0xFF in _BUSY_IN_SQLITE:
        return StoreBusy(f"another program kept the database locked for too long: {words}")
    if words.startswith(("no such table", "no such column")):
        return StoreOutdated(f"{_UPGRADE}: {words}")
    return StoreGone(f"the database cannot be used: {words}")
