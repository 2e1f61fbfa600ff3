"""What only the leader may write: nothing is written in an epoch that is over."""

from sqlalchemy import Connection, select

from policer.store.database import tables


def epoch_of(connection: Connection) -> int:
    """Return the epoch of who leads, and keep others from a new one until the transaction ends."""
    query = select(tables.leadership.c.epoch).with_for_update(read=True)
    return int(connection.execute(query).scalar_one())
