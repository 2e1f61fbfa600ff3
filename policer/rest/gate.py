"""Who may do what: a bearer token, its scope, and how often it may ask."""

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler

from policer.bucket import Buckets
from policer.errors import Forbidden, StoreError, Unauthenticated
from policer.rest.exchange import exchange_of
from policer.rest.queries import check_query
from policer.store import Scope, Store, TokenRow

OPEN = "open"
"""Of what takes no token."""
REMEMBERED_S = 5.0
"""A token that another process revoked is refused after so long at the latest."""
MOST_REMEMBERED = 1000
GUESSES_PER_S, GUESSES = 1.0, 20.0
"""Unknown tokens that an address may send, in the long run and at once: each costs a read of the
database."""
_BEARER = re.compile(r"[Bb]earer +(xtcp_[A-Za-z0-9_-]{1,128})")


@dataclass(frozen=True, slots=True)
class _Known:
    row: TokenRow
    until: float


class Gate:
    """Knows tokens for a few seconds, so that not every request asks the store for its own."""

    def __init__(self, store: Store, clock: Callable[[], float], buckets: Buckets) -> None:
        self._store, self._clock, self._buckets = store, clock, buckets
        self._guesses = Buckets(GUESSES_PER_S, GUESSES)
        """How often each address may be wrong."""
        self._barred: dict[str, float] = {}
        """Until when tokens of an address that were never seen are not looked up."""
        self._known: dict[bytes, _Known] = {}
        """By the digest of the secret: a memory dump shows no token that was used."""

    async def admit(self, authorization: str | None, needed: Scope, address: str = "") -> TokenRow:
        """Return the token that asks.

        Args:
            authorization: the header.
            needed: the scope that it takes.
            address: where the request comes from.

        Raises:
            Unauthenticated: there is no token, or none that is known.
            Forbidden: it may not do this.
            HTTPException: it asked too often (429).
        """
        row = await self._row(authorization, address)
        wait = self._buckets.wait(self._clock(), str(row.id))
        if wait > 0:
            raise _too_often("this token asks too often", wait)
        if not row.allows(needed):
            raise Forbidden(needed)
        return row

    async def still(self, authorization: str | None) -> bool:
        """Whether a token that was admitted is still one; streams ask as they go on."""
        try:
            await self._row(authorization)
        except Unauthenticated:
            return False
        except StoreError:
            return True  # it was good when the store last answered; rounds go on, and so do streams
        return True

    def forget_all(self) -> None:
        """Ask the store again, since a token was revoked."""
        self._known = {}

    async def _row(self, authorization: str | None, address: str = "") -> TokenRow:
        found = _BEARER.fullmatch(authorization or "")
        if found is None:
            raise Unauthenticated("send a token: Authorization: Bearer xtcp_...")
        secret = found.group(1)
        digest = hashlib.sha256(secret.encode()).digest()
        known = self._known.get(digest)
        if known is None:
            self._check_guesses(address)
        if known is None or known.until <= self._clock():
            known = await self._ask(secret, digest, address)
        expires = known.row.expires_at
        if expires is not None and expires <= datetime.now(UTC):
            raise Unauthenticated("this token has expired")
        return known.row

    def _check_guesses(self, address: str) -> None:
        """Spare the database tokens of an address that has sent too many that are none."""
        wait = self._barred.get(address, 0.0) - self._clock()
        if wait > 0:
            raise _too_often("too many unknown tokens come from this address", wait)

    def _guessed(self, address: str) -> None:
        """Count a token that is none."""
        now = self._clock()
        wait = self._guesses.wait(now, address)
        if wait > 0:
            self._barred = {known: until for known, until in self._barred.items() if until > now}
            self._barred[address] = now + wait

    async def _ask(self, secret: str, digest: bytes, address: str) -> _Known:
        """Look a token up; one that was revoked meanwhile by this process is not remembered."""
        before = self._known
        self._known.pop(digest, None)
        row = await sync_to_thread(self._store.tokens.by_secret, secret)
        if row is None:
            self._guessed(address)
            raise Unauthenticated("this token is not known, has expired, or was revoked")
        known = _Known(row, self._clock() + REMEMBERED_S)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        if before is self._known:
            self._known[digest] = known
        return known


def _too_often(problem: str, wait: float) -> HTTPException:
    headers = {"Retry-After": str(math.ceil(wait))}
    return HTTPException(f"{problem}; wait {wait:.2g} s", status_code=429, headers=headers)


async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Let in whom a handler's `scope` lets in; a handler that names none lets in nobody."""
    if connection.scope.get("method") == "OPTIONS":
        return  # Litestar answers with the methods that there are, and no more
    needed = handler.opt["scope"]
    if needed == OPEN:
        return
    gate: Gate = connection.app.state.gate
    address = connection.client.host if connection.client else ""
    row = await gate.admit(connection.headers.get("authorization"), needed, address)
    exchange_of(connection.scope).token = row.name
    connection.scope["user"] = row
    assert isinstance(handler, HTTPRouteHandler)  # there are no others
    check_query(connection, connection.app.state.queries[handler.operation_id])
