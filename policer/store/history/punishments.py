"""Punished routers, so that the next leader continues from the previous one."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, select

from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.guards import entered_hosts, leads_still


class PunishmentRow(msgspec.Struct, frozen=True):
    """A router's position on its ladder."""

    host: str
    vr: str
    height: int
    """Number of its contract's steps in force."""
    guilty: bool
    since: datetime
    """UTC; when the last step was taken, or `guilty` last changed."""
    step: str
    """The hardest step in force."""


class Punishments:
    """The table of punished routers; only the leader writes it, so it needs no audit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[tuple[str, str], PunishmentRow]:
        """Return all punished routers, by host and router."""
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
        """Write current punishments, and remove ended ones, all or nothing.

        Routers of hosts without an entry are skipped.

        Args:
            rows: current punishments.
            removed: host and router of ended punishments.
            epoch: of the leader that decided it; None if no other policer can lead.

        Returns:
            False, with nothing written, if another epoch has begun.
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
        # Sorted, so that two writers lock the rows in the same order and never deadlock.
        values = sorted(map(msgspec.structs.asdict, rows), key=_place)
        if not values:
            return
        insert = self._database.insert(tables.punishments)
        changed = {name: insert.excluded[name] for name in ("height", "guilty", "since", "step")}
        upsert = insert.on_conflict_do_update(index_elements=["host", "vr"], set_=changed)
        connection.execute(upsert, values)


def _place(values: dict[str, Any]) -> tuple[str, str]:
    return values["host"], values["vr"]
