"""Webhooks as created by administrators; only the delivery gets their secrets."""

import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from sqlalchemy import Connection, Row, case, delete, func, select

from policer.actor import By
from policer.errors import Invalid, Problem, Taken, Unknown
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.records import Clock
from policer.store.history.audit import Change, record

MOST_WEBHOOKS: Final = 50
ALL: Final = "*"
"""Stands for every kind of event."""


class WebhookRow(msgspec.Struct, frozen=True):
    """A webhook, without its secret; times UTC."""

    id: str
    name: str
    url: str
    kinds: tuple[str, ...]
    """Kinds of events that are sent; * is every kind."""
    created_at: datetime
    created_by: str
    position: int
    """Id of the last event that was sent, or is kept for a retry."""
    waiting: int
    """Messages that were not accepted and are retried."""
    dead: int
    """Messages that were not accepted and are no longer retried automatically."""
    tried_at: datetime | None
    """When a message was tried last."""
    problem: str
    """The problem of that attempt; "" if it was accepted."""


class Endpoint(msgspec.Struct, frozen=True):
    """Destination of messages, and key of their signatures."""

    id: str
    name: str
    url: str
    secret: str
    kinds: tuple[str, ...]
    position: int
    next_at: datetime | None
    """Next retry of a message; None without one."""


class Seen(msgspec.Struct, frozen=True):
    """Fields for the audit log: no secret, and not the URL's path, which may be one."""

    name: str
    origin: str
    kinds: tuple[str, ...]


class Webhooks:
    """The table of webhooks."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(
        self, name: str, url: str, kinds: Collection[str], secret: str, actor: By
    ) -> WebhookRow:
        """Create a webhook; events from now on are sent.

        Raises:
            Taken: there is one of that name.
            Invalid: the limit of webhooks is reached.
        """
        table, now, new = tables.webhooks, self._clock(), secrets.token_hex(6)
        values = {
            "id": new,
            "name": name,
            "url": url,
            "kinds": " ".join(sorted(set(kinds))),
            "secret": secret,
            "created_at": now,
            "created_by": str(actor),
            "problem": "",
        }
        with self._database.write() as connection:
            _check_room(connection)
            if connection.execute(select(table.c.id).where(table.c.name == name)).first():
                raise Taken("webhook", name)
            newest = select(func.coalesce(func.max(tables.events.c.id), 0))
            values["position"] = connection.execute(newest).scalar_one()
            connection.execute(table.insert().values(values))
            row = _one(connection, new)
            record(connection, now, actor, Change("add", f"webhook {new}", None, _seen(row)))
        return row

    def all(self) -> list[WebhookRow]:
        """Return every webhook, by name."""
        with self._database.read() as connection:
            return [_row(row) for row in connection.execute(_rows())]

    def get(self, webhook: str) -> WebhookRow:
        """Return a webhook by its id; raises Unknown."""
        with self._database.read() as connection:
            return _one(connection, webhook)

    def remove(self, webhook: str, actor: By) -> None:
        """Stop sending, and drop what waits; raises Unknown."""
        letters = tables.webhook_letters
        with self._database.write() as connection:
            # The webhook before its letters, like all that change both.
            mine = select(tables.webhooks.c.id).where(tables.webhooks.c.id == webhook)
            connection.execute(mine.with_for_update())
            row = _one(connection, webhook)
            connection.execute(delete(letters).where(letters.c.webhook == webhook))
            connection.execute(delete(tables.webhooks).where(tables.webhooks.c.id == webhook))
            change = Change("remove", f"webhook {webhook}", _seen(row), None)
            record(connection, self._clock(), actor, change)

    def endpoint(self, webhook: str) -> Endpoint:
        """Return the destination of one webhook, only for the delivery; raises Unknown."""
        for endpoint in self.endpoints():
            if endpoint.id == webhook:
                return endpoint
        raise _unknown(webhook)

    def endpoints(self) -> list[Endpoint]:
        """Return the destinations of all webhooks, only for the delivery."""
        table, letters = tables.webhooks, tables.webhook_letters
        soonest = (
            select(func.min(letters.c.next_at)).where(letters.c.webhook == table.c.id)
        ).scalar_subquery()
        with self._database.read() as connection:
            rows = connection.execute(select(table, soonest.label("soonest"))).all()
        return [
            Endpoint(
                row.id,
                row.name,
                row.url,
                row.secret,
                tuple(row.kinds.split()),
                row.position,
                row.soonest,
            )
            for row in rows
        ]


def _check_room(connection: Connection) -> None:
    if connection.execute(select(func.count()).select_from(tables.webhooks)).scalar_one() >= (
        MOST_WEBHOOKS
    ):
        fix = "remove one that is not used: `policer webhook list`"
        raise Invalid([Problem("name", f"there are {MOST_WEBHOOKS} webhooks already", fix)])


def _rows() -> Any:
    table, letters = tables.webhooks, tables.webhook_letters
    waiting = func.coalesce(func.sum(case((letters.c.next_at.is_not(None), 1), else_=0)), 0)
    return (
        select(table, waiting.label("waiting"), func.count(letters.c.id).label("letters"))
        .select_from(table.outerjoin(letters))
        .group_by(table.c.id)
        .order_by(table.c.name)
    )


def _one(connection: Connection, webhook: str) -> WebhookRow:
    row = connection.execute(_rows().where(tables.webhooks.c.id == webhook)).one_or_none()
    if row is None:
        raise _unknown(webhook)
    return _row(row)


def _unknown(webhook: str) -> Unknown:
    return Unknown("webhook", webhook, "`policer webhook list` lists them")


def _row(row: Row[Any]) -> WebhookRow:
    return WebhookRow(
        id=row.id,
        name=row.name,
        url=row.url,
        kinds=tuple(row.kinds.split()),
        created_at=row.created_at,
        created_by=row.created_by,
        position=row.position,
        waiting=int(row.waiting),
        dead=row.letters - int(row.waiting),
        tried_at=row.tried_at,
        problem=row.problem,
    )


def _seen(row: WebhookRow) -> Seen:
    parts = urlsplit(row.url)
    return Seen(row.name, f"{parts.scheme}://{parts.hostname}", row.kinds)
