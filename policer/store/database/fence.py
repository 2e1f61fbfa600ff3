"""Fence for the leader's writes: nothing is written in an old epoch."""

from sqlalchemy import Connection, select

from policer.store.database import tables


def epoch_of(connection: Connection) -> int:
    """Return the leader's epoch, and prevent a new one until the transaction ends."""
    query = select(tables.leadership.c.epoch).with_for_update(read=True)
    return int(connection.execute(query).scalar_one())
