"""Requests that must not be done twice: their keys, and the answers that they got.

A request that came while the first one of its key is still being carried out waits for its answer.
"""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, delete, select

from policer.errors import KeyReused, StoreBusy, StoreGone
from policer.store import tables
from policer.store.engine import Database
from policer.store.records import Clock
from policer.store.tokens import SECRET

KEPT: Final = timedelta(hours=24)
ABANDONED: Final = timedelta(seconds=60)
"""A request without an answer for so long has died with its policer; its key is free again."""
WAIT_S: Final = 0.05
MOST_WAITS: Final = 100


class StoredAnswer(msgspec.Struct, frozen=True):
    """What the first request of a key was answered."""

    status: int
    headers: dict[str, str]
    body: bytes


class Idempotency:
    """The table of keys; each token has its own."""

    def __init__(
        self, database: Database, clock: Clock, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._database, self._clock, self._sleep = database, clock, sleep

    def begin(self, key: str, token_id: str, request_hash: str) -> StoredAnswer | None:
        """Claim a key for a request, or return the answer that it got before.

        None means that the request is to be carried out, and `finish` or `abandon` called then.

        Raises:
            KeyReused: the key came with another request.
            StoreBusy: the first request of the key is still being carried out.
        """
        for _ in range(MOST_WAITS):
            with self._database.write() as connection:
                if self._claim(connection, key, token_id, request_hash):
                    return None
                row = _row(connection, key, token_id)
            answer = None if row is None else _answer(row, key, request_hash)
            if answer is not None:
                return answer
            self._sleep(WAIT_S)
        raise StoreBusy(f"the first request with idempotency key {key} is still being carried out")

    def finish(
        self, key: str, token_id: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Keep the answer of a request; a token's secret in it is blotted out, byte for byte."""
        answer = {
            "status": status,
            "headers": msgspec.json.encode(dict(headers)).decode(),
            "body": _blot(body),
        }
        with self._database.write() as connection:
            change = tables.idempotency.update().where(*_is(key, token_id))
            connection.execute(change.values(**answer))

    def abandon(self, key: str, token_id: str) -> None:
        """Free the key of a request that changed nothing, so that it can be tried again."""
        table = tables.idempotency
        with self._database.write() as connection:
            connection.execute(delete(table).where(*_is(key, token_id), table.c.status.is_(None)))

    def _claim(self, connection: Connection, key: str, token_id: str, request_hash: str) -> bool:
        """Take a key, unless somebody has it; keys that are too old are nobody's."""
        table, now = tables.idempotency, self._clock()
        dead = table.c.status.is_(None) & (table.c.at < now - ABANDONED)
        connection.execute(delete(table).where((table.c.at < now - KEPT) | dead))
        values = {"key": key, "token_id": token_id, "request_hash": request_hash, "at": now}
        claim = self._database.insert(table).values(values).on_conflict_do_nothing()
        counted = {"preserve_rowcount": True}
        return connection.execute(claim, execution_options=counted).rowcount == 1


def _row(connection: Connection, key: str, token_id: str) -> Row[Any] | None:
    query = select(tables.idempotency).where(*_is(key, token_id))
    return connection.execute(query).one_or_none()


def _is(key: str, token_id: str) -> tuple[Any, Any]:
    table = tables.idempotency
    return table.c.key == key, table.c.token_id == token_id


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
