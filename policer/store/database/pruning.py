"""Removes old rows a few at a time, so that no client waits long for the database."""

from typing import Final

from sqlalchemy import ColumnElement, Table, delete, select, tuple_

from policer.store.database.engine import Database

AT_ONCE: Final = 5000
"""Rows that are removed in one transaction."""


def prune(database: Database, table: Table, old: ColumnElement[bool]) -> int:
    """Remove the old rows of a table; return how many."""
    keys = tuple(table.primary_key)
    key = keys[0] if len(keys) == 1 else tuple_(*keys)
    some = select(*keys).where(old).limit(AT_ONCE)
    removed = 0
    while True:
        with database.write() as connection:
            count = connection.execute(delete(table).where(key.in_(some))).rowcount
        removed += count
        if count < AT_ONCE:
            return removed
