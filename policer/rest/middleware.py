"""Outermost layer: id, HEAD, headers, log line and deadline of every request, even for a 404."""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Receive, Send

from policer.rest.access.gate import shows_token
from policer.rest.access.settings import RestSettings
from policer.rest.access.throttle import UNMETERED, Throttle
from policer.rest.http.clients import client_address
from policer.rest.http.exchange import Exchange, begin
from policer.rest.http.problems import MEDIA_TYPE, bare

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}
"""Added to every answer, unless it has its own."""
STRICT = {b"strict-transport-security": b"max-age=31536000"}
"""Added to every answer over the service's own TLS."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods of requests; HTTP lets clients make up any other word (RFC 9110, section 9.1)."""
OTHER = "other"
"""Name of all other methods in metrics and in the log: clients must not fill either."""
LONGEST_PATH = 200
"""Characters of a path that the log keeps."""


class SlowClientError(Exception):
    """A client that does not read its answer."""


class RequestMiddleware:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, settings: RestSettings, throttle: Throttle) -> None:
        self._throttle, self._trusted = throttle, settings.trusted_proxies
        self._app, self._clock, self._observe = app, settings.clock, settings.observe
        self._send_s = settings.send_s
        self._more = HEADERS | (STRICT if settings.strict_transport else {})
        self._log = structlog.get_logger("policer.rest")

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, method = self._clock(), scope["method"]
        exchange = begin(scope)
        self._find_client(scope)
        sender = _Sender(send, exchange, self._send_s, self._more, headless=method == "HEAD")
        if method == "HEAD" and not scope["path"].endswith("/stream"):
            # A copy: the server must still know that it answers a HEAD.
            scope = {**scope, "method": "GET"}
        try:
            if not await self._refused(scope, exchange, sender):
                await self._app(scope, receive, sender)
        except Exception as error:
            if not exchange.status:
                raise
            self._broke_off(exchange, error, slow=sender.slow)
        finally:
            exchange.end()
            self._tell(scope, method, exchange, self._clock() - began)

    def _find_client(self, scope: Any) -> None:
        """Replace the address of a proxy by that of the client."""
        if scope.get("client"):
            peer, port = scope["client"]
            forwarded = _lines(scope, b"x-forwarded-for")
            scope["client"] = client_address(peer, forwarded, self._trusted), port

    async def _refused(self, scope: Any, exchange: Exchange, send: Send) -> bool:
        """Refuse an address with too many requests without a token; return whether it did."""
        if scope["path"] in UNMETERED or shows_token(_lines(scope, b"authorization")):
            return False
        try:
            self._throttle.count_address(client_of(scope))
        except HTTPException as error:
            body = bare(exchange.id, error)
            given = {"Content-Type": MEDIA_TYPE, **(error.headers or {})}
            headers = [(name.lower().encode(), value.encode()) for name, value in given.items()]
            status = error.status_code
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": False})
            return True
        return False

    def _broke_off(self, exchange: Exchange, error: Exception, *, slow: bool) -> None:
        """Log an answer that ended too early; the server can then only disconnect."""
        if slow:
            self._log.warning("slow_client_disconnected", id=exchange.id, token=exchange.token)
        else:
            self._log.error("answer_interrupted", id=exchange.id, exc_info=error)

    def _tell(self, scope: Any, method: str, exchange: Exchange, seconds: float) -> None:
        """Log and measure; by the route's pattern, since the number of paths is unlimited."""
        route = scope.get("path_template") or "none"
        method = method if method in METHODS else OTHER
        self._observe(method, route, exchange.status, seconds)
        quiet = method in {"GET", "HEAD"} and exchange.status < 400
        (self._log.debug if quiet else self._log.info)(
            "request",
            id=exchange.id,
            method=method,
            path=scope["path"][:LONGEST_PATH],
            status=exchange.status,
            token=exchange.token,
            actor=exchange.actor,
            client=client_of(scope),
            ms=round(1e3 * seconds, 1),
        )


def client_of(scope: Any) -> str:
    """Return the client's address; "" if the server does not know it."""
    client = scope.get("client")
    return client[0] if client else ""


def _lines(scope: Any, name: bytes) -> list[str]:
    """Return the lines of a header, in their order."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


class _Sender:
    """Sends an answer: with the common headers, and without a body for HEAD."""

    def __init__(
        self,
        send: Send,
        exchange: Exchange,
        send_s: float,
        more: Mapping[bytes, bytes],
        *,
        headless: bool,
    ) -> None:
        self._send, self._exchange, self._send_s = send, exchange, send_s
        self._more, self._headless = more, headless
        self.slow = False

    async def __call__(self, message: Message) -> None:
        """Send one message, or disconnect the client."""
        try:
            async with asyncio.timeout(self._send_s):
                await self._send(self._dressed(message))
        except TimeoutError as error:
            self.slow = True
            raise SlowClientError from error

    def _dressed(self, message: Any) -> Any:
        if message["type"] == "http.response.body" and self._headless:
            return {**message, "body": b""}
        if message["type"] != "http.response.start":
            return message
        self._exchange.status = message["status"]
        given = {name.lower() for name, _ in message["headers"]}
        more = [(name, value) for name, value in self._more.items() if name not in given]
        own = (b"x-request-id", self._exchange.id.encode())
        return {**message, "headers": [*message["headers"], *more, own]}
