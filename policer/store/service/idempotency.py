"""Requests that must not take effect twice: their keys and answers.

The answer is kept in the transaction of its change: after any crash, either both exist or neither.
A request that arrives while the first one of its key is in progress waits for its answer.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from sqlalchemy import Connection, Row, delete, select

from policer.errors import KeyReused, StoreBusy, StoreGone
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.records import Clock, Stored
from policer.store.service.tokens import SECRET

T = TypeVar("T")
KEPT: Final = timedelta(hours=24)
MOST_ANSWERS: Final = 1000
"""Answers that are kept for one token, the newest: each may have as many bytes as a refusal."""
ABANDONED: Final = timedelta(seconds=60)
"""A request without an answer after this time died with its policer; its key is free again."""
WAIT_S: Final = 0.05
MOST_WAITS: Final = 100


class StoredAnswer(msgspec.Struct, frozen=True):
    """Answer to the first request of a key."""

    status: int
    headers: dict[str, str]
    body: bytes


class Claim(NamedTuple):
    """A key held by a request until it is answered."""

    key: str
    token_id: str
    at: datetime
    """Time of the claim: distinguishes it from a later claim to the same key."""


class Answering(NamedTuple, Generic[T]):
    """What a change keeps for repetitions of its request."""

    claim: Claim
    answer: Callable[[Stored[T]], StoredAnswer]
    """Makes the answer from the stored entry."""


class Idempotency:
    """The table of keys; each token has its own."""

    def __init__(
        self, database: Database, clock: Clock, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._database, self._clock, self._sleep = database, clock, sleep

    def begin(self, key: str, token_id: str, request_hash: str) -> Claim | StoredAnswer:
        """Claim a key for a request, or return its earlier answer.

        With a claim, carry out the request. Then the change itself keeps its answer (`Answering`),
        or call `finish` or `abandon`.

        Raises:
            KeyReused: the key was used with another request.
            StoreBusy: the first request of the key is still in progress.
        """
        for _ in range(MOST_WAITS):
            claim = Claim(key, token_id, self._clock())
            with self._database.write() as connection:
                if self._claim(connection, claim, request_hash):
                    return claim
                row = _row(connection, key, token_id)
            answer = None if row is None else _answer(row, key, request_hash)
            if answer is not None:
                return answer
            self._sleep(WAIT_S)
        raise StoreBusy(f"the first request with idempotency key {key} is still being carried out")

    def finish(self, claim: Claim, answer: StoredAnswer) -> None:
        """Keep the answer of a request that changed nothing; raises what `keep` raises."""
        with self._database.write() as connection:
            _keep(connection, claim, answer)

    def abandon(self, claim: Claim) -> None:
        """Free the key of a request that changed nothing, so that it can be retried."""
        with self._database.write() as connection:
            connection.execute(delete(tables.idempotency).where(*_open(claim)))

    def _claim(self, connection: Connection, claim: Claim, request_hash: str) -> bool:
        """Take a key, unless another request has it; keys that are too old are free."""
        table = tables.idempotency
        dead = table.c.status.is_(None) & (table.c.at < claim.at - ABANDONED)
        connection.execute(delete(table).where((table.c.at < claim.at - KEPT) | dead))
        _forget_oldest(connection, claim.token_id)
        values = {**claim._asdict(), "request_hash": request_hash}
        insert = self._database.insert(table).values(values).on_conflict_do_nothing()
        counted = {"preserve_rowcount": True}
        return connection.execute(insert, execution_options=counted).rowcount == 1


def keep(connection: Connection, answering: Answering[T] | None, stored: Stored[T]) -> None:
    """Keep the answer of a change, in its transaction, if its request may be repeated.

    Raises:
        StoreBusy: the claim expired, and a repetition of the request has the key.
    """
    if answering is not None:
        _keep(connection, answering.claim, answering.answer(stored))


def _keep(connection: Connection, claim: Claim, answer: StoredAnswer) -> None:
    """Write an answer; a token's secret in it is blanked, byte for byte."""
    values = {
        "status": answer.status,
        "headers": msgspec.json.encode(answer.headers).decode(),
        "body": _blot(answer.body),
    }
    change = tables.idempotency.update().where(*_open(claim))
    if connection.execute(change.values(**values)).rowcount != 1:
        raise StoreBusy(f"a repetition of the request has its idempotency key {claim.key} now")


def _forget_oldest(connection: Connection, token_id: str) -> None:
    """Remove the answers of a token that are too many: otherwise it could fill the disk."""
    table = tables.idempotency
    answered = table.c.token_id == token_id, table.c.status.is_not(None)
    newest = select(table.c.at).where(*answered).order_by(table.c.at.desc())
    oldest = connection.execute(newest.offset(MOST_ANSWERS - 1).limit(1)).scalar()
    if oldest is not None:
        connection.execute(delete(table).where(*answered, table.c.at < oldest))


def _row(connection: Connection, key: str, token_id: str) -> Row[Any] | None:
    query = select(tables.idempotency).where(*_is(key, token_id))
    return connection.execute(query).one_or_none()


def _is(key: str, token_id: str) -> tuple[Any, Any]:
    table = tables.idempotency
    return table.c.key == key, table.c.token_id == token_id


def _open(claim: Claim) -> tuple[Any, ...]:
    table = tables.idempotency
    return *_is(claim.key, claim.token_id), table.c.status.is_(None), table.c.at == claim.at


def _blot(body: bytes) -> bytes:
    text = body.decode("latin-1")
    return SECRET.sub(lambda found: "*" * len(found[0]), text).encode("latin-1")


def _answer(row: Row[Any], key: str, request_hash: str) -> StoredAnswer | None:
    """Return the answer of a key's first request, if it has one yet; raises KeyReused."""
    if row.request_hash != request_hash:
        raise KeyReused(key)
    if row.status is None:
        return None
    try:
        headers = msgspec.json.decode(row.headers, type=dict[str, str])
    except msgspec.DecodeError as error:
        raise StoreGone(f"the answer of key {key} cannot be read: {error}") from error
    return StoredAnswer(row.status, headers, row.body)
