"""The contract classes; a change of one is a change of every contract that names it."""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, Row, select

from policer.actor import By
from policer.contracts.admission import is_more, problems_of_host
from policer.contracts.contract import Contract
from policer.contracts.in_force import Book, classes_of, problems_of_class
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import ClassName
from policer.errors import Problem, Unknown
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.named import (
    NAMES,
    expect,
    next_version,
    row_of,
    set_entry,
    some_of,
    there,
    unknown,
    version_in,
)
from policer.store.database.records import (
    Clock,
    Stored,
    Version,
    as_stored,
    checked_name,
    read,
    refuse,
    text_of,
)
from policer.store.history.audit import Change, record
from policer.store.inventory.hosts import entered_host
from policer.store.inventory.promises import book_in, contracts_at

KIND = "class"


class Classes:
    """The table of classes."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> dict[str, Stored[Contract]]:
        """Return every class, by name."""
        table = tables.classes
        query = select(table).where(table.c.entry.is_not(None)).order_by(table.c.name)
        with self._database.read() as connection:
            return {row.name: _stored(row) for row in connection.execute(query)}

    def named_by(self, contracts: Iterable[Contract]) -> dict[str, Contract]:
        """Return the terms of the existing classes that contracts name."""
        names = set().union(*map(classes_of, contracts))
        table = tables.classes
        query = select(table).where(table.c.entry.is_not(None))
        if not names:
            return {}
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return {row.name: _stored(row).value for row in rows if row.name in names}

    def get(self, name: str) -> Stored[Contract]:
        """Return a class; raises Unknown."""
        with self._database.read() as connection:
            return _stored(there(row_of(connection, tables.classes, name), KIND, name))

    def put(
        self, name: str, terms: Contract, if_version: int | None, actor: By
    ) -> Stored[Contract]:
        """Create a class, or change it and every contract that names it.

        Args:
            name: of the class.
            terms: what its contracts promise.
            if_version: the version to replace; None if there must be none yet.
            actor: actor of the change.

        Raises:
            Taken: there is one already.
            Stale: it was changed, or removed, since that version.
            Invalid: the terms contradict themselves, or a host cannot keep them.
        """
        terms = as_stored(terms)
        refuse(problems_of_class(terms))
        checked_name(name, ClassName, "name", NAMES)
        with self._database.write() as connection:
            # Before any host, like the creation of a contract.
            row = row_of(connection, tables.classes, name, lock=True)
            expect(row, KIND, name, if_version)
            refuse(self._broken(connection, name, terms))
            version = self._write(connection, row, name, terms, actor)
        return Stored(terms, version)

    def remove(self, name: str, if_version: int, actor: By) -> None:
        """Remove a class that no contract names.

        Raises:
            Unknown: there is none of that name.
            Stale: it was changed since that version.
            Invalid: contracts name it.
        """
        with self._database.write() as connection:
            row = there(row_of(connection, tables.classes, name, lock=True), KIND, name)
            expect(row, KIND, name, if_version)
            refuse(_in_use(connection, name))
            self._write(connection, row, name, None, actor)

    def _broken(self, connection: Connection, name: str, terms: Contract) -> Iterator[Problem]:
        """Yield the hosts that could no longer keep their contracts with other terms of a class."""
        hosts = [entered_host(connection, host) for host in sorted(_hosts_with(connection, name))]
        before = book_in(connection, self._clock())
        after = Book({**before.classes, name: terms}, before.now)
        field = "guarantee_pps" if terms.guarantee_bps is None else "guarantee_bps"
        for host in hosts:
            contracts = contracts_at(connection, host.name)
            if not is_more(contracts, before, after):
                continue
            for problem in problems_of_host(host, contracts, after):
                what = f"on {host.name}, {problem.problem}"
                yield Problem(field, what, "promise less, or let the host overcommit")

    def _write(
        self,
        connection: Connection,
        row: Row[Any] | None,
        name: str,
        terms: Contract | None,
        actor: By,
    ) -> Version:
        """Write the new state and its row of the audit log."""
        before = None if row is None or row.entry is None else _stored(row).value
        version = next_version(row, self._clock, str(actor))
        entry = None if terms is None else text_of(terms)
        set_entry(
            connection,
            tables.classes,
            name,
            kind=KIND,
            entry=entry,
            version=version,
            is_new=row is None,
        )
        action = "remove" if terms is None else "put"
        change = Change(action, f"{KIND} {name}", before, terms)
        record(connection, version.changed_at, actor, change)
        return version


def _users(connection: Connection, name: str) -> Iterator[tuple[str, str]]:
    """Yield host and router of every contract that names a class."""
    table = tables.contracts
    query = select(table.c.host, table.c.vr, table.c.contract)
    rows = connection.execute(query.where(table.c.contract.is_not(None)))
    for row in rows.all():
        if name in classes_of(read(row.contract, Contract, f"contract {row.host}/{row.vr}")):
            yield row.host, row.vr


def _hosts_with(connection: Connection, name: str) -> set[str]:
    """Return the hosts with contracts of a class."""
    homes = {row.router: row.host for row in connection.execute(select(tables.homes))}
    where = (homes.get(vr) if host == ANYWHERE else host for host, vr in _users(connection, name))
    return {host for host in where if host is not None}


def _in_use(connection: Connection, name: str) -> list[Problem]:
    users = [vr if host == ANYWHERE else f"{host}/{vr}" for host, vr in _users(connection, name)]
    if not users:
        return []
    fix = "give them another class first"
    return [Problem("name", f"contracts name it: {some_of(users)}", fix)]


def _stored(row: Row[Any]) -> Stored[Contract]:
    return Stored(read(row.entry, Contract, f"{KIND} {row.name}"), version_in(row))


def no_class(name: str) -> Unknown:
    """Return the error for a missing class."""
    return unknown(KIND, name)
