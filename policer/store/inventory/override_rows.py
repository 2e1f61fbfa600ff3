"""The rows of the table of overrides: read, written and ended within a transaction."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Row, and_, select

from policer.actor import By
from policer.contracts.overrides import Kind, Override, end_words
from policer.errors import Stale, Taken, Unknown
from policer.store.database import tables
from policer.store.history.events import Event

FIX = "`policer override list` shows those that stand"


class OverrideKey(NamedTuple):
    """Target of an override; "" is no host, or no router, in particular."""

    kind: Kind
    host: str = ""
    vr: str = ""

    @property
    def name(self) -> str:
        """Name of the target."""
        return "/".join(filter(None, (self.host, self.vr))) or "of the fleet"

    @property
    def target(self) -> str:
        """Name of the target in the audit log."""
        return f"{self.kind} {self.name}" if self.host or self.vr else self.kind


class Author(NamedTuple):
    """Actor and time of a change of an override."""

    at: datetime
    by: By


BRAKE, EPOCH = OverrideKey("brake"), OverrideKey("epoch")


def key_of(override: Override) -> OverrideKey:
    """Return the target of an override."""
    return OverrideKey(override.kind, override.host, override.vr)


def read_row(connection: Connection, key: OverrideKey, *, lock: bool = False) -> Row[Any] | None:
    """Return the row of an override, whether one is set or not."""
    query = select(tables.overrides).where(*_is(key))
    return connection.execute(query.with_for_update() if lock else query).one_or_none()


def read_all(connection: Connection) -> list[Override]:
    """Return every override that is set, by kind, host and router."""
    return [override for row in _rows(connection) if (override := override_of(row))]


def override_of(row: Row[Any] | None) -> Override | None:
    """Return the override of a row; None if none is set."""
    if row is None or row.mode is None:
        return None
    return Override(
        kind=row.kind,
        mode=row.mode,
        host=row.host,
        vr=row.vr,
        until=row.until,
        reason=row.reason,
        above=row.above,
        by=row.changed_by,
        at=row.changed_at,
        version=row.version,
    )


def expect(row: Row[Any] | None, key: OverrideKey, if_version: int | None) -> None:
    """Check that an override has the state that the client expects.

    Raises:
        Taken: there is one already.
        Stale: it was changed, cleared or has expired since that version.
    """
    there = override_of(row) is not None
    if if_version is None:
        if there:
            raise Taken(key.kind, key.name)
        return
    version = 0 if row is None else int(row.version)
    if version != if_version or not (there or key == BRAKE):
        raise Stale(key.kind, key.name, version)


def required(row: Row[Any] | None, key: OverrideKey) -> Override:
    """Return the override of a row; raises Unknown if none is set."""
    override = override_of(row)
    if override is None:
        raise Unknown(key.kind, key.name, FIX)
    return override


def write(
    connection: Connection,
    key: OverrideKey,
    row: Row[Any] | None,
    after: Override | None,
    author: Author,
) -> Override | None:
    """Write an override into a row, None to clear it; return it as stored."""
    version = 1 if row is None else int(row.version) + 1
    values = {
        "mode": None if after is None else after.mode,
        "above": None if after is None else after.above,
        "until": None if after is None else after.until,
        "reason": "" if after is None else after.reason,
        "version": version,
        "changed_at": author.at,
        "changed_by": str(author.by),
    }
    table = tables.overrides
    if row is None:
        connection.execute(table.insert().values(**key._asdict(), **values))
    else:
        connection.execute(table.update().where(*_is(key)).values(**values))
    return after and replace(after, version=version, at=author.at, by=str(author.by))


def end_due(connection: Connection, now: datetime) -> list[Event]:
    """Clear expired overrides; return the events, to be written last."""
    ended = _clear(connection, tables.overrides.c.until <= now, Author(now, "policer"))
    return [
        _override_event("override_expired", one, end_words(one.kind), "policer") for one in ended
    ]


def forget_host(connection: Connection, host: str, author: Author) -> list[Event]:
    """Clear the overrides of a removed host; return the events, to be written last."""
    gone = _clear(connection, tables.overrides.c.host == host, author)
    return [
        _override_event("override_cleared", one, "the host was removed", str(author.by))
        for one in gone
    ]


def forget_router(connection: Connection, host: str, vr: str, author: Author) -> list[Event]:
    """Clear the overrides of a router that loses its contract; return the events, as above.

    Its next contract may belong to another customer.
    """
    columns = tables.overrides.c
    gone = _clear(connection, and_(columns.host == host, columns.vr == vr), author)
    return [
        _override_event("override_cleared", one, "its contract was removed", str(author.by))
        for one in gone
    ]


def _clear(connection: Connection, which: ColumnElement[bool], author: Author) -> list[Override]:
    """Clear overrides, always in the same order, so that no two wait for each other."""
    found = []
    for row in _rows(connection, which, lock=True):
        if override := override_of(row):
            write(connection, key_of(override), row, None, author)
            found.append(override)
    return found


def _rows(
    connection: Connection, *which: ColumnElement[bool], lock: bool = False
) -> Sequence[Row[Any]]:
    table = tables.overrides
    query = select(table).where(table.c.mode.is_not(None), *which)
    query = query.order_by(table.c.kind, table.c.host, table.c.vr)
    return connection.execute(query.with_for_update() if lock else query).all()


def _is(key: OverrideKey) -> Iterator[ColumnElement[bool]]:
    columns = tables.overrides.c
    yield from (columns.kind == key.kind, columns.host == key.host, columns.vr == key.vr)


def _override_event(kind: str, override: Override, words: str, actor: str) -> Event:
    return Event(override.host, kind, words, override.vr or None, actor)
