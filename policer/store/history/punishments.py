"""Who is punished, so that the next leader goes on where the last one was."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, select

from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.guards import entered_hosts, leads_still


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

    def set(
        self,
        rows: Sequence[PunishmentRow],
        removed: Iterable[tuple[str, str]],
        epoch: int | None = None,
    ) -> bool:
        """Write who is punished how now, and who is not any more, all or nothing.

        Routers of hosts that have no entry any more are left out.

        Args:
            rows: who is punished.
            removed: host and router of who is not.
            epoch: of the leader that decided it; None where nobody else can lead.

        Returns:
            False, with nothing written, where another epoch has begun.
        """
        gone = sorted(removed)
        if not rows and not gone:
            return True
        with self._database.write() as connection:
            if epoch is not None and not leads_still(connection, epoch):
                return False
            table = tables.punishments
            for host, vr in gone:
                connection.execute(delete(table).where(table.c.host == host, table.c.vr == vr))
            there = entered_hosts(connection, {row.host for row in rows})
            self._upsert(connection, [row for row in rows if row.host in there])
        return True

    def _upsert(self, connection: Connection, rows: Iterable[PunishmentRow]) -> None:
        # Sorted, so that two writers take the rows in the same order and never wait in a circle.
        values = sorted(map(msgspec.structs.asdict, rows), key=_place)
        if not values:
            return
        insert = self._database.insert(tables.punishments)
        changed = {name: insert.excluded[name] for name in ("height", "guilty", "since", "step")}
        upsert = insert.on_conflict_do_update(index_elements=["host", "vr"], set_=changed)
        connection.execute(upsert, values)


def _place(values: dict[str, Any]) -> tuple[str, str]:
    return values["host"], values["vr"]
