"""Authentication and authorization: bearer tokens, scopes, reach, and rate limits."""

import hashlib
import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler

from policer.errors import (
    Forbidden,
    IssuerAway,
    NotGranted,
    OutOfReach,
    StoreError,
    Unauthenticated,
)
from policer.rest.access.identity import Known
from policer.rest.access.settings import RestSettings
from policer.rest.access.throttle import UNMETERED, Throttle, too_often
from policer.rest.http.clients import group_of
from policer.rest.http.exchange import exchange_of
from policer.rest.http.queries import check_query
from policer.store import Scope, Store, TokenRow
from policer.token_bucket import Buckets

OPEN = "open"
"""Scope of operations that take no token."""
Limited = Literal["closed", "filtered"]
"""What limited tokens get of an operation: nothing, or only what they reach. A handler that does
not declare it is closed to them."""
CLOSED: Final[Limited] = "closed"
FILTERED: Final[Limited] = "filtered"
REMEMBERED_S = 5.0
"""A token that another process revoked is refused after this time at the latest."""
MOST_REMEMBERED = 1000
GUESSES_PER_S, GUESSES = 1.0, 20.0
"""Unknown tokens that an address may send, in the long run and in a burst: each costs a database
read."""
_OWN = re.compile(r"[Bb]earer +(xtcp_[A-Za-z0-9_-]{1,128})")
LONGEST_JWT = 16 * 1024
"""Characters; an issuer's token with a hundred groups has about 8,000."""
_JWT = re.compile(r"[Bb]earer +([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class _Kept:
    known: Known
    until: float


class Gate:
    """Caches tokens for a few seconds, so that not every request queries the store."""

    def __init__(self, store: Store, settings: RestSettings, throttle: Throttle) -> None:
        self._store, self._clock, self._throttle = store, settings.clock, throttle
        self._issuer, self._today = settings.issuer, settings.today
        self._throttled = settings.throttled
        self._guesses = Buckets(GUESSES_PER_S, GUESSES)
        """Limits the unknown tokens of each address."""
        self._barred: dict[str, float] = {}
        """Time until which unknown tokens of an address are not looked up."""
        self._known: dict[bytes, _Kept] = {}
        """By the digest of the secret: a memory dump reveals no used token."""

    async def known(self, authorization: str | None, address: str) -> TokenRow:
        """Return the token of a request.

        Args:
            authorization: the header.
            address: source of the request.

        Raises:
            Unauthenticated: there is no token, or it is unknown.
            NotGranted: it is an issuer's token without any grant here.
            IssuerAway: it is an issuer's token, and the issuer is unavailable.
            HTTPException: too many requests (429).
        """
        row = await self._row(authorization, address)
        self._throttle.count_token(row.id)
        return row

    async def still(self, authorization: str | None) -> bool:
        """Whether an admitted token is still valid; streams check it repeatedly."""
        try:
            await self._row(authorization)
        except (Unauthenticated, NotGranted):
            return False
        except (StoreError, IssuerAway):
            return True  # it was valid at the last answer; rounds go on, and so do streams
        return True

    def meter(self, address: str) -> None:
        """Count a request without a known token; raises HTTPException (429)."""
        self._throttle.count_address(address)

    def forget_all(self) -> None:
        """Clear the cache, since a token was revoked."""
        self._known = {}

    async def _row(self, authorization: str | None, address: str | None = None) -> TokenRow:
        """Return a token's row; without an address, unknown tokens are neither counted nor barred.

        Streams give none: else the revoked tokens of some would end the streams of others.
        """
        own = _OWN.fullmatch(authorization or "")
        secret = own.group(1) if own else self._of_issuer(authorization)
        digest = hashlib.sha256(secret.encode()).digest()
        kept = self._known.get(digest)
        if kept is None and own and address is not None:
            self._check_guesses(group_of(address))
        if kept is None or kept.until <= self._clock():
            look = self._look_up if own else self._verify
            kept = await self._ask(look(secret, address), digest)
        ends = kept.known.ends
        if ends is not None and ends <= self._today():
            raise Unauthenticated("this token has expired")
        return kept.known.row

    def _of_issuer(self, authorization: str | None) -> str:
        """Return an issuer's token; raises Unauthenticated if there is none."""
        found = _JWT.fullmatch(authorization or "")
        if found is None or self._issuer is None:
            raise Unauthenticated("send a token: Authorization: Bearer xtcp_...")
        if len(found.group(1)) > LONGEST_JWT:
            problem = f"this token is longer than {LONGEST_JWT} characters (ask for fewer groups)"
            raise Unauthenticated(problem)
        return found.group(1)

    def _check_guesses(self, client: str) -> None:
        """Skip database lookups for an address that has sent too many unknown tokens."""
        wait = self._barred.get(client, 0.0) - self._clock()
        if wait > 0:
            self._throttled("guess")
            raise too_often("too many unknown tokens come from this address", wait)

    def _guessed(self, client: str) -> None:
        """Count an unknown token."""
        now = self._clock()
        wait = self._guesses.wait(now, client)
        if wait > 0:
            self._barred = {known: until for known, until in self._barred.items() if until > now}
            self._barred[client] = now + wait

    async def _ask(self, asked: Awaitable[Known], digest: bytes) -> _Kept:
        """Cache the result, unless this process has revoked the token meanwhile."""
        before = self._known
        self._known.pop(digest, None)
        kept = _Kept(await asked, self._clock() + REMEMBERED_S)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        if before is self._known:
            self._known[digest] = kept
        return kept

    async def _look_up(self, secret: str, address: str | None) -> Known:
        """Return what the store knows of one of the policer's own tokens."""
        row = await sync_to_thread(self._store.tokens.by_secret, secret)
        if row is None:
            if address is not None:
                self._guessed(group_of(address))
            raise Unauthenticated("this token is not known, has expired, or was revoked")
        return Known(row, row.expires_at)

    async def _verify(self, token: str, address: str | None) -> Known:
        """Return the identity of an issuer's token; throttles senders of many invalid ones."""
        assert self._issuer is not None
        try:
            return await self._issuer.known(token)
        except (Unauthenticated, NotGranted):
            if address is not None:
                self.meter(address)
            raise


def check(row: TokenRow, needed: Scope, limited: Limited = CLOSED) -> None:
    """Check that a token may do something.

    Args:
        row: the token.
        needed: the required scope.
        limited: what limited tokens get of it.

    Raises:
        Forbidden: its scope is too small.
        OutOfReach: it is limited, and the operation is closed to such tokens.
    """
    if not row.allows(needed):
        raise Forbidden(needed)
    if row.reach.limited and limited == CLOSED:
        raise OutOfReach


def shows_token(authorization: Sequence[str]) -> bool:
    """Whether a request has a token by its form; the lookup counts such requests."""
    return len(authorization) == 1 and any(
        kind.fullmatch(authorization[0]) for kind in (_OWN, _JWT)
    )


def authorization_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str | None:
    """Return the header; raises Unauthenticated if there are several.

    A proxy and a service that read different ones would see different clients.
    """
    given = connection.headers.getall("authorization", [])
    if len(given) > 1:
        raise Unauthenticated("send one Authorization header")
    return given[0] if given else None


def address_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the source address of a request; "" if the server does not know it."""
    return connection.client.host if connection.client else ""


async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Admit tokens with a handler's `scope`; a handler without a scope admits none."""
    if connection.scope.get("method") == "OPTIONS":
        return  # Litestar answers with the existing methods only
    needed = handler.opt["scope"]
    gate: Gate = connection.app.state.gate
    if needed == OPEN:
        _meter(connection, gate)
        return
    limited: Limited = handler.opt.get("limited", CLOSED)
    row = await gate.known(authorization_of(connection), address_of(connection))
    exchange_of(connection.scope).asked_by(row)
    check(row, needed, limited)
    connection.scope["user"] = row
    assert isinstance(handler, HTTPRouteHandler)  # the only kind of handler
    check_query(connection, connection.app.state.queries[handler.operation_id])


def _meter(connection: ASGIConnection[Any, Any, Any, Any], gate: Gate) -> None:
    """Count a request without a token lookup, unless the middleware has counted it."""
    shown = shows_token(connection.headers.getall("authorization", []))
    if shown and connection.scope["path"] not in UNMETERED:
        gate.meter(address_of(connection))
