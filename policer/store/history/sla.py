"""How contracts were kept, a row for each and day; and when they were in force.

Days of a contract that follows its router have the host ANYWHERE, as the contract has, and in the
place of the router's name three words: the contract's, the host on which the router was, and its
name there. So the days of a contract are found together, and no other contract has that key.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import and_, func, or_, select, tuple_

from policer.contracts.promised import ANYWHERE
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.guards import epoch_of
from policer.store.database.pruning import prune

_KEY = ("host", "vr", "day", "part")
_BETWEEN = " "
"""Separates words; sorts before all characters of names."""
_BEYOND = "!"
"""The next character after the separator; also sorts before all characters of names."""
_Key = tuple[str, str]
"""Host and router of a contract."""


class DayRow(msgspec.Struct, frozen=True):
    """One contract and day, as far as one recorder saw it on one host."""

    host: str
    """Host of the router."""
    vr: str
    """Its name there."""
    day: date
    """Of UTC."""
    part: int
    """Recorder: rows of several recorders are added."""
    data_s: float = 0.0
    promised: float = 0.0
    """Packets that the contract's guarantee came to, while the router was seen."""
    wanted: float = 0.0
    delivered: float = 0.0
    missing: float = 0.0
    breach_s: float = 0.0
    punished_s: float = 0.0
    punishments: int = 0
    follows: str = ""
    """The name of the contract, if it follows its router."""

    @property
    def key(self) -> tuple[str, str, date, int]:
        """What no other row has, as the table has it."""
        if not self.follows:
            return self.host, self.vr, self.day, self.part
        words = _BETWEEN.join((self.follows, self.host, self.vr))
        return ANYWHERE, words, self.day, self.part


class Kept(NamedTuple):
    """Sum of a contract's days."""

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
    version: int = 1
    """The first is 1; the oldest ones may be gone."""


class ContractDays(NamedTuple):
    """One contract: how it was kept, and all that was ever promised."""

    host: str
    """ANYWHERE if the contract follows its router."""
    vr: str
    kept: Kept
    changes: list[Change]
    hosts: tuple[str, ...] = ()
    """Where its router was seen on those days, by name."""


class SlaDays:
    """The table of days; only the leader writes it."""

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
        values = [_columns(row) for row in sorted(rows, key=lambda row: row.key)]
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
            of_host: of this host alone, and those that followed their routers there on these days,
                with what they add up to on all hosts.
        """
        with self._database.read() as connection:
            found = connection.execute(_contracts(days, after, limit, of_host))
            keys = [(str(row.host), str(row.vr)) for row in found]
            if not keys:
                return []
            kept = _kept(connection.execute(_sums(days, keys[0], keys[-1], of_host)))
            changes: dict[_Key, list[Change]] = {key: [] for key in keys}
            for row in connection.execute(_changes(keys[0], keys[-1])):
                if (row.host, row.vr) in changes:
                    changes[row.host, row.vr].append(Change(row.at, row.contract, row.version))
        return [_of(key, kept.get(key, {}), changes[key]) for key in keys]

    def prune(self, before: date) -> int:
        """Remove days before one; return how many rows."""
        return prune(self._database, tables.sla_days, tables.sla_days.c.day < before)


def _columns(row: DayRow) -> dict[str, Any]:
    """Return a row as the table has it."""
    values = msgspec.structs.asdict(row)
    del values["follows"]
    return {**values, "host": row.key[0], "vr": row.key[1]}


def _kept(sums: Iterable[Any]) -> dict[_Key, dict[str, list[Kept]]]:
    """Return by contract and host what days add up to."""
    found: dict[_Key, dict[str, list[Kept]]] = {}
    for host, vr, *kept in sums:
        key, at = (host, vr), host
        if host == ANYWHERE:
            name, at, _ = vr.split(_BETWEEN)
            key = host, name
        found.setdefault(key, {}).setdefault(at, []).append(Kept(*kept))
    return found


def _of(key: _Key, by_host: dict[str, list[Kept]], changes: list[Change]) -> ContractDays:
    """Return a contract with the sums over all hosts."""
    parts = [kept for parts in by_host.values() for kept in parts]
    total = Kept(*map(sum, zip(*parts, strict=True))) if parts else Kept()
    return ContractDays(*key, total, changes, tuple(sorted(by_host)))


def _contracts(days: tuple[date, date], after: _Key | None, limit: int, host: str | None) -> Any:
    columns = tables.contracts.c
    query = select(columns.host, columns.vr).order_by(columns.host, columns.vr).limit(limit)
    if after is not None:
        query = query.where(tuple_(columns.host, columns.vr) > tuple_(*after))
    if host is None:
        return query
    came = and_(columns.host == ANYWHERE, _was_on(host, days))
    return query.where(or_(columns.host == host, came))


def _was_on(host: str, days: tuple[date, date]) -> Any:
    """Select contracts that follow routers which were on a host on these days."""
    columns, there = tables.sla_days.c, tables.contracts.c.vr + f"{_BETWEEN}{host}"
    return (
        select(columns.part)
        .where(columns.host == ANYWHERE)
        .where(columns.vr > there + _BETWEEN, columns.vr < there + _BEYOND)
        .where(columns.day >= days[0], columns.day < days[1])
        .exists()
    )


def _sums(days: tuple[date, date], first: _Key, last: _Key, host: str | None) -> Any:
    columns = tables.sla_days.c
    key = tuple_(columns.host, columns.vr)
    query = (
        select(columns.host, columns.vr, *(func.sum(columns[name]) for name in Kept._fields))
        .where(columns.day >= days[0], columns.day < days[1])
        .where(key >= tuple_(*first), key < tuple_(last[0], last[1] + _BEYOND))
        .group_by(columns.host, columns.vr)
    )
    return query if host is None else query.where(columns.host.in_((ANYWHERE, host)))


def _changes(first: _Key, last: _Key) -> Any:
    columns = tables.revisions.c
    key = tuple_(columns.host, columns.vr)
    return (
        select(columns.host, columns.vr, columns.at, columns.contract, columns.version)
        .where(key >= tuple_(*first), key <= tuple_(*last))
        .order_by(columns.host, columns.vr, columns.version)
    )
