"""Where routers are whose contracts follow them; the leader's alone to write."""

from collections.abc import Mapping

from sqlalchemy import delete, select

from policer.store import tables
from policer.store.engine import Database
from policer.store.guards import entered_hosts, leads_still
from policer.store.records import Clock


class Homes:
    """The table of routers' homes; no operator changes it, so that it needs no audit."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> dict[str, str]:
        """Return the host of each router that was seen, by the name of its contract."""
        with self._database.read() as connection:
            return {row.router: row.host for row in connection.execute(select(tables.homes))}

    def set(self, homes: Mapping[str, str | None], epoch: int) -> bool:
        """Write where routers are now; those at None are forgotten. All or nothing.

        Routers on hosts that have no entry any more are left out.

        Args:
            homes: hosts by router.
            epoch: of the leader that saw them there.

        Returns:
            False, with nothing written, where another epoch has begun.
        """
        if not homes:
            return True
        with self._database.write() as connection:
            if not leads_still(connection, epoch):
                return False
            table, at = tables.homes, self._clock()
            there = entered_hosts(connection, {host for host in homes.values() if host})
            for router, host in sorted(homes.items()):
                connection.execute(delete(table).where(table.c.router == router))
                if host in there:
                    row = {"router": router, "host": host, "since": at}
                    connection.execute(table.insert().values(row))
        return True
