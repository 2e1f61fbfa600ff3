"""Where routers are whose contracts follow them; no operator changes it, so that it has no audit.

The leader writes what it sees, and who makes a contract where its router is seen then.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection, delete, select

from policer.promises import ANYWHERE
from policer.store import tables
from policer.store.engine import Database
from policer.store.guards import entered_hosts, leads_still
from policer.store.records import Clock


class Homes:
    """The table of routers' homes."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> dict[str, str]:
        """Return the host of each router that was seen, by the name of its contract."""
        with self._database.read() as connection:
            return {row.router: row.host for row in connection.execute(select(tables.homes))}

    def set(self, homes: Mapping[str, str], epoch: int) -> bool:
        """Write where routers are now, all or nothing.

        Routers without a contract that follows them are left out, and those on hosts that have no
        entry any more are forgotten.

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
            followed = _followed(connection) & homes.keys()
            entered = entered_hosts(connection, set(homes.values()))
            for router in sorted(homes.keys() - followed):
                forget(connection, router)
            for router in sorted(followed):
                if homes[router] in entered:
                    settle(connection, self._database, router, homes[router], self._clock())
                else:
                    forget(connection, router)
        return True


def settle(
    connection: Connection, database: Database, router: str, host: str, since: datetime
) -> None:
    """Write where a router is."""
    insert = database.insert(tables.homes).values(router=router, host=host, since=since)
    changed = {"host": insert.excluded.host, "since": insert.excluded.since}
    connection.execute(insert.on_conflict_do_update(index_elements=["router"], set_=changed))


def forget(connection: Connection, router: str) -> None:
    """Forget where a router was."""
    connection.execute(delete(tables.homes).where(tables.homes.c.router == router))


def _followed(connection: Connection) -> set[str]:
    """Return the routers that contracts follow; none is made or removed meanwhile."""
    anywhere = select(tables.hosts.c.name).where(tables.hosts.c.name == ANYWHERE)
    connection.execute(anywhere.with_for_update(read=True)).all()
    table = tables.contracts
    query = select(table.c.vr).where(table.c.host == ANYWHERE, table.c.contract.is_not(None))
    rows: Iterable[str] = connection.execute(query).scalars()
    return set(rows)
