"""A client of the policer's REST service, for its command line.

A refusal of the service becomes one typed error with the text of its problem document; a missing
answer becomes another.
"""

import http
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import msgspec
from httpx_sse import ServerSentEvent, connect_sse

from policer.cli.shared.places import PAGE
from policer.config.file import is_local
from policer.errors import Rejected, SettingsError, Unanswered

TIMEOUT_S = 10.0
SILENCE_S = 30.0
"""A stream without messages or heartbeats for this time is gone."""
TRIES = 2
"""Attempts for a repeatable request without an answer."""


class _Problem(msgspec.Struct):
    """The used fields of a problem document (RFC 9457)."""

    title: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of the service."""

    body: Any
    etag: str = ""


@cache
def _trust() -> ssl.SSLContext:
    """Return the system's trusted certificates; loading them takes longer than a request."""
    return ssl.create_default_context()


class Client:
    """Client of one policer; a context manager.

    Raises:
        SettingsError: the URL is invalid, or would send the token unencrypted to another machine.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        _check(url)
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout_s,
            # A proxy from the environment must not see this token.
            trust_env=False,
            verify=_trust(),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: str | int | bool | None) -> Answer:
        """Read one thing; a parameter that is None is left out.

        Raises:
            Unanswered: no policer answers.
            Rejected: it refused.
        """
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", path, params=given, tries=TRIES)

    def items(self, path: str, page: int = PAGE, **query: str | int | bool | None) -> Iterator[Any]:
        """Read all pages of a list, one item after the other; errors as of `get`."""
        after: str | None = None
        while True:
            answer = self.get(path, limit=page, after=after, **query).body
            yield from answer["items"]
            after = answer["next"]
            if after is None:
                return

    def export(
        self, path: str, media_type: str, **query: str | int | bool | None
    ) -> Iterator[bytes]:
        """Yield the chunks of an export as they arrive; errors as of `get`."""
        given = {name: value for name, value in query.items() if value is not None}
        timeout = httpx.Timeout(TIMEOUT_S, read=SILENCE_S)
        headers = {"Accept": media_type}
        with (
            self._spoken(),
            self._http.stream("GET", path, headers=headers, params=given, timeout=timeout) as sent,
        ):
            if sent.is_error:
                sent.read()
                raise _rejected(sent)
            yield from sent.iter_bytes()

    def find(self, path: str) -> Answer | None:
        """Read one thing, None if it does not exist; errors as of `get`."""
        try:
            return self.get(path)
        except Rejected as rejected:
            if rejected.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def post(self, path: str, body: object = None) -> Answer:
        """Post a request that takes effect once, however often it is sent; errors as of `get`."""
        return self._ask("POST", path, {"Idempotency-Key": str(uuid4())}, body=body, tries=TRIES)

    def confirm(self, path: str, etag: str) -> Answer:
        """Confirm what was read with this tag; it takes effect at most once.

        Errors are those of `get`.
        """
        return self._ask("POST", path, {"If-Match": etag}, tries=TRIES)

    def create(self, path: str, body: object) -> Answer:
        """Create something that must not exist yet; errors as of `get`."""
        return self._ask("PUT", path, {"If-None-Match": "*"}, body=body)

    def replace(self, path: str, body: object, etag: str) -> Answer:
        """Replace what was read with this tag; errors as of `get`."""
        return self._ask("PUT", path, {"If-Match": etag}, body=body)

    def remove(self, path: str, etag: str) -> None:
        """Remove what was read with this tag; errors as of `get`."""
        self._ask("DELETE", path, {"If-Match": etag})

    def delete(self, path: str) -> None:
        """Remove something that has no version; errors as of `get`."""
        self._ask("DELETE", path)

    def stream(self, path: str, last_id: str = "", **query: str) -> Iterator[ServerSentEvent]:
        """Yield the messages of a stream from the one after `last_id` on, until it ends.

        A query selects them.

        Raises:
            Unanswered: no policer answers, or the stream broke.
            Rejected: it refused.
        """
        headers = {"Last-Event-ID": last_id} if last_id else {}
        timeout = httpx.Timeout(TIMEOUT_S, read=SILENCE_S)
        with (
            self._spoken(),
            connect_sse(
                self._http, "GET", path, headers=headers, params=query, timeout=timeout
            ) as source,
        ):
            if source.response.is_error:
                source.response.read()
                raise _rejected(source.response)
            yield from source.iter_sse()

    def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: object = None,
        params: Mapping[str, str | int | bool] | None = None,
        tries: int = 1,
    ) -> Answer:
        content = None if body is None else msgspec.json.encode(body)
        sent = {**(headers or {}), **({"Content-Type": "application/json"} if content else {})}
        with self._spoken():
            for left in reversed(range(tries)):
                try:
                    response = self._http.request(
                        method, path, headers=sent, content=content, params=params
                    )
                    break
                except httpx.TransportError:
                    if left == 0:
                        raise
        if response.is_error:
            raise _rejected(response)
        return Answer(self._body(response), response.headers.get("ETag", ""))

    def _body(self, response: httpx.Response) -> Any:
        try:
            return msgspec.json.decode(response.content) if response.content else None
        except msgspec.DecodeError:
            raise Unanswered(self.url, "what answers is no policer") from None

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        """Convert the library's errors."""
        try:
            yield
        except httpx.TimeoutException as error:
            raise Unanswered(self.url, "no answer in time") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unanswered(self.url, str(error) or type(error).__name__) from error


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise SettingsError("--url", f"{url}: {error}", "write http://127.0.0.1:8420") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise SettingsError("--url", f"{url} is no address", "write http://127.0.0.1:8420")
    if parts.scheme == "http" and not is_local(host):
        problem = f"{url} would send the token unencrypted to another machine"
        raise SettingsError("--url", problem, f"write https://{parts.netloc}")


def _rejected(response: httpx.Response) -> Rejected:
    """Return the message of an error response, in one line."""
    try:
        problem = msgspec.json.decode(response.content, type=_Problem)
    except msgspec.DecodeError:
        problem = _Problem()
    words = problem.detail or problem.title or f"{response.status_code} {response.reason_phrase}"
    wait = response.headers.get("Retry-After")
    return Rejected(response.status_code, words + (f" (try again in {wait} s)" if wait else ""))
