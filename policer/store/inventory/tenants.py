"""Tenants; contracts can only name existing ones."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, select

from policer.actor import By
from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE
from policer.contracts.reach import TenantName
from policer.contracts.tenant import Tenant
from policer.errors import Problem
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

KIND = "tenant"


class Tenants:
    """The table of tenants."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> dict[str, Stored[Tenant]]:
        """Return every tenant, by name."""
        table = tables.tenants
        query = select(table).where(table.c.entry.is_not(None)).order_by(table.c.name)
        with self._database.read() as connection:
            return {row.name: _stored(row) for row in connection.execute(query)}

    def get(self, name: str) -> Stored[Tenant]:
        """Return a tenant; raises Unknown."""
        with self._database.read() as connection:
            return _stored(there(row_of(connection, tables.tenants, name), KIND, name))

    def put(self, name: str, tenant: Tenant, if_version: int | None, actor: By) -> Stored[Tenant]:
        """Create a tenant, or change its entry.

        Args:
            name: of the tenant.
            tenant: the new entry.
            if_version: the version to replace; None if there must be none yet.
            actor: actor of the change.

        Raises:
            Taken: there is one already.
            Stale: it was changed, or removed, since that version.
            Invalid: a field, or the name, is out of its bounds.
        """
        tenant = as_stored(tenant)
        checked_name(name, TenantName, "name", NAMES)
        with self._database.write() as connection:
            row = row_of(connection, tables.tenants, name, lock=True)
            expect(row, KIND, name, if_version)
            version = self._write(connection, row, name, tenant, actor)
        return Stored(tenant, version)

    def remove(self, name: str, if_version: int, actor: By) -> None:
        """Remove a tenant that no contract names.

        Raises:
            Unknown: there is none of that name.
            Stale: it was changed since that version.
            Invalid: contracts name it.
        """
        with self._database.write() as connection:
            row = there(row_of(connection, tables.tenants, name, lock=True), KIND, name)
            expect(row, KIND, name, if_version)
            refuse(_in_use(connection, name))
            self._write(connection, row, name, None, actor)

    def _write(
        self,
        connection: Connection,
        row: Row[Any] | None,
        name: str,
        tenant: Tenant | None,
        actor: By,
    ) -> Version:
        """Write the new state and its row of the audit log."""
        before = None if row is None or row.entry is None else _stored(row).value
        version = next_version(row, self._clock, str(actor))
        entry = None if tenant is None else text_of(tenant)
        set_entry(
            connection,
            tables.tenants,
            name,
            kind=KIND,
            entry=entry,
            version=version,
            is_new=row is None,
        )
        action = "remove" if tenant is None else "put"
        change = Change(action, f"{KIND} {name}", before, tenant)
        record(connection, version.changed_at, actor, change)
        return version


def keep_tenant(connection: Connection, name: str | None) -> None:
    """Lock a tenant against removal until the transaction ends.

    Call it before locking any host, like a plan: otherwise the two could deadlock.
    """
    if name is not None:
        query = select(tables.tenants.c.name).where(tables.tenants.c.name == name)
        connection.execute(query.with_for_update(read=True)).all()


def unknown_tenant(connection: Connection, contract: Contract) -> Iterator[Problem]:
    """Yield the problem if a contract's tenant does not exist."""
    name, table = contract.tenant, tables.tenants
    if name is None:
        return
    query = select(table.c.name).where(table.c.name == name, table.c.entry.is_not(None))
    if connection.execute(query).first() is None:
        fix = f"enter it first (`policer tenant set {name}`)"
        yield Problem("tenant", f"there is no tenant {name!r}", fix)


def _in_use(connection: Connection, name: str) -> Iterator[Problem]:
    table = tables.contracts
    query = select(table.c.host, table.c.vr, table.c.contract)
    users = [
        row.vr if row.host == ANYWHERE else f"{row.host}/{row.vr}"
        for row in connection.execute(query.where(table.c.contract.is_not(None))).all()
        if read(row.contract, Contract, f"contract {row.host}/{row.vr}").tenant == name
    ]
    if users:
        fix = "give them another tenant first"
        yield Problem("name", f"contracts name it: {some_of(users)}", fix)


def _stored(row: Row[Any]) -> Stored[Tenant]:
    return Stored(read(row.entry, Tenant, f"{KIND} {row.name}"), version_in(row))
