"""Who is punished, so that the next leader goes on where the last one was."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from sqlalchemy import delete, select

from policer.store import tables
from policer.store.engine import Database


class PunishmentRow(msgspec.Struct, frozen=True):
    """Where a router stands on its ladder."""

    host: str
    vr: str
    height: int
    """How many of its contract's steps are in force."""
    guilty: bool
    since: datetime
    """UTC; when the last step was taken, or the verdict last changed."""
    step: str
    """The hardest step in force."""


class Punishments:
    """The table of punished routers; the leader's alone to write, so that it needs no audit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[tuple[str, str], PunishmentRow]:
        """Return everybody who is punished, by host and router."""
        table = tables.punishments
        with self._database.read() as connection:
            rows = connection.execute(select(table).order_by(table.c.host, table.c.vr)).all()
        return {
            (row.host, row.vr): PunishmentRow(
                row.host, row.vr, row.height, row.guilty, row.since, row.step
            )
            for row in rows
        }

    def set(self, rows: Sequence[PunishmentRow], removed: Iterable[tuple[str, str]]) -> None:
        """Write who is punished how now, and who is not any more, all or nothing."""
        gone = sorted(removed)
        if not rows and not gone:
            return
        table = tables.punishments
        insert = self._database.insert(table)
        changed = {name: insert.excluded[name] for name in ("height", "guilty", "since", "step")}
        upsert = insert.on_conflict_do_update(index_elements=["host", "vr"], set_=changed)
        # Sorted, so that two writers take the rows in the same order and never wait in a circle.
        values = sorted(map(msgspec.structs.asdict, rows), key=lambda row: (row["host"], row["vr"]))
        with self._database.write() as connection:
            for host, vr in gone:
                connection.execute(delete(table).where(table.c.host == host, table.c.vr == vr))
            if values:
                connection.execute(upsert, values)
