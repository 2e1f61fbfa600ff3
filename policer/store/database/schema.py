"""The database's version: made at the newest, refused at others, moved when asked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from policer.errors import StoreOutdated, Unknown
from policer.store.database.engine import Database

MIGRATIONS: Final = Path(__file__).with_name("migrations")
_ADVISORY_KEY: Final = 0x7874635F75706772
"""Of PostgreSQL's lock that one program at a time holds to change the tables ("xtc_upgr")."""
_one_at_a_time: Final = threading.Lock()
"""Alembic keeps its context in a module, which threads share."""


@contextmanager
def _migrating(database: Database) -> Iterator[Connection]:
    """Change tables in one transaction, one program at a time."""
    with _one_at_a_time, database.write() as connection:
        if database.path is None:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:k)"), {"k": _ADVISORY_KEY})
        yield connection


class Schema:
    """What this program knows of versions."""

    def __init__(self, folder: Path = MIGRATIONS) -> None:
        self._folder = folder
        self._known, self.newest = _versions(folder)  # this program works with the newest

    def version_of(self, connection: Connection) -> str:
        """Return a database's version; "" where it has none."""
        return ",".join(MigrationContext.configure(connection).get_current_heads())

    def require_newest(self, connection: Connection) -> None:
        """See that a database is of this program's version.

        Raises:
            StoreOutdated: it is not; says what to do.
        """
        version = self.version_of(connection)
        if version == self.newest:
            return
        if not version:
            words = "the database is empty or not the policer's (run `policer db upgrade`)"
        elif version in self._known:
            words = (
                f"the database is of version {version}, and this program works with {self.newest}"
                " (run `policer db upgrade`)"
            )
        else:
            words = (
                f"the database is of version {version}, which is newer than this program's"
                f" {self.newest} (install the newer policer)"
            )
        raise StoreOutdated(words)

    def prepare(self, database: Database, *, create: bool, upgrade: bool) -> None:
        """Bring a database to this program's version as far as that is allowed.

        Args:
            database: to be looked at.
            create: whether an empty one may be filled.
            upgrade: whether an older one may be brought up.

        Raises:
            StoreOutdated: it is of another version, and may not or cannot be brought up.
        """
        with database.read() as connection:
            if not self._may_bring_up(connection, create=create, upgrade=upgrade):
                self.require_newest(connection)
                return
        with _migrating(database) as connection:
            # Another program may have done it meanwhile: then Alembic finds nothing to do.
            command.upgrade(self._config(connection), "head")

    def bring_down(self, database: Database, version: str) -> None:
        """Bring a database of this program's version down, for an older program.

        Raises:
            Unknown: this program knows no such older version.
            StoreOutdated: the database is of another version than this program's.
        """
        if version not in self._known - {self.newest}:
            fix = f"the database can be brought down to one of {self._older}"
            raise Unknown("version", version, fix)
        with _migrating(database) as connection:
            self.require_newest(connection)
            command.downgrade(self._config(connection), version)

    @property
    def _older(self) -> str:
        return ", ".join(sorted(self._known - {self.newest})) or "none"

    def _may_bring_up(self, connection: Connection, *, create: bool, upgrade: bool) -> bool:
        version = self.version_of(connection)
        if version:
            return upgrade and version in self._known and version != self.newest
        return (create or upgrade) and not inspect(connection).get_table_names()

    def _config(self, connection: Connection) -> Config:
        return _config(self._folder, connection)


@cache
def _versions(folder: Path) -> tuple[frozenset[str], str]:
    """Return all versions that a folder's steps lead to, and the newest; each step is a program."""
    script = ScriptDirectory.from_config(_config(folder))
    known = frozenset(step.revision for step in script.walk_revisions())
    return known, str(script.get_current_head())


def _config(folder: Path, connection: Connection | None = None) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config
