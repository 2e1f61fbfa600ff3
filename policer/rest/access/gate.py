"""Who may do what: a bearer token, its scope, its reach, and how often it may ask."""

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
"""Of what takes no token."""
Limited = Literal["closed", "filtered"]
"""What limited tokens get of an operation: nothing, or what they reach. A handler that does not say
is closed to them."""
CLOSED: Final[Limited] = "closed"
FILTERED: Final[Limited] = "filtered"
REMEMBERED_S = 5.0
"""A token that another process revoked is refused after so long at the latest."""
MOST_REMEMBERED = 1000
GUESSES_PER_S, GUESSES = 1.0, 20.0
"""Unknown tokens that an address may send, in the long run and at once: each costs a read of the
database."""
_OWN = re.compile(r"[Bb]earer +(xtcp_[A-Za-z0-9_-]{1,128})")
LONGEST_JWT = 16 * 1024
"""Characters; an issuer's token with a hundred groups has some 8,000."""
_JWT = re.compile(r"[Bb]earer +([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class _Kept:
    known: Known
    until: float


class Gate:
    """Knows tokens for a few seconds, so that not every request asks the store for its own."""

    def __init__(self, store: Store, settings: RestSettings, throttle: Throttle) -> None:
        self._store, self._clock, self._throttle = store, settings.clock, throttle
        self._issuer, self._today = settings.issuer, settings.today
        self._throttled = settings.throttled
        self._guesses = Buckets(GUESSES_PER_S, GUESSES)
        """How often each address may be wrong."""
        self._barred: dict[str, float] = {}
        """Until when tokens of an address that were never seen are not looked up."""
        self._known: dict[bytes, _Kept] = {}
        """By the digest of the secret: a memory dump shows no token that was used."""

    async def known(self, authorization: str | None, address: str) -> TokenRow:
        """Return the token that asks.

        Args:
            authorization: the header.
            address: where the request comes from.

        Raises:
            Unauthenticated: there is no token, or none that is known.
            NotGranted: it is an issuer's, and may do nothing here.
            IssuerAway: it is an issuer's, which cannot be asked.
            HTTPException: it asked too often (429).
        """
        row = await self._row(authorization, address)
        self._throttle.count_token(row.id)
        return row

    async def still(self, authorization: str | None) -> bool:
        """Whether a token that was admitted is still one; streams ask as they go on."""
        try:
            await self._row(authorization)
        except (Unauthenticated, NotGranted):
            return False
        except (StoreError, IssuerAway):
            return True  # it was good when that last answered; rounds go on, and so do streams
        return True

    def meter(self, address: str) -> None:
        """Count a request that no token is known of; raises HTTPException (429)."""
        self._throttle.count_address(address)

    def forget_all(self) -> None:
        """Ask the store again, since a token was revoked."""
        self._known = {}

    async def _row(self, authorization: str | None, address: str = "") -> TokenRow:
        own = _OWN.fullmatch(authorization or "")
        secret = own.group(1) if own else self._of_issuer(authorization)
        digest = hashlib.sha256(secret.encode()).digest()
        kept = self._known.get(digest)
        if kept is None and own:
            self._check_guesses(group_of(address))
        if kept is None or kept.until <= self._clock():
            look = self._look_up if own else self._verify
            kept = await self._ask(look(secret, address), digest)
        ends = kept.known.ends
        if ends is not None and ends <= self._today():
            raise Unauthenticated("this token has expired")
        return kept.known.row

    def _of_issuer(self, authorization: str | None) -> str:
        """Return the token of an issuer's; raises Unauthenticated where there is none."""
        found = _JWT.fullmatch(authorization or "")
        if found is None or self._issuer is None:
            raise Unauthenticated("send a token: Authorization: Bearer xtcp_...")
        if len(found.group(1)) > LONGEST_JWT:
            problem = f"this token is longer than {LONGEST_JWT} characters (ask for fewer groups)"
            raise Unauthenticated(problem)
        return found.group(1)

    def _check_guesses(self, client: str) -> None:
        """Spare the database tokens of an address that has sent too many that are none."""
        wait = self._barred.get(client, 0.0) - self._clock()
        if wait > 0:
            self._throttled("guess")
            raise too_often("too many unknown tokens come from this address", wait)

    def _guessed(self, client: str) -> None:
        """Count a token that is none."""
        now = self._clock()
        wait = self._guesses.wait(now, client)
        if wait > 0:
            self._barred = {known: until for known, until in self._barred.items() if until > now}
            self._barred[client] = now + wait

    async def _ask(self, asked: Awaitable[Known], digest: bytes) -> _Kept:
        """Keep what is known; a token that was revoked meanwhile by this process is not kept."""
        before = self._known
        self._known.pop(digest, None)
        kept = _Kept(await asked, self._clock() + REMEMBERED_S)
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        if before is self._known:
            self._known[digest] = kept
        return kept

    async def _look_up(self, secret: str, address: str) -> Known:
        """Return what the store knows of a token of our own."""
        row = await sync_to_thread(self._store.tokens.by_secret, secret)
        if row is None:
            self._guessed(group_of(address))
            raise Unauthenticated("this token is not known, has expired, or was revoked")
        return Known(row, row.expires_at)

    async def _verify(self, token: str, address: str) -> Known:
        """Return whom an issuer's token names; who sends many invalid ones has to wait."""
        assert self._issuer is not None
        try:
            return await self._issuer.known(token)
        except (Unauthenticated, NotGranted):
            self.meter(address)
            raise


def check(row: TokenRow, needed: Scope, limited: Limited = CLOSED) -> None:
    """See that a token may do something.

    Args:
        row: the token.
        needed: the scope that it takes.
        limited: what limited tokens get of it.

    Raises:
        Forbidden: its scope is too small.
        OutOfReach: it is limited, and this is closed to such tokens.
    """
    if not row.allows(needed):
        raise Forbidden(needed)
    if row.reach.limited and limited == CLOSED:
        raise OutOfReach


def shows_token(authorization: Sequence[str]) -> bool:
    """Whether a request has what looks like a token, which is counted once it is looked up."""
    return len(authorization) == 1 and any(
        kind.fullmatch(authorization[0]) for kind in (_OWN, _JWT)
    )


def authorization_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str | None:
    """Return the header; raises Unauthenticated where there are several.

    A proxy and a service that take different ones would not speak of the same client.
    """
    given = connection.headers.getall("authorization", [])
    if len(given) > 1:
        raise Unauthenticated("send one Authorization header")
    return given[0] if given else None


def address_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return where a request comes from; "" where the server does not know it."""
    return connection.client.host if connection.client else ""


async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Let in whom a handler's `scope` lets in; a handler that names none lets in nobody."""
    if connection.scope.get("method") == "OPTIONS":
        return  # Litestar answers with the methods that there are, and no more
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
    assert isinstance(handler, HTTPRouteHandler)  # there are no others
    check_query(connection, connection.app.state.queries[handler.operation_id])


def _meter(connection: ASGIConnection[Any, Any, Any, Any], gate: Gate) -> None:
    """Count a request that no token is looked up for, and that was not counted outside."""
    shown = shows_token(connection.headers.getall("authorization", []))
    if shown and connection.scope["path"] not in UNMETERED:
        gate.meter(address_of(connection))
