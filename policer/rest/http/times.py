"""The parameters `from` and `to`: instants with a zone (RFC 3339, section 5.6)."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from litestar.params import QueryParameter

from policer.errors import Invalid, Problem
from policer.store.database.within import Time

_SHAPE: dict[str, Any] = {"format": "date-time"}
From = Annotated[
    str | None,
    QueryParameter(
        name="from",
        max_length=40,
        description="From this instant on, with its zone: 2026-11-23T12:00:00Z.",
        schema_extra=_SHAPE,
    ),
]
To = Annotated[
    str | None,
    QueryParameter(
        name="to",
        max_length=40,
        description="Before this instant, with its zone: 2026-11-23T13:00:00Z.",
        schema_extra=_SHAPE,
    ),
]
_Zoned = Annotated[datetime, msgspec.Meta(tz=True)]
EXAMPLE = "write 2026-11-23T12:00:00Z, or +01:00 for Z, which is %2B01:00 in an address"


def between(begin: str | None, end: str | None) -> Time:
    """Read both, in UTC.

    Raises:
        Invalid: one is no instant or has no zone, or the second is not after the first.
    """
    found = Time(_instant("from", begin), _instant("to", end))
    if found.begin is not None and found.end is not None and found.begin >= found.end:
        raise Invalid([Problem("to", "it is not after from", "give an instant after it")])
    return found


def _instant(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return msgspec.convert(text, _Zoned).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):
        problem = f"{text!r} is no instant with a zone (RFC 3339)"
        raise Invalid([Problem(name, problem, EXAMPLE)]) from None
