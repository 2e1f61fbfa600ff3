"""Audit log: a row for every change by an operator, written in the same transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, select, update

from policer.actor import By, actor_of
from policer.errors import StoreGone
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.pruning import prune
from policer.store.database.within import ANY_TIME, Time, within


class AuditRow(msgspec.Struct, frozen=True):
    """One change."""

    id: int
    at: datetime
    """UTC."""
    actor: str
    """Name of the actor; not unique."""
    action: str
    """add, replace, put, remove or revoke."""
    target: str
    """Changed entry: "host gold", "contract gold/r1" or "token 0123456789ab"."""
    before: Any = None
    """Before the change; None if it did not exist."""
    after: Any = None
    """After the change; None if it was removed."""
    actor_id: str = ""
    """A token's id, an issuer's subject, or a user of a machine: unique; "" in rows of versions
    before 0011."""
    address: str = ""
    """Source of the request; "" if it came over no network."""
    plan: str | None = None
    """Id of the plan that it was part of; None without a plan."""


class Audit:
    """The log of changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, after: int | None, limit: int, *, time: Time = ANY_TIME) -> list[AuditRow]:
        """Return changes, the latest first.

        Args:
            after: the id of the last row of the page before; None begins with the latest.
            limit: how many at most.
            time: when they were made.
        """
        query = select(tables.audit).where(*within(tables.audit, time))
        if after is not None:
            query = query.where(tables.audit.c.id < after)
        return self._rows(query.order_by(tables.audit.c.id.desc()).limit(limit))

    def since(self, last_id: int, limit: int, *, time: Time = ANY_TIME) -> list[AuditRow]:
        """Return changes after the one of this id, the oldest first; the rest is as of `page`."""
        query = select(tables.audit).where(tables.audit.c.id > last_id)
        query = query.where(*within(tables.audit, time))
        return self._rows(query.order_by(tables.audit.c.id).limit(limit))

    def _rows(self, query: Any) -> list[AuditRow]:
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(query)]

    def prune(self, before: datetime) -> int:
        """Remove changes older than an instant; return how many."""
        return prune(self._database, tables.audit, tables.audit.c.at < before)


class Change(NamedTuple):
    """A change by an operator."""

    action: str
    target: str
    before: msgspec.Struct | None
    after: msgspec.Struct | None


def record(connection: Connection, at: datetime, actor: By, change: Change) -> None:
    """Record a change in the transaction that makes it.

    The count of changes is raised first: its row is locked until the transaction ends, so that
    changes get their numbers in the order in which they are seen.
    """
    record_all(connection, at, actor, [change])


def record_all(
    connection: Connection,
    at: datetime,
    actor: By,
    changes: Sequence[Change],
    plan: str | None = None,
) -> None:
    """Record changes that become visible together: the count of changes rises once.

    Args:
        connection: of the transaction that makes them.
        at: when that is.
        actor: actor of the changes.
        changes: one or more.
        plan: id of the plan that makes them.
    """
    count_change(connection)
    who = actor_of(actor)
    said = {"actor": who.name, "actor_id": who.id, "address": who.address}
    rows = [
        {
            **said,
            "at": at,
            "plan": plan,
            "action": change.action,
            "target": change.target,
            "before": _json(change.before),
            "after": _json(change.after),
        }
        for change in changes
    ]
    connection.execute(tables.audit.insert(), rows)


def count_change(connection: Connection) -> None:
    """Raise the count of changes, so that all policers read again.

    The changed rows get the number, too. Otherwise the next transaction would number them, and lock
    rows in another order.
    """
    number = tables.generation.c.number
    connection.execute(update(tables.generation).values(number=number + 1))
    for table in tables.VERSIONED:
        unnumbered = update(table).where(table.c.generation.is_(None))
        connection.execute(unnumbered.values(generation=select(number).scalar_subquery()))


def generation(connection: Connection) -> int:
    """Return the count of changes."""
    return int(connection.execute(select(tables.generation.c.number)).scalar_one())


def _json(value: msgspec.Struct | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _row(row: Row[Any]) -> AuditRow:
    try:
        before, after = (
            None if raw is None else msgspec.json.decode(raw) for raw in (row.before, row.after)
        )
    except msgspec.DecodeError as error:
        raise StoreGone(f"row {row.id} of the audit log cannot be read: {error}") from error
    who = row.actor_id, row.address, row.plan
    return AuditRow(row.id, row.at, row.actor, row.action, row.target, before, after, *who)
