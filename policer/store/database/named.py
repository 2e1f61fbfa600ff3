"""Common parts of the tables with named entries: rows, versions, preconditions."""

from typing import Any

from sqlalchemy import Connection, Row, Table, select
from sqlalchemy.exc import IntegrityError

from policer.errors import Stale, Taken, Unknown
from policer.store.database.records import Clock, Version

NAMES = "give letters, digits, dots, dashes and underscores, a letter or digit first"
SOME = 5


def row_of(
    connection: Connection, table: Table, name: str, *, lock: bool = False
) -> Row[Any] | None:
    """Return the row of a name, also of what was removed.

    Args:
        connection: of the transaction.
        table: where to look.
        name: of the thing.
        lock: whether to keep others from changing it until that ends.
    """
    query = select(table).where(table.c.name == name)
    return connection.execute(query.with_for_update() if lock else query).one_or_none()


def there(row: Row[Any] | None, kind: str, name: str) -> Row[Any]:
    """Return a row that has an entry; raises Unknown."""
    if row is None or row.entry is None:
        raise unknown(kind, name)
    return row


def unknown(kind: str, name: str) -> Unknown:
    """Return the error for a missing entry."""
    return Unknown(kind, name, f"`policer {kind} list` lists them")


def expect(row: Row[Any] | None, kind: str, name: str, if_version: int | None) -> None:
    """Check that an entry has the state that the client expects; raises Taken or Stale."""
    entered = row is not None and row.entry is not None
    if if_version is None and entered:
        raise Taken(kind, name)
    if if_version is not None and (row is None or not entered or row.version != if_version):
        raise Stale(kind, name, 0 if row is None else row.version)


def next_version(row: Row[Any] | None, clock: Clock, actor: str) -> Version:
    """Return the next version of a row."""
    return Version(1 if row is None else row.version + 1, clock(), actor)


def version_in(row: Row[Any]) -> Version:
    """Return the version of a row."""
    return Version(row.version, row.changed_at, row.changed_by)


def set_entry(
    connection: Connection,
    table: Table,
    name: str,
    *,
    kind: str,
    entry: str | None,
    version: Version,
    is_new: bool,
) -> None:
    """Write the entry of a name; None removes it. Raises Taken."""
    state = {
        "entry": entry,
        "version": version.number,
        "changed_at": version.changed_at,
        "changed_by": version.changed_by,
    }
    if not is_new:
        connection.execute(table.update().where(table.c.name == name).values(**state))
        return
    try:
        connection.execute(table.insert().values(name=name, **state))
    except IntegrityError:  # on PostgreSQL another client may be creating it, too
        raise Taken(kind, name) from None


def some_of(names: list[str]) -> str:
    """Return a few names in a line."""
    return ", ".join(sorted(names)[:SOME]) + (", ..." if len(names) > SOME else "")
