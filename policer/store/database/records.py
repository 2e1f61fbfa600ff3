"""Types for versioned entries of the store."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from policer.errors import Invalid, Problem, StoreGone

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Clock = Callable[[], datetime]
"""Tells the time of day, with its zone."""


class Version(msgspec.Struct, frozen=True):
    """Version of an entry, and the actor of its last change."""

    number: int
    """Rises with every change, also over removals."""
    changed_at: datetime
    """UTC."""
    changed_by: str


class Stored(msgspec.Struct, Generic[T], frozen=True):
    """An entry in its current state."""

    value: T
    version: Version


def now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def refuse(problems: Iterable[Problem]) -> None:
    """Raise an error if there are problems.

    Raises:
        Invalid: there are; it has them all.
    """
    found = tuple(problems)
    if found:
        raise Invalid(found)


def text_of(value: msgspec.Struct) -> str:
    """Return the JSON that is stored."""
    return msgspec.json.encode(value).decode()


def read(raw: str, kind: type[S], name: str) -> S:
    """Return what was stored.

    Raises:
        StoreGone: another program wrote it, or it was damaged.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise StoreGone(f"{name} cannot be read from the database: {error}") from error


def as_stored(value: S) -> S:
    """Return a value as the store will return it, so that an unreadable value is never stored.

    Raises:
        Invalid: a field is out of its bounds; it is named.
    """
    try:
        stored = msgspec.json.decode(msgspec.json.encode(value), type=type(value))
    except msgspec.DecodeError as error:
        problem, _, where = str(error).partition(" - at ")
        field = where.strip("`").removeprefix("$.")
        raise Invalid([Problem(field or "value", problem, "give a value that fits")]) from None
    except UnicodeEncodeError:
        raise Invalid([Problem("value", "it is not valid text", "give valid UTF-8")]) from None
    # JSON has no NaN and no infinity: an optional field would silently become null.
    refuse(
        Problem(name, f"{getattr(value, name)} is no number", "give a number, or leave it out")
        for name in value.__struct_fields__
        if getattr(value, name) is not None and getattr(stored, name) is None
    )
    return stored


def checked_name(name: str, kind: Any, field: str, fix: str) -> str:
    """Return a name that is what its kind allows; raises Invalid with the field and the fix."""
    try:
        msgspec.convert(name, kind)
    except msgspec.ValidationError as error:
        raise Invalid([Problem(field, str(error), fix)]) from None
    return name
