"""Copies SQLite's database while it is in use."""

import os
from pathlib import Path

from policer.errors import Invalid, Problem, StoreGone
from policer.store.database.engine import Database


def back_up(database: Database, target: Path) -> None:
    """Copy a database, as of one instant, into a new file that its owner alone can read.

    Raises:
        Invalid: the file already exists, or the database is not SQLite's.
        StoreGone: the file cannot be written.
    """
    if database.path is None:
        raise Invalid([Problem("store.url", "it is PostgreSQL's", "use pg_dump for its backups")])
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        problem = Problem("target", f"{target} already exists", "give another name")
        raise Invalid([problem]) from None
    except OSError as error:
        raise StoreGone(f"{target}: {error.strerror}") from error
    try:
        database.copy_to(target)
    except BaseException:
        target.unlink()
        raise
