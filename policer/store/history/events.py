"""What happened, for operators to read later: pages, a stream, and an end to what is old."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, func, select, text

from policer.contracts.reach import UNLIMITED, Reach
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.pruning import prune
from policer.store.database.reaching import Columns, reaching
from policer.store.database.records import Clock
from policer.store.database.within import ANY_TIME, Time, within

MOST_WORDS: Final = 1000
"""Characters of an event's words; a daemon may have its say, but no more."""
_ADVISORY_KEY: Final = 0x7874635F65766E74
"""Of PostgreSQL's lock that makes events visible in the order of their numbers ("xtc_evnt")."""


class Event(msgspec.Struct, frozen=True):
    """Something worth knowing."""

    host: str
    """"" where it is about no host in particular."""
    kind: str
    words: str
    vr: str | None = None
    actor: str = "policer"
    at: datetime | None = None
    """When it happened; None is when it is stored."""
    tenant: str | None = None
    """Tenant of the router then; None without a router or tenant."""


class EventRow(msgspec.Struct, frozen=True):
    """An event as it was stored."""

    id: int
    at: datetime
    """UTC."""
    host: str
    kind: str
    words: str
    vr: str | None
    actor: str


class Events:
    """The log of events."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(self, events: Sequence[Event]) -> None:
        """Store events, all or none; their ids rise in this order."""
        if not events:
            return
        now = self._clock()
        with self._database.write() as connection:
            write_events(connection, events, now)

    def page(
        self,
        after: int | None,
        limit: int,
        host: str | None = None,
        vr: str | None = None,
        kind: str | None = None,
        *,
        reach: Reach = UNLIMITED,
        time: Time = ANY_TIME,
    ) -> list[EventRow]:
        """Return events, the latest first.

        Args:
            after: the id of the last event of the page before; None begins with the latest.
            limit: how many at most.
            host: of this host alone.
            vr: of this router alone.
            kind: of this kind alone.
            time: when it happened.
            reach: of what a token with this reach may see alone.
        """
        table = tables.events
        filters = (*_filters(host, vr, kind), *within(table, time), *self._reaching(reach))
        query = select(table).where(*filters)
        query = query.order_by(table.c.id.desc()).limit(limit)
        if after is not None:
            query = query.where(table.c.id < after)
        return self._rows(query)

    def since(
        self,
        last_id: int,
        limit: int,
        host: str | None = None,
        vr: str | None = None,
        kind: str | None = None,
        *,
        time: Time = ANY_TIME,
        reach: Reach = UNLIMITED,
    ) -> list[EventRow]:
        """Return events after the one of this id, the oldest first; the rest is as of `page`."""
        table = tables.events
        filters = (*_filters(host, vr, kind), *within(table, time), *self._reaching(reach))
        query = select(table).where(table.c.id > last_id, *filters)
        return self._rows(query.order_by(table.c.id).limit(limit))

    def fresh(self, last_id: int, limit: int, kinds: Collection[str] | None) -> list[EventRow]:
        """Return events of some kinds after the one of this id, the oldest first; None is any."""
        table = tables.events
        query = select(table).where(table.c.id > last_id)
        if kinds is not None:
            query = query.where(table.c.kind.in_(sorted(kinds)))
        return self._rows(query.order_by(table.c.id).limit(limit))

    def newest(self) -> int:
        """Return the id of the latest event of all, seen or not; 0 where there is none."""
        with self._database.read() as connection:
            query = select(func.coalesce(func.max(tables.events.c.id), 0))
            return int(connection.execute(query).scalar_one())

    def prune(self, keep_days: float) -> int:
        """Remove events older than so many days; return how many."""
        before = self._clock() - timedelta(days=keep_days)
        return prune(self._database, tables.events, tables.events.c.at < before)

    def _reaching(self, reach: Reach) -> Iterator[ColumnElement[bool]]:
        """Yield what keeps to a reach: tenants as they were when things happened."""
        columns = tables.events.c
        return reaching(self._database, reach, Columns(columns.host, columns.vr, columns.tenant))

    def _rows(self, query: Any) -> list[EventRow]:
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(query)]


def write_events(connection: Connection, events: Sequence[Event], now: datetime) -> None:
    """Store events in a transaction, as the last that it does: others wait for its end."""
    if not events:
        return
    if connection.dialect.name == "postgresql":
        # Numbers are given before a commit: without this, a reader that goes by the
        # highest number it saw would miss a lower one that is committed after it.
        lock = text("SELECT pg_advisory_xact_lock(:key)")
        connection.execute(lock, {"key": _ADVISORY_KEY})
    connection.execute(tables.events.insert(), [_values(event, now) for event in events])


def _filters(host: str | None, vr: str | None, kind: str | None) -> list[ColumnElement[bool]]:
    columns = tables.events.c
    given = ((columns.host, host), (columns.vr, vr), (columns.kind, kind))
    return [column == wanted for column, wanted in given if wanted is not None]


def _values(event: Event, now: datetime) -> dict[str, Any]:
    return {
        "at": event.at or now,
        "host": event.host,
        "vr": event.vr,
        "kind": event.kind,
        "words": event.words[:MOST_WORDS],
        "actor": event.actor,
        "tenant": event.tenant,
    }


def _row(row: Row[Any]) -> EventRow:
    return EventRow(row.id, row.at, row.host, row.kind, row.words, row.vr, row.actor)
