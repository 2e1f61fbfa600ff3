"""Hosts as entered by operators; changes that contradict contracts are refused."""

from typing import Any

from sqlalchemy import Connection, Row, delete, select
from sqlalchemy.exc import IntegrityError

from policer.actor import By
from policer.contracts.admission import problems_of_host
from policer.contracts.contract import Contract
from policer.contracts.host import Host, clashes, contradictions, way_to
from policer.contracts.promised import ANYWHERE
from policer.errors import Forbidden, Problem, Stale, Taken, Unknown
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.records import Clock, Stored, Version, as_stored, read, refuse, text_of
from policer.store.history.audit import Change, record
from policer.store.history.events import write_events
from policer.store.inventory.override_rows import Author, forget_host
from policer.store.inventory.promises import book_in, contracts_at, contracts_on
from policer.store.service.idempotency import Answering, keep


class Hosts:
    """The table of hosts."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> list[Stored[Host]]:
        """Return every host, by name."""
        query = select(tables.hosts).where(tables.hosts.c.entry.is_not(None))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(tables.hosts.c.name)).all()
        return [_stored(row) for row in rows]

    def page(self, after: str | None, limit: int) -> list[Stored[Host]]:
        """Return hosts by name, from behind a name on.

        Args:
            after: the last name of the page before; None begins at the beginning.
            limit: how many at most.
        """
        query = select(tables.hosts).where(tables.hosts.c.entry.is_not(None))
        if after is not None:
            query = query.where(tables.hosts.c.name > after)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(tables.hosts.c.name).limit(limit)).all()
        return [_stored(row) for row in rows]

    def get(self, name: str) -> Stored[Host]:
        """Return a host; raises Unknown."""
        with self._database.read() as connection:
            return present(_row(connection, name), name)

    def add(self, host: Host, actor: By, answering: Answering[Host] | None = None) -> Stored[Host]:
        """Add a host.

        Args:
            host: its entry.
            actor: actor of the change.
            answering: what to keep for repetitions of the request.

        Raises:
            Taken: there is one of that name.
            Invalid: its entry contradicts itself, or its daemon is another host's.
        """
        host = as_stored(host)
        refuse(contradictions(host))
        with self._database.write() as connection:
            others = _others(connection)
            row = _row(connection, host.name, lock=True)
            if row is not None and row.entry is not None:
                raise Taken("host", host.name)
            refuse(clashes(host, others))
            version = self._next(row, actor)
            if row is None:
                self._insert(connection, host, version)
            else:
                _set(connection, host.name, host, version)
            change = Change("add", f"host {host.name}", None, host)
            record(connection, version.changed_at, actor, change)
            stored = Stored(host, version)
            keep(connection, answering, stored)
        return stored

    def replace(
        self, host: Host, if_version: int, actor: By, *, redirects: bool = True
    ) -> Stored[Host]:
        """Change a host's entry.

        Args:
            host: its new entry.
            if_version: the version to replace.
            actor: actor of the change.
            redirects: whether the client may change the addresses and the key of its daemon.

        Raises:
            Unknown: there is none of that name.
            Stale: it was changed since that version.
            Forbidden: the way to its daemon would change.
            Invalid: the entry contradicts itself, or its capacity is less than was promised.
        """
        host = as_stored(host)
        refuse(contradictions(host))
        with self._database.write() as connection:
            others = _others(connection)
            row = _row(connection, host.name, lock=True)
            if not redirects and way_to(host) != way_to(present(row, host.name).value):
                raise Forbidden("admin")
            before = _expected(row, host.name, if_version)
            if _is_less(host, before):
                promised = contracts_at(connection, host.name)
                refuse(problems_of_host(host, promised, book_in(connection, self._clock())))
            if way_to(host) != way_to(before):
                refuse(clashes(host, others))
            version = self._next(row, actor)
            _set(connection, host.name, host, version)
            change = Change("replace", f"host {host.name}", before, host)
            record(connection, version.changed_at, actor, change)
        return Stored(host, version)

    def remove(self, name: str, if_version: int, actor: By) -> None:
        """Remove a host with its punishments and overrides.

        Raises:
            Unknown: there is none of that name.
            Stale: it was changed since that version.
            Invalid: it has contracts.
        """
        with self._database.write() as connection:
            row = _row(connection, name, lock=True)
            before = _expected(row, name, if_version)
            refuse(_promised(contracts_on(connection, name)))
            version = self._next(row, actor)
            _set(connection, name, None, version)
            for table in (tables.punishments, tables.homes):
                connection.execute(delete(table).where(table.c.host == name))
            cleared = forget_host(connection, name, Author(version.changed_at, actor))
            change = Change("remove", f"host {name}", before, None)
            record(connection, version.changed_at, actor, change)
            write_events(connection, cleared, version.changed_at)

    def _next(self, row: Row[Any] | None, actor: By) -> Version:
        return Version(1 if row is None else row.version + 1, self._clock(), str(actor))

    def _insert(self, connection: Connection, host: Host, version: Version) -> None:
        """Add a new host; on PostgreSQL another client may be adding it, too."""
        values = {"name": host.name, "entry": text_of(host), **_columns(version)}
        try:
            connection.execute(tables.hosts.insert().values(values))
        except IntegrityError:
            raise Taken("host", host.name) from None


def _others(connection: Connection) -> list[Host]:
    """Return all hosts, and lock against additions until the transaction ends.

    Call it before locking any host, like the leader's writes: otherwise the two could deadlock.
    """
    connection.execute(select(tables.leadership.c.epoch).with_for_update())
    query = select(tables.hosts).where(tables.hosts.c.entry.is_not(None))
    return [_stored(row).value for row in connection.execute(query)]


def entered_host(connection: Connection, name: str, *, lock: bool = True) -> Host:
    """Return a host.

    Args:
        connection: of the transaction.
        name: of the host.
        lock: whether to keep others from changing it or its contracts until that ends.

    Raises:
        Unknown: there is none of that name.
    """
    return present(_row(connection, name, lock=lock), name).value


def lock_anywhere(connection: Connection) -> None:
    """Lock contracts that follow routers against changes until the transaction ends."""
    _row(connection, ANYWHERE, lock=True)


def present(row: Row[Any] | None, name: str) -> Stored[Host]:
    """Return a row's host; raises Unknown if there is none."""
    if row is None or row.entry is None:
        raise no_host(name)
    return _stored(row)


def no_host(name: str) -> Unknown:
    """Return the error for a missing host."""
    return Unknown("host", name, "`policer host list` lists them")


def _row(connection: Connection, name: str, *, lock: bool = False) -> Row[Any] | None:
    query = select(tables.hosts).where(tables.hosts.c.name == name)
    return connection.execute(query.with_for_update() if lock else query).one_or_none()


def _expected(row: Row[Any] | None, name: str, if_version: int) -> Host:
    """Return the entry that a client wants to change; raises Unknown, or Stale."""
    stored = present(row, name)
    if stored.version.number != if_version:
        raise Stale("host", name, stored.version.number)
    return stored.value


def _is_less(host: Host, before: Host) -> bool:
    """Whether a host may promise less than before; routers may have brought too much."""
    return host.capacity_pps < before.capacity_pps or host.overcommit < before.overcommit


def _promised(contracts: dict[str, Contract]) -> list[Problem]:
    if not contracts:
        return []
    some = ", ".join(sorted(contracts)[:5]) + (", ..." if len(contracts) > 5 else "")
    return [Problem("name", f"it has contracts: {some}", "remove them first")]


def _set(connection: Connection, name: str, host: Host | None, version: Version) -> None:
    entry = None if host is None else text_of(host)
    change = tables.hosts.update().where(tables.hosts.c.name == name)
    connection.execute(change.values(entry=entry, **_columns(version)))


def _columns(version: Version) -> dict[str, Any]:
    return {
        "version": version.number,
        "changed_at": version.changed_at,
        "changed_by": version.changed_by,
    }


def _stored(row: Row[Any]) -> Stored[Host]:
    version = Version(row.version, row.changed_at, row.changed_by)
    return Stored(read(row.entry, Host, f"host {row.name}"), version)
