"""What operators entered, read again where it was changed: the rows of the generations since.

Every row of hosts, contracts and classes has the generation in which it was changed last, also when
it was removed. A reader asks for later ones. It reads everything where that could miss something:
the first time, and when the database does not go on from what was read, as a restored backup.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import Column, Connection, Table, or_, select

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.records import read
from policer.store.history.audit import generation

S = TypeVar("S", bound=msgspec.Struct)


class Mark(NamedTuple):
    """Up to where a database was read."""

    generation: int
    last_change: tuple[Any, ...] | None
    """The newest row of the audit log; None where there is none."""


@dataclass(frozen=True, slots=True)
class Entered:
    """Hosts, contracts and classes; what was not changed is the same object as before."""

    hosts: Mapping[str, Host] = field(default_factory=dict)
    contracts: Mapping[str, Mapping[str, Contract]] = field(default_factory=dict)
    """By host and router."""
    classes: Mapping[str, Contract] = field(default_factory=dict)
    mark: Mark | None = None
    """None before anything was read."""

    def changed(self, before: "Entered") -> frozenset[str]:
        """Return the hosts that are another, are gone, or have other contracts than before."""
        names = {*self.hosts, *self.contracts, *before.hosts, *before.contracts}
        return frozenset(
            name
            for name in names
            if self.hosts.get(name) is not before.hosts.get(name)
            or self.contracts.get(name) is not before.contracts.get(name)
        )


class Changes:
    """Reads what operators changed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def since(self, before: Entered) -> Entered:
        """Return what is entered now; raises StoreError.

        Args:
            before: what was read last; itself is returned where nothing was changed.
        """
        with self._database.read() as connection:
            mark = _mark(connection)
            if mark == before.mark:
                return before
            if before.mark is None or not _goes_on(connection, mark, before.mark):
                return _after(connection, Entered(), None, mark)
            return _after(connection, before, before.mark.generation, mark)


def _mark(connection: Connection) -> Mark:
    # In this order: changes that come in between are read again, and none is missed.
    number = generation(connection)
    newest = select(tables.audit).order_by(tables.audit.c.id.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    return Mark(number, None if row is None else tuple(row))


def _goes_on(connection: Connection, now: Mark, before: Mark) -> bool:
    """Whether a database is the one that was read, with later changes.

    It is if it still has the change that was its newest: one that was restored from a backup has
    not, whatever was changed in it since, and its generation may be the same.
    """
    if before.last_change is None or now.generation < before.generation:
        return False
    there = select(tables.audit).where(tables.audit.c.id == before.last_change[0])
    row = connection.execute(there).one_or_none()
    return row is not None and tuple(row) == before.last_change


def _after(connection: Connection, before: Entered, since: int | None, mark: Mark) -> Entered:
    """Return what was entered, with the rows that were changed after a generation."""
    table = tables.contracts
    rows = _changed(connection, since, table.c.host, table.c.vr, table.c.contract)
    return Entered(
        _named(connection, since, tables.hosts, Host, before.hosts),
        _with(before.contracts, rows),
        _named(connection, since, tables.classes, Contract, before.classes),
        mark,
    )


def _named(
    connection: Connection, since: int | None, table: Table, kind: type[S], before: Mapping[str, S]
) -> dict[str, S]:
    """Return a table's entries by name, with the rows that were changed."""
    after = dict(before)
    for name, entry in _changed(connection, since, table.c.name, table.c.entry):
        after.pop(name, None)
        if entry is not None:
            after[name] = read(entry, kind, f"{kind.__name__.lower()} {name}")
    return after


def _changed(connection: Connection, since: int | None, *columns: Column[Any]) -> Iterable[Any]:
    """Return the rows that were changed after a generation, removed ones too; all if it is None."""
    query = select(*columns)
    if since is not None:
        number = columns[0].table.c.generation
        query = query.where(or_(number > since, number.is_(None)))
    return connection.execute(query).all()


def _with(
    before: Mapping[str, Mapping[str, Contract]], rows: Iterable[Any]
) -> dict[str, Mapping[str, Contract]]:
    """Return contracts with the rows that were changed; those of other hosts stay as they are."""
    touched: dict[str, dict[str, Contract]] = {}
    for host, vr, contract in rows:
        if host not in touched:
            touched[host] = dict(before.get(host, {}))
        touched[host].pop(vr, None)
        if contract is not None:
            touched[host][vr] = read(contract, Contract, f"contract {host}/{vr}")
    return {host: found for host, found in {**before, **touched}.items() if found}
