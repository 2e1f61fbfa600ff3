"""Checks before a leader's writes: its epoch is current, and hosts still have entries."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from policer.store.database import tables


def epoch_of(connection: Connection) -> int:
    """Return the leader's epoch, and prevent a new one until the transaction ends."""
    query = select(tables.leadership.c.epoch).with_for_update(read=True)
    return int(connection.execute(query).scalar_one())


def leads_still(connection: Connection, epoch: int) -> bool:
    """Whether an epoch is current; locks it against a new one until the transaction ends."""
    return epoch_of(connection) == epoch


def entered_hosts(connection: Connection, hosts: Iterable[str]) -> set[str]:
    """Return which hosts have an entry; locks these until the transaction ends."""
    table = tables.hosts
    query = select(table.c.name).where(table.c.name.in_(sorted(hosts)), table.c.entry.is_not(None))
    return set(
        connection.execute(query.order_by(table.c.name).with_for_update(read=True)).scalars()
    )
