"""Answers that are too long for a page: sent as they are read, some rows at a time.

An export takes one of the slots of streams. If the database fails half-way, the connection breaks
off before its last chunk (RFC 9112, section 8), so no client mistakes a part for the whole.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec
from litestar import Response
from litestar.concurrency import sync_to_thread
from litestar.response import Stream

from policer.errors import Invalid, Problem, Unauthenticated
from policer.rest.access.context import Context
from policer.rest.access.gate import Gate
from policer.rest.http.bodies import StrictRequest
from policer.rest.http.exchange import exchange_of

JSON: Final = "application/json"
LINES: Final = "application/jsonl"
"""JSON lines (jsonlines.org). Not `application/x-ndjson`: RFC 6648 deprecates such names."""
CSV: Final = "text/csv"
AT_ONCE: Final = 500
"""Rows held in memory."""
PAGED: Final = ("limit", "after")
"""Parameters of pages, which do not apply to exports."""
Key = TypeVar("Key")
Later = Callable[[Key | None], tuple[bytes, Key | None]]
"""Reads the rows after a key, and returns the key to continue after; None is the end."""


def wanted(request: StrictRequest, other: str) -> bool:
    """Whether a client prefers another media type to JSON.

    Raises:
        Invalid: it does, and asks for a page.
    """
    if request.accept.best_match([JSON, other], default=JSON) != other:
        return False
    refuse_pages(request)
    return True


def refuse_pages(request: StrictRequest) -> None:
    """Check that an export is not requested by page; raises Invalid."""
    given = [name for name in PAGED if name in request.query_params]
    if given:
        fix = "leave it out; from and to choose"
        raise Invalid([Problem(name, "an export has no pages", fix) for name in given])


async def export(
    context: Context,
    gate: Gate,
    request: StrictRequest,
    later: Later[Key],
    *,
    media_type: str,
    name: str,
) -> Response[Any]:
    """Answer with all rows.

    Args:
        context: the service's.
        gate: the service's.
        request: what is answered.
        later: reads it, in a thread.
        media_type: of the answer.
        name: of the file that it may be saved as.
    """
    exchange_of(request.scope).ends.append(context.streams.take(request.requester.id))
    first = await sync_to_thread(later, None)  # what is refused now is refused in words
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    rest = _rest(gate, request.headers.get("authorization"), later, first)
    return Stream(rest, media_type=media_type, headers=headers)


def lines(rows: Iterable[Any]) -> bytes:
    """Return rows as lines of JSON."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


async def _rest(
    gate: Gate, authorization: str | None, later: Later[Key], first: tuple[bytes, Key | None]
) -> AsyncIterator[bytes]:
    text, key = first
    while True:
        if text:
            yield text
        if key is None:
            return
        if not await gate.still(authorization):
            raise Unauthenticated("this token was revoked, or has expired")
        text, key = await sync_to_thread(later, key)
