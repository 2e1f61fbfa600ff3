"""How contracts were kept, a row for each and day; and when they were in force."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import func, select, tuple_

from policer.store import tables
from policer.store.engine import Database
from policer.store.fence import epoch_of
from policer.store.pruning import prune

_KEY = ("host", "vr", "day", "part")


class DayRow(msgspec.Struct, frozen=True):
    """One contract and day, as far as one recorder saw it."""

    host: str
    vr: str
    day: date
    """Of UTC."""
    part: int
    """Which recorder: rows of several are to be added."""
    data_s: float = 0.0
    promised: float = 0.0
    """Packets that the contract's guarantee came to, while the router was seen."""
    wanted: float = 0.0
    delivered: float = 0.0
    missing: float = 0.0
    breach_s: float = 0.0
    punished_s: float = 0.0
    punishments: int = 0

    @property
    def key(self) -> tuple[str, str, date, int]:
        """What no other row has."""
        return self.host, self.vr, self.day, self.part


class Kept(NamedTuple):
    """What a contract's days add up to."""

    data_s: float = 0.0
    promised: float = 0.0
    wanted: float = 0.0
    delivered: float = 0.0
    missing: float = 0.0
    breach_s: float = 0.0
    punished_s: float = 0.0
    punishments: int = 0


class Change(NamedTuple):
    """A revision of a contract."""

    at: datetime
    contract: str | None
    """Its JSON; None is removed."""


class ContractDays(NamedTuple):
    """One contract: how it was kept, and all that was ever promised."""

    host: str
    vr: str
    kept: Kept
    changes: list[Change]


class SlaDays:
    """The table of days; the leader's alone to write."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, rows: Sequence[DayRow], epoch: int) -> bool:
        """Write days, each in the place of what it was before, all or nothing.

        Returns:
            False, with nothing written, where another epoch than this has begun.
        """
        if not rows:
            return True
        insert = self._database.insert(tables.sla_days)
        changed = {
            column.name: insert.excluded[column.name]
            for column in tables.sla_days.columns
            if column.name not in _KEY
        }
        upsert = insert.on_conflict_do_update(index_elements=list(_KEY), set_=changed)
        values = [msgspec.structs.asdict(row) for row in sorted(rows, key=lambda row: row.key)]
        with self._database.write() as connection:
            if epoch_of(connection) != epoch:
                return False
            connection.execute(upsert, values)
        return True

    def page(
        self,
        days: tuple[date, date],
        after: tuple[str, str] | None,
        limit: int,
        of_host: str | None = None,
    ) -> list[ContractDays]:
        """Return contracts that there are or were, by host and router.

        Args:
            days: the first, and the one after the last.
            after: the last host and router of the page before; None begins at the beginning.
            limit: how many at most.
            of_host: of this host alone.
        """
        with self._database.read() as connection:
            found = connection.execute(_contracts(after, limit, of_host))
            keys = [(str(row.host), str(row.vr)) for row in found]
            if not keys:
                return []
            kept = {
                (row.host, row.vr): Kept(*row[2:])
                for row in connection.execute(_sums(days, keys[0], keys[-1]))
            }
            changes: dict[tuple[str, str], list[Change]] = {key: [] for key in keys}
            for row in connection.execute(_changes(keys[0], keys[-1])):
                if (row.host, row.vr) in changes:
                    changes[row.host, row.vr].append(Change(row.at, row.contract))
        return [
            ContractDays(host, vr, kept.get((host, vr), Kept()), changes[host, vr])
            for host, vr in keys
        ]

    def prune(self, before: date) -> int:
        """Remove days before one; return how many rows."""
        return prune(self._database, tables.sla_days, tables.sla_days.c.day < before)


def _contracts(after: tuple[str, str] | None, limit: int, host: str | None) -> Any:
    columns = tables.contracts.c
    query = select(columns.host, columns.vr).order_by(columns.host, columns.vr).limit(limit)
    if after is not None:
        query = query.where(tuple_(columns.host, columns.vr) > tuple_(*after))
    return query if host is None else query.where(columns.host == host)


def _sums(days: tuple[date, date], first: tuple[Any, ...], last: tuple[Any, ...]) -> Any:
    columns = tables.sla_days.c
    key = tuple_(columns.host, columns.vr)
    return (
        select(columns.host, columns.vr, *(func.sum(columns[name]) for name in Kept._fields))
        .where(columns.day >= days[0], columns.day < days[1])
        .where(key >= tuple_(*first), key <= tuple_(*last))
        .group_by(columns.host, columns.vr)
    )


def _changes(first: tuple[Any, ...], last: tuple[Any, ...]) -> Any:
    columns = tables.revisions.c
    key = tuple_(columns.host, columns.vr)
    return (
        select(columns.host, columns.vr, columns.at, columns.contract)
        .where(key >= tuple_(*first), key <= tuple_(*last))
        .order_by(columns.host, columns.vr, columns.version)
    )
