"""The history of routers: chunks of points, one row for a host and some time, packed."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import select

from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.guards import epoch_of
from policer.store.database.pruning import prune


class ChunkRow(msgspec.Struct, frozen=True):
    """All routers of a host, over some time."""

    host: str
    span: int
    """Length of a point, seconds."""
    at: int
    """When it begins, seconds since 1970."""
    part: int
    """Which recorder made it: rows of several are to be added."""
    points: bytes
    """As `policer.history.packing` makes them."""

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What no other row has."""
        return self.host, self.span, self.at, self.part


class Packed(NamedTuple):
    """What was found."""

    at: int
    points: bytes


class History:
    """The table of chunks; the leader's alone to write."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, rows: Sequence[ChunkRow], epoch: int) -> bool:
        """Write chunks, each in the place of what it was before, all or nothing.

        Args:
            rows: the chunks.
            epoch: of the leader that saw them.

        Returns:
            False, with nothing written, where another epoch has begun.
        """
        if not rows:
            return True
        insert = self._database.insert(tables.history)
        upsert = insert.on_conflict_do_update(
            index_elements=["host", "span", "at", "part"],
            set_={"points": insert.excluded["points"]},
        )
        # Sorted, so that two writers take the rows in the same order and never wait in a circle.
        values = [msgspec.structs.asdict(row) for row in sorted(rows, key=lambda row: row.key)]
        with self._database.write() as connection:
            if epoch_of(connection) != epoch:
                return False
            connection.execute(upsert, values)
        return True

    def chunks(self, host: str, span: int, begin: int, end: int, most: int) -> list[Packed]:
        """Return a host's chunks that begin within some time, the earliest first.

        Args:
            host: the host.
            span: length of their points, seconds.
            begin: the earliest that they begin, seconds since 1970.
            end: they begin before that.
            most: rows at most.
        """
        columns = tables.history.c
        query = select(columns.at, columns.points).where(
            columns.host == host, columns.span == span, columns.at >= begin, columns.at < end
        )
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(columns.at).limit(most)).all()
        return [Packed(row.at, row.points) for row in rows]

    def prune(self, span: int, before: float) -> int:
        """Remove chunks of such points that begin before an instant; return how many."""
        columns = tables.history.c
        old = (columns.span == span) & (columns.at < int(before))
        return prune(self._database, tables.history, old)
