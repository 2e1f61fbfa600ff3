"""Reads and writes all operators' entries, as of one instant."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, delete, select

from policer.actor import By
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.tenant import Tenant
from policer.fleetfile.capacity import Homes
from policer.fleetfile.document import Entered
from policer.fleetfile.edits import Edit, Kind
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.guards import entered_hosts
from policer.store.database.records import read, text_of
from policer.store.history.audit import Change, record_all
from policer.store.history.events import Event, write_events
from policer.store.inventory.homes import forget, settle
from policer.store.inventory.override_rows import Author, forget_host, forget_router

TABLES: Mapping[Kind, Table] = {
    "tenant": tables.tenants,
    "class": tables.classes,
    "host": tables.hosts,
    "contract": tables.contracts,
}
ENTRY: Mapping[Kind, str] = {
    "tenant": "entry",
    "class": "entry",
    "host": "entry",
    "contract": "contract",
}
"""The column with the entry itself."""


class Done(NamedTuple):
    """Actor, time and plan of changes."""

    actor: By
    at: datetime
    plan: str


def entered(connection: Connection) -> Entered:
    """Return all entries."""
    return Entered(
        tenants={
            row.name: read(row.entry, Tenant, row.name) for row in _rows(connection, "tenant")
        },
        classes={
            row.name: read(row.entry, Contract, row.name) for row in _rows(connection, "class")
        },
        hosts={row.name: read(row.entry, Host, row.name) for row in _rows(connection, "host")},
        contracts={
            (row.host, row.vr): read(row.contract, Contract, f"contract {row.host}/{row.vr}")
            for row in _rows(connection, "contract")
        },
    )


def homes_in(connection: Connection) -> dict[str, str]:
    """Return the hosts of routers that contracts follow."""
    return {row.router: row.host for row in connection.execute(select(tables.homes))}


def lock_all(connection: Connection) -> None:
    """Prevent all other changes until the transaction ends.

    The order is that of other transactions: names in contracts, leadership and entry of hosts,
    hosts, overrides, and the count of changes, which every change needs.
    """
    for table in (
        tables.classes,
        tables.tenants,
        tables.leadership,
        tables.hosts,
        tables.overrides,
        tables.generation,
    ):
        keys = tuple(table.primary_key)
        connection.execute(select(*keys).order_by(*keys).with_for_update()).all()


def write(
    database: Database, connection: Connection, edits: Iterable[Edit], seen: Homes, by: Done
) -> None:
    """Make changes, in one step of the count of changes; none is no step.

    Args:
        database: of the connection.
        connection: of the transaction.
        edits: the changes.
        seen: hosts of followed routers that are missing in the store.
        by: actor, time and plan.
    """
    done = tuple(edits)
    cleared = [*_unexempted(connection, done, by)]
    for kind in TABLES:
        rows = list(_states(connection, kind, (e for e in done if e.kind == kind), by))
        if rows:
            _put(database, connection, TABLES[kind], rows)
        if rows and kind == "contract":
            connection.execute(tables.revisions.insert(), list(map(_revision, rows)))
    _follow(database, connection, done, seen, by)
    hosts = [edit.name for edit in done if edit.kind == "host" and edit.after is None]
    cleared += [event for host in hosts for event in _forget(connection, host, by)]
    if done:
        record_all(connection, by.at, by.actor, list(map(_change, done)), by.plan)
        write_events(connection, cleared, by.at)


def _rows(connection: Connection, kind: Kind) -> Iterable[Any]:
    table = TABLES[kind]
    query = select(table).where(table.c[ENTRY[kind]].is_not(None))
    return connection.execute(query.order_by(*table.primary_key))


def _states(
    connection: Connection, kind: Kind, edits: Iterable[Edit], by: Done
) -> Iterator[dict[str, Any]]:
    """Yield the new rows of entries, each with the version after its last."""
    table = TABLES[kind]
    keys = [column.name for column in table.primary_key]
    versions = {
        tuple(row[:-1]): row[-1]
        for row in connection.execute(select(*table.primary_key, table.c.version))
    }
    for edit in edits:
        key = edit.key if kind == "contract" else (edit.name,)
        yield {
            **dict(zip(keys, key, strict=True)),
            ENTRY[kind]: None if edit.after is None else text_of(edit.after),
            "version": versions.get(key, 0) + 1,
            "changed_at": by.at,
            "changed_by": str(by.actor),
        }


def _put(
    database: Database, connection: Connection, table: Table, rows: list[dict[str, Any]]
) -> None:
    insert = database.insert(table)
    keys = [column.name for column in table.primary_key]
    # Without a generation: `record_all` sets the one of the change in each row.
    rest = {name: insert.excluded[name] for name in (*rows[0], "generation") if name not in keys}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=rest), rows)


def _revision(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in ("host", "vr", "version", "contract")}
    return {**kept, "at": row["changed_at"], "by": row["changed_by"]}


def _follow(
    database: Database, connection: Connection, edits: Iterable[Edit], seen: Homes, by: Done
) -> None:
    """Write the hosts of routers that contracts follow from now on, and remove the others."""
    done = [edit for edit in edits if edit.kind == "contract" and edit.host is None]
    forget(connection, [edit.name for edit in done if edit.after is None])
    homes = {e.name: seen[e.name] for e in done if e.after is not None and e.name in seen}
    there = entered_hosts(connection, set(homes.values()))
    here = {router: host for router, host in homes.items() if host in there}
    settle(connection, database, here, by.at)


def _unexempted(connection: Connection, edits: Iterable[Edit], by: Done) -> Iterator[Event]:
    """End the overrides of routers that lose their contracts; yield the events."""
    columns = tables.overrides.c
    those = connection.execute(select(columns.host, columns.vr).where(columns.vr != "")).all()
    known = {(row.host, row.vr) for row in those}
    for edit in edits:
        if edit.kind == "contract" and edit.after is None and edit.key in known:
            yield from forget_router(connection, *edit.key, Author(by.at, by.actor))


def _forget(connection: Connection, host: str, by: Done) -> list[Event]:
    """Remove the state of a removed host; return the events, to be written last."""
    for table in (tables.punishments, tables.homes):
        connection.execute(delete(table).where(table.c.host == host))
    return forget_host(connection, host, Author(by.at, by.actor))


def _change(edit: Edit) -> Change:
    actions = {"add": "add", "change": "replace", "remove": "remove"}
    action = actions[edit.action] if edit.kind == "host" else ("put" if edit.after else "remove")
    return Change(action, edit.target, edit.before, edit.after)
