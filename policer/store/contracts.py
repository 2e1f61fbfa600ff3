"""The contracts with every revision; no two clients can promise the same capacity twice.

A change locks the host's row before it looks at what was promised (SQLite: the whole database), so
that admission and change are one step.
"""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, select, tuple_

from policer.actor import By
from policer.admission import problems_with
from policer.contract import Contract
from policer.errors import Invalid, Problem, Stale, Taken, Unknown
from policer.reach import UNLIMITED, Reach
from policer.store import tables
from policer.store.audit import Change, record
from policer.store.engine import Database
from policer.store.hosts import contracts_of, host_for_change
from policer.store.idempotency import Answering, keep
from policer.store.reaching import Columns, reaching, tenant_in
from policer.store.records import Clock, Stored, Version, as_stored, read, refuse, text_of
from xtc.wire import VrName


class Revision(msgspec.Struct, frozen=True):
    """What one version of a contract said."""

    version: int
    contract: Contract | None
    """None is removed."""
    at: datetime
    """UTC."""
    by: str


class Contracts:
    """The table of contracts, and of their revisions."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> dict[str, dict[str, Stored[Contract]]]:
        """Return every contract, by host and router."""
        found: dict[str, dict[str, Stored[Contract]]] = {}
        for host, vr, stored in self._listed(_query()):
            found.setdefault(host, {})[vr] = stored
        return found

    def page(
        self,
        after: tuple[str, str] | None,
        limit: int,
        host: str | None = None,
        *,
        reach: Reach = UNLIMITED,
    ) -> list[tuple[str, str, Stored[Contract]]]:
        """Return contracts by host and router, from behind a host and router on.

        Args:
            after: the last host and router of the page before; None begins at the beginning.
            limit: how many at most.
            host: of this host alone.
            reach: of what a token with this reach may see alone.
        """
        table, query = tables.contracts, _query().limit(limit)
        if after is not None:
            query = query.where(tuple_(table.c.host, table.c.vr) > tuple_(*after))
        if host is not None:
            query = query.where(table.c.host == host)
        named = Columns(table.c.host, table.c.vr, tenant_in(self._database, table.c.contract))
        return self._listed(query.where(*reaching(self._database, reach, named)))

    def get(self, host: str, vr: str) -> Stored[Contract]:
        """Return a contract; raises Unknown."""
        key = _Key(host, vr)
        with self._database.read() as connection:
            row = _row(connection, key)
        if row is None or row.contract is None:
            raise _unknown(key)
        return _stored(row)

    def put(
        self,
        host: str,
        vr: str,
        contract: Contract,
        if_version: int | None,
        actor: By,
        *,
        answering: Answering[Contract] | None = None,
    ) -> Stored[Contract]:
        """Promise a router something, or something else.

        Args:
            host: where the router is.
            vr: the router.
            contract: what is promised.
            if_version: what is to be replaced; None where there must be no contract yet.
            actor: who wants it.
            answering: what to keep for repetitions of the request.

        Raises:
            Unknown: there is no such host.
            Taken: there is a contract, and there must be none.
            Stale: it was changed, or removed, since that version.
            Invalid: it contradicts itself, or the host cannot keep it beside its other contracts.
        """
        key, contract = _Key(host, vr), _checked(vr, contract)
        with self._database.write() as connection:
            entry = host_for_change(connection, host)
            row = _row(connection, key)
            _expect(row, key, if_version)
            refuse(problems_with(vr, contract, entry, contracts_of(connection, host)))
            stored = Stored(contract, self._change(connection, key, row, contract, actor))
            keep(connection, answering, stored)
        return stored

    def remove(self, host: str, vr: str, if_version: int, actor: By) -> None:
        """Promise a router nothing any more.

        Raises:
            Unknown: there is no such host or contract.
            Stale: it was changed since that version.
        """
        key = _Key(host, vr)
        with self._database.write() as connection:
            host_for_change(connection, host)
            row = _row(connection, key)
            if row is None or row.contract is None:
                raise _unknown(key)
            _expect(row, key, if_version)
            self._change(connection, key, row, None, actor)

    def history(self, host: str, vr: str) -> list[Revision]:
        """Return every revision, the first one first; raises Unknown where there never was one."""
        table, key = tables.revisions, _Key(host, vr)
        query = select(table).where(table.c.host == host, table.c.vr == vr)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(table.c.version)).all()
        if not rows:
            raise _unknown(key)
        return [
            Revision(row.version, _contract(row, f"contract {key}"), row.at, row.by) for row in rows
        ]

    def _listed(self, query: Any) -> list[tuple[str, str, Stored[Contract]]]:
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [(row.host, row.vr, _stored(row)) for row in rows]

    def _change(
        self,
        connection: Connection,
        key: "_Key",
        row: Row[Any] | None,
        contract: Contract | None,
        actor: By,
    ) -> Version:
        """Write the new state, its revision and its row of the audit log."""
        before = None if row is None else _contract(row, f"contract {key}")
        version = Version(1 if row is None else row.version + 1, self._clock(), str(actor))
        _set(connection, key, contract, version, is_new=row is None)
        action = "remove" if contract is None else "put"
        change = Change(action, f"contract {key}", before, contract)
        record(connection, version.changed_at, actor, change)
        return version


class _Key(NamedTuple):
    """Whose contract it is."""

    host: str
    vr: str

    def __str__(self) -> str:
        return f"{self.host}/{self.vr}"


def _query() -> Any:
    table = tables.contracts
    return select(table).where(table.c.contract.is_not(None)).order_by(table.c.host, table.c.vr)


def _row(connection: Connection, key: _Key) -> Row[Any] | None:
    table = tables.contracts
    query = select(table).where(table.c.host == key.host, table.c.vr == key.vr)
    return connection.execute(query).one_or_none()


def _checked(vr: str, contract: Contract) -> Contract:
    """Return a contract as it will be given back; raises Invalid for what a daemon would refuse."""
    try:
        msgspec.convert(vr, VrName)
    except msgspec.ValidationError as error:
        fix = "give the name that its host's configuration has"
        raise Invalid([Problem("vr", str(error), fix)]) from None
    return as_stored(contract)


def _expect(row: Row[Any] | None, key: _Key, if_version: int | None) -> None:
    """See that a contract stands as the client believes; raises Taken or Stale."""
    there = row is not None and row.contract is not None
    if if_version is None and there:
        raise Taken("contract", str(key))
    if if_version is not None and (row is None or not there or row.version != if_version):
        raise Stale("contract", str(key), 0 if row is None else row.version)


def _set(
    connection: Connection, key: _Key, contract: Contract | None, version: Version, *, is_new: bool
) -> None:
    whose = key._asdict()
    entry = {"contract": None if contract is None else text_of(contract)}
    number, at, by = version.number, version.changed_at, version.changed_by
    state = {**entry, "version": number, "changed_at": at, "changed_by": by}
    table, revisions = tables.contracts, tables.revisions
    if is_new:
        connection.execute(table.insert().values(**whose, **state))
    else:
        change = table.update().where(table.c.host == key.host, table.c.vr == key.vr)
        connection.execute(change.values(**state))
    connection.execute(revisions.insert().values(**whose, **entry, version=number, at=at, by=by))


def _contract(row: Row[Any], name: str) -> Contract | None:
    return None if row.contract is None else read(row.contract, Contract, name)


def _stored(row: Row[Any]) -> Stored[Contract]:
    version = Version(row.version, row.changed_at, row.changed_by)
    return Stored(read(row.contract, Contract, f"contract {row.host}/{row.vr}"), version)


def _unknown(key: _Key) -> Unknown:
    return no_contract(key.host, key.vr)


def no_contract(host: str, vr: str) -> Unknown:
    """Return what is said of a contract that is not there."""
    fix = "`policer contract list` shows those there are"
    return Unknown("contract", f"{host}/{vr}", fix)
