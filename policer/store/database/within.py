"""Rows of some time."""

from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Table


class Time(NamedTuple):
    """Some time; None has no bound."""

    begin: datetime | None = None
    """From here on."""
    end: datetime | None = None
    """Before that."""


ANY_TIME: Final = Time()


def within(table: Table, time: Time) -> list[ColumnElement[bool]]:
    """Return what chooses the rows of some time."""
    chosen = []
    if time.begin is not None:
        chosen.append(table.c.at >= time.begin)
    if time.end is not None:
        chosen.append(table.c.at < time.end)
    return chosen
