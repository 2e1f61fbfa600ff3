"""The policer's store for tests: files with their tables already made, and no wait for the disk."""

import sqlite3
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import event

from policer.store import Store, open_store


def with_tables(path: Path) -> str:
    """Return the URL of a file as open_store makes it; a file that is there stays as it is."""
    if not path.exists():
        path.write_bytes(_empty())
        path.chmod(0o600)
    return f"sqlite:///{path}"


def hurried(store: Store) -> Store:
    """Have SQLite not wait until what it writes is on the disk: no test cuts the power."""
    engine = store._database._engine
    if store._database.path is not None:
        event.listen(engine, "connect", _do_not_wait)
        engine.dispose()
    return store


def _do_not_wait(connection: sqlite3.Connection, _record: object) -> None:
    """Undo what the store asks of a new connection."""
    connection.execute("PRAGMA synchronous=OFF").close()


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policer.db"
        open_store(f"sqlite:///{path}").close()
        return path.read_bytes()
