"""Messages that webhooks did not accept: retried, then dead until an operator resends them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, delete, func, select, update

from policer.actor import By
from policer.errors import Unknown
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.guards import epoch_of
from policer.store.database.pruning import prune
from policer.store.database.records import Clock
from policer.store.history.audit import Change, record

MOST_WAITING: Final = 1000
"""Of one webhook that are retried; further unaccepted messages are dead immediately."""
MOST_DEAD: Final = 10_000
"""Of one webhook that are kept; the oldest are dropped."""


class LetterRow(msgspec.Struct, frozen=True):
    """A message that was tried and not accepted; times UTC."""

    id: int
    message: str
    """Its id, by which receivers recognize it."""
    kind: str
    body: str
    attempts: int
    tried_at: datetime
    problem: str


class Tried(msgspec.Struct, frozen=True):
    """Result of an attempt."""

    message: str
    kind: str
    body: str
    attempts: int
    problem: str = ""
    """"" if it was accepted."""
    next_at: datetime | None = None
    """Time of the next retry; None if it was accepted, or is dead."""
    letter: int | None = None
    """The row that it came from; None for a first attempt."""


class Resent(msgspec.Struct, frozen=True):
    """Record in the audit log of messages that are sent again."""

    messages: int


class Letters:
    """The table of unaccepted messages."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def due(self, webhook: str, now: datetime, limit: int) -> list[LetterRow]:
        """Return messages due for a retry, the longest due first."""
        table = tables.webhook_letters
        query = select(table).where(table.c.webhook == webhook, table.c.next_at <= now)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(table.c.next_at, table.c.id).limit(limit))
            return [_row(row) for row in rows]

    def settle(self, webhook: str, tried: Sequence[Tried], position: int, epoch: int) -> bool:
        """Record the results of attempts, and the position in the events, all or nothing.

        Args:
            webhook: its id; a webhook that was removed meanwhile is skipped.
            tried: the attempts.
            position: the id of the last event that was tried, or is not of its kinds.
            epoch: of the leader that made them.

        Returns:
            False, with nothing written, if another epoch has begun.
        """
        table, now = tables.webhooks, self._clock()
        state: dict[str, Any] = {"position": position}
        if tried:
            state |= {"tried_at": now, "problem": tried[-1].problem}
        with self._database.write() as connection:
            if epoch_of(connection) != epoch:
                return False
            mine = update(table).where(table.c.id == webhook).values(state)
            if not connection.execute(mine).rowcount:
                return True
            room = MOST_WAITING - _waiting(connection, webhook)
            for one in tried:
                room -= self._settle(connection, webhook, one, now, room=room)
            if any(one.problem for one in tried):
                _forget_oldest(connection, webhook)
        return True

    def dead(self, webhook: str, after: int | None, limit: int) -> list[LetterRow]:
        """Return messages that are no longer retried automatically, the latest first.

        Raises:
            Unknown: there is no such webhook.
        """
        table = tables.webhook_letters
        query = select(table).where(table.c.webhook == webhook, table.c.next_at.is_(None))
        if after is not None:
            query = query.where(table.c.id < after)
        with self._database.read() as connection:
            _require(connection, webhook)
            rows = connection.execute(query.order_by(table.c.id.desc()).limit(limit))
            return [_row(row) for row in rows]

    def redeliver(self, webhook: str, ids: Collection[int] | None, actor: By) -> int:
        """Retry dead messages, from the first attempt on; return how many.

        Args:
            webhook: its id.
            ids: which; None is all, the oldest first, as far as the queue has room.
            actor: actor of the change.

        Raises:
            Unknown: there is no such webhook.
        """
        table, now = tables.webhook_letters, self._clock()
        with self._database.write() as connection:
            _require(connection, webhook)
            room = max(0, MOST_WAITING - _waiting(connection, webhook))
            dead = select(table.c.id).where(table.c.webhook == webhook, table.c.next_at.is_(None))
            if ids is not None:
                dead = dead.where(table.c.id.in_(sorted(ids)))
            chosen = dead.order_by(table.c.id).limit(room).scalar_subquery()
            again = update(table).where(table.c.id.in_(chosen))
            count = connection.execute(again.values(attempts=0, next_at=now)).rowcount
            if count:
                change = Change("redeliver", f"webhook {webhook}", None, Resent(count))
                record(connection, now, actor, change)
        return count

    def prune(self, before: datetime) -> int:
        """Remove dead messages that were tried last before an instant; return how many."""
        columns = tables.webhook_letters.c
        old = (columns.tried_at < before) & columns.next_at.is_(None)
        return prune(self._database, tables.webhook_letters, old)

    @staticmethod
    def _settle(
        connection: Connection, webhook: str, one: Tried, now: datetime, *, room: int
    ) -> int:
        """Record one attempt; return by how many the waiting messages increase."""
        table = tables.webhook_letters
        known = None if one.letter is None else table.c.id == one.letter
        if not one.problem:
            if known is not None:
                connection.execute(delete(table).where(known))
            return 0
        state = {"attempts": one.attempts, "tried_at": now, "problem": one.problem}
        if known is not None:
            connection.execute(update(table).where(known).values(**state, next_at=one.next_at))
            return 0
        next_at = one.next_at if room > 0 else None
        whose = {"webhook": webhook, "message": one.message, "kind": one.kind, "body": one.body}
        connection.execute(table.insert().values(**whose, **state, next_at=next_at))
        return int(next_at is not None)


def _waiting(connection: Connection, webhook: str) -> int:
    table = tables.webhook_letters
    query = select(func.count()).where(table.c.webhook == webhook, table.c.next_at.is_not(None))
    return int(connection.execute(query).scalar_one())


def _forget_oldest(connection: Connection, webhook: str) -> None:
    """Remove dead messages above the limit."""
    table = tables.webhook_letters
    dead = select(table.c.id).where(table.c.webhook == webhook, table.c.next_at.is_(None))
    first = connection.execute(dead.order_by(table.c.id.desc()).offset(MOST_DEAD).limit(1)).scalar()
    if first is not None:
        old = (table.c.webhook == webhook) & table.c.next_at.is_(None) & (table.c.id <= first)
        connection.execute(delete(table).where(old))


def _require(connection: Connection, webhook: str) -> None:
    """Check that a webhook exists, and lock it until the transaction ends."""
    table = tables.webhooks
    query = select(table.c.id).where(table.c.id == webhook).with_for_update(read=True)
    if connection.execute(query).first() is None:
        raise Unknown("webhook", webhook, "`policer webhook list` lists them")


def _row(row: Row[Any]) -> LetterRow:
    return LetterRow(
        row.id, row.message, row.kind, row.body, row.attempts, row.tried_at, row.problem
    )
