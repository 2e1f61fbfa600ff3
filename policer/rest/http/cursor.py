"""Cursors of pages: opaque names of the last row of a page."""

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Annotated, Any, TypeVar

import msgspec
from litestar.params import QueryParameter

from policer.errors import Invalid, Problem

MOST = 500
RowId = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""A number of a row, as databases can compare it."""
Limit = Annotated[int, QueryParameter(ge=1, le=MOST, description="Items on a page.")]
After = Annotated[
    str | None,
    QueryParameter(
        max_length=512, description="The `next` of the page before; nothing for the first page."
    ),
]
Row = TypeVar("Row")


def pack(key: Any) -> str:
    """Return a row's key as a cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def unpack(after: str | None, kind: Any) -> Any:
    """Return the key of a cursor, of this kind; None for the first page.

    Raises:
        Invalid: it is not a cursor of this service.
    """
    if after is None:
        return None
    try:
        raw = base64.b64decode(after.encode() + b"=" * (-len(after) % 4), b"-_", validate=True)
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
        fix = "give the `next` of the page before, as it was"
        raise Invalid([Problem("after", "this is no cursor of this API", fix)]) from None


def cut(rows: Sequence[Row], limit: int, key: Callable[[Row], Any]) -> tuple[list[Row], str | None]:
    """Return a page and the next cursor, from rows that include one more if there is more."""
    page = list(rows[:limit])
    return page, pack(key(page[-1])) if len(rows) > limit else None


def page_of(
    rows: Iterable[Row], limit: int, after: Any, key: Callable[[Row], Any]
) -> tuple[list[Row], str | None]:
    """Return a page of complete rows, in the order of their keys."""
    rest = (row for row in rows if after is None or key(row) > after)
    return cut(list(islice(rest, limit + 1)), limit, key)
