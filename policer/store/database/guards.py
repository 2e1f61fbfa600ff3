"""Checks before a leader's writes: it still leads, and hosts still have entries."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from policer.store.database import tables
from policer.store.database.fence import epoch_of


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
