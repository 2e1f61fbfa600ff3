"""Contracts with all revisions; no two clients can promise the same capacity twice.

A change locks the host's row before it reads the promises (SQLite: the whole database), so
admission and change are one step.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, delete, func, select, tuple_

from policer.actor import By
from policer.contracts.admission import counts, problems_with, promised_pps
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.in_force import classes_of
from policer.contracts.location import UUID
from policer.contracts.promised import ANYWHERE, MOST_FOLLOWING, name_of
from policer.contracts.reach import UNLIMITED, Reach
from policer.decide.telemetry import MOST_ROUTERS
from policer.errors import Problem, Stale, Taken, Unknown
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.pruning import AT_ONCE
from policer.store.database.reaching import Columns, reaching, tenant_in
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
from policer.store.history.events import write_events
from policer.store.inventory.homes import forget, settle
from policer.store.inventory.hosts import entered_host, lock_anywhere
from policer.store.inventory.override_rows import Author, forget_router
from policer.store.inventory.promises import book_in, contracts_at, home_of, keep_classes
from policer.store.inventory.tenants import keep_tenant, unknown_tenant
from policer.store.service.idempotency import Answering, keep
from xtc.wire import VrName


class Revision(msgspec.Struct, frozen=True):
    """One version of a contract."""

    version: int
    contract: Contract | None
    """None means removed."""
    at: datetime
    """UTC."""
    by: str


class Checked(NamedTuple):
    """Whether a contract could be entered."""

    problems: tuple[Problem, ...]
    promised_pps: float
    """The most that the host's guarantees would take, with this one."""
    host: Host | None
    """Host of the router; None if unknown."""


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
        """Return contracts by host and router, after a given host and router.

        Args:
            after: the last host and router of the page before; None begins at the beginning.
            limit: how many at most.
            host: only of this host.
            reach: only what a token with this reach may see.
        """
        table, query = tables.contracts, _query().limit(limit)
        if after is not None:
            query = query.where(tuple_(table.c.host, table.c.vr) > tuple_(*after))
        if host is not None:
            query = query.where(table.c.host == host)
        named = Columns(table.c.host, table.c.vr, tenant_in(self._database, table.c.contract))
        return self._listed(query.where(*reaching(self._database, reach, named)))

    def following(
        self,
        after: str,
        limit: int,
        *,
        tenants: Sequence[str] = (),
        routers: Sequence[str] | None = None,
    ) -> list[tuple[str, str, Stored[Contract]]]:
        """Return contracts that follow routers, by their names.

        Args:
            after: the last of the page before; "" begins at the beginning.
            limit: how many at most.
            tenants: only of these; none given is all.
            routers: only of these names; None is all.
        """
        table = tables.contracts
        query = _query().where(table.c.host == ANYWHERE, table.c.vr > after).limit(limit)
        if tenants:
            query = query.where(tenant_in(self._database, table.c.contract).in_(tenants))
        if routers is not None:
            query = query.where(table.c.vr.in_(routers))
        return self._listed(query)

    def owner(self, host: str, vr: str, version: int | None = None) -> str | None:
        """Return the last tenant of a router, by a version of its contract or the current one.

        Raises:
            Unknown: it never had a contract.
        """
        with self._database.read() as connection:
            return owner_in(connection, host, vr, version)

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
        seen_on: str | None = None,
    ) -> Stored[Contract]:
        """Create or replace the contract of a router.

        Args:
            host: of the router; ANYWHERE if the contract follows it.
            vr: the router: its name on that host; or its UUID, or a name that no other router of
                the fleet has.
            contract: the new contract.
            if_version: the version to replace; None if there must be no contract yet.
            actor: actor of the change.
            answering: what to keep for repetitions of the request.
            seen_on: the host of a followed router, if the store does not have it yet.

        Raises:
            Unknown: there is no such host.
            Taken: there is a contract already.
            Stale: it was changed, or removed, since that version.
            Invalid: it contradicts itself, or the host cannot keep it with its other contracts.
        """
        key = _Key(host, vr)
        checked_name(vr, VrName, "vr", "give the name that its host's configuration has")
        contract = as_stored(contract)
        with self._database.write() as connection:
            keep_classes(connection, classes_of(contract))
            keep_tenant(connection, contract.tenant)
            entry = _host(connection, key, seen_on)
            row = _row(connection, key)
            self._require_right(connection, host, vr, _held(row, key), contract)
            _expect(row, key, if_version)
            if if_version is None:
                refuse(_too_many(connection, host))
            refuse(self._checked(connection, key, contract, entry).problems)
            stored = Stored(contract, self._change(connection, key, row, contract, actor))
            if entry is not None and host == ANYWHERE and home_of(connection, vr) is None:
                settle(connection, self._database, {vr: entry.name}, self._clock())
            keep(connection, answering, stored)
        return stored

    def remove(self, host: str, vr: str, if_version: int, actor: By) -> None:
        """Remove a contract, and end its router's exemption.

        Raises:
            Unknown: there is no such host or contract.
            Stale: it was changed since that version.
        """
        key = _Key(host, vr)
        with self._database.write() as connection:
            _host(connection, key)
            row = _row(connection, key)
            if row is None or row.contract is None:
                raise _unknown(key)
            self._require_right(connection, host, vr, _held(row, key), None)
            _expect(row, key, if_version)
            author = Author(self._clock(), actor)
            cleared = forget_router(connection, host, vr, author)
            self._change(connection, key, row, None, actor)
            if host == ANYWHERE:
                forget(connection, [vr])
            write_events(connection, cleared, author.at)

    def _require_right(
        self,
        connection: Connection,
        host: str,
        vr: str,
        before: Contract | None,
        after: Contract | None,
    ) -> None:
        """Refuse what the client may not change; here it may change everything.

        This is called in the transaction of the change: what was read earlier may be outdated.

        Args:
            connection: of the transaction.
            host: of the contract.
            vr: likewise.
            before: the contract that is there; None if there is none.
            after: the new one; None removes it.
        """

    def history(
        self, host: str, vr: str, before: int | None = None, limit: int | None = None
    ) -> list[Revision]:
        """Return revisions, the latest first; raises Unknown if there never was one.

        Args:
            host: as of `put`.
            vr: likewise.
            before: only versions before this one.
            limit: how many at most.
        """
        table, key = tables.revisions, _Key(host, vr)
        query = select(table).where(table.c.host == host, table.c.vr == vr)
        query = query.order_by(table.c.version.desc()).limit(limit)
        with self._database.read() as connection:
            if _row(connection, key) is None:
                raise _unknown(key)
            if before is not None:
                query = query.where(table.c.version < before)
            rows = connection.execute(query).all()
        return [
            Revision(row.version, _contract(row, f"contract {key}"), row.at, row.by) for row in rows
        ]

    def prune(self, before: datetime) -> int:
        """Remove revisions that were superseded before an instant, and contracts removed before it.

        What was in force at that instant or later is kept, however old it is: reports need it.

        Returns:
            Number of removed versions; the current one is always kept.
        """
        removed = 0
        while some := self._prune_some(before):
            removed += some
        return removed

    def _prune_some(self, before: datetime) -> int:
        contracts, revisions = tables.contracts, tables.revisions
        same = (contracts.c.host == revisions.c.host) & (contracts.c.vr == revisions.c.vr)
        gone = contracts.c.contract.is_(None) & (contracts.c.changed_at < before)
        keys = (revisions.c.host, revisions.c.vr, revisions.c.version)
        old = select(*keys).join(contracts, same).where(gone | _overtaken(before)).limit(AT_ONCE)
        with self._database.write() as connection:
            found = connection.execute(old).all()
            for host, vr, version in found:
                here = (revisions.c.host == host) & (revisions.c.vr == vr)
                connection.execute(delete(revisions).where(here, revisions.c.version == version))
            left = select(revisions.c.version).where(same).exists()
            connection.execute(delete(contracts).where(gone, ~left))
        return len(found)

    def check(
        self, host: str, vr: str, contract: Contract, seen_on: str | None = None
    ) -> "Checked":
        """Return the problems of a contract, as `put` would; writes nothing.

        Raises:
            Unknown: there is no such host.
        """
        with self._database.read() as connection:
            entry = _host(connection, _Key(host, vr), seen_on, lock=False)
            return self._checked(connection, _Key(host, vr), contract, entry)

    def _checked(
        self, connection: Connection, key: "_Key", contract: Contract, host: Host | None
    ) -> "Checked":
        """Check whether a host can keep a contract with its others."""
        book = book_in(connection, self._clock())
        others = {} if host is None else contracts_at(connection, host.name)
        name = name_of(*key)
        problems = (
            *_problems_of(key),
            *problems_with(name, contract, host, others, book),
            *unknown_tenant(connection, contract),
        )
        whole = {**others, name: contract} if counts(contract, book) else others
        return Checked(problems, promised_pps(whole, book), host)

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
        before = _held(row, key)
        version = Version(1 if row is None else row.version + 1, self._clock(), str(actor))
        _set(connection, key, contract, version, is_new=row is None)
        action = "remove" if contract is None else "put"
        change = Change(action, f"contract {key}", before, contract)
        record(connection, version.changed_at, actor, change)
        return version


class _Key(NamedTuple):
    """Key of a contract."""

    host: str
    vr: str

    def __str__(self) -> str:
        return self.vr if self.host == ANYWHERE else f"{self.host}/{self.vr}"


def owner_in(connection: Connection, host: str, vr: str, version: int | None = None) -> str | None:
    """Return the last tenant of a router, as `Contracts.owner`."""
    table, key = tables.revisions, _Key(host, vr)
    query = select(table).where(table.c.host == host, table.c.vr == vr)
    query = query.where(table.c.contract.is_not(None)).order_by(table.c.version.desc())
    if version is not None:
        query = query.where(table.c.version <= version)
    if _row(connection, key) is None:
        raise _unknown(key)
    contract = _held(connection.execute(query.limit(1)).one_or_none(), key)
    return None if contract is None else contract.tenant


def _too_many(connection: Connection, host: str) -> Iterator[Problem]:
    """Yield the problem of too many contracts on a host; the limit on reports is the same."""
    table = tables.contracts
    query = select(func.count()).where(table.c.host == host, table.c.contract.is_not(None))
    most = MOST_FOLLOWING if host == ANYWHERE else MOST_ROUTERS
    if connection.execute(query).scalar_one() >= most:
        where = "that follow routers" if host == ANYWHERE else f"on {host}"
        yield Problem("vr", f"there are {most} contracts {where}", "remove one first")


def _query() -> Any:
    table = tables.contracts
    return select(table).where(table.c.contract.is_not(None)).order_by(table.c.host, table.c.vr)


def _host(
    connection: Connection, key: _Key, seen_on: str | None = None, *, lock: bool = True
) -> Host | None:
    """Return the host of a router, and lock its promises.

    Raises:
        Unknown: there is no such host, of a contract that does not follow its router.
    """
    if key.host != ANYWHERE:
        return entered_host(connection, key.host, lock=lock)
    if lock:
        lock_anywhere(connection)
    home = home_of(connection, key.vr) or seen_on
    try:
        return None if home is None else entered_host(connection, home, lock=lock)
    except Unknown:  # it is being removed
        return None


def _row(connection: Connection, key: _Key) -> Row[Any] | None:
    table = tables.contracts
    query = select(table).where(table.c.host == key.host, table.c.vr == key.vr)
    return connection.execute(query).one_or_none()


def _overtaken(before: datetime) -> Any:
    """Select revisions that a later one of the same contract superseded before an instant."""
    older, later = tables.revisions.c, tables.revisions.alias().c
    same = (later.host == older.host) & (later.vr == older.vr)
    query = select(later.version).where(same, later.version > older.version)
    return query.where(later.at < before).exists()


def _problems_of(key: _Key) -> Iterator[Problem]:
    """Yield the problems of the name of a followed router."""
    if key.host == ANYWHERE and UUID.fullmatch(key.vr) and key.vr != key.vr.lower():
        yield Problem("vr", "a UUID is written in small letters", f"give {key.vr.lower()}")


def _expect(row: Row[Any] | None, key: _Key, if_version: int | None) -> None:
    """Check that a contract has the state that the client expects; raises Taken or Stale."""
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


def _held(row: Row[Any] | None, key: _Key) -> Contract | None:
    return None if row is None else _contract(row, f"contract {key}")


def _contract(row: Row[Any], name: str) -> Contract | None:
    return None if row.contract is None else read(row.contract, Contract, name)


def _stored(row: Row[Any]) -> Stored[Contract]:
    version = Version(row.version, row.changed_at, row.changed_by)
    return Stored(read(row.contract, Contract, f"contract {_Key(row.host, row.vr)}"), version)


def _unknown(key: _Key) -> Unknown:
    return no_contract(key.host, key.vr)


def no_contract(host: str, vr: str) -> Unknown:
    """Return the error for a missing contract."""
    fix = "`policer contract list` lists them"
    return Unknown("contract", f"{host}/{vr}", fix)
