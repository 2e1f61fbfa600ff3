"""Hosts of the routers that contracts follow; operators do not change them, so there is no audit.

The leader writes what it sees. The creation of a contract writes the router's host at that time.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, delete, select

from policer.contracts.promised import ANYWHERE
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.guards import entered_hosts, leads_still
from policer.store.database.records import Clock

AT_ONCE: Final = 500
"""Limit of routers named in a query; for more, all are read."""


class Homes:
    """The table of routers' homes."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def all(self) -> dict[str, str]:
        """Return the host of each router that was seen, by the name of its contract."""
        with self._database.read() as connection:
            return {row.router: row.host for row in connection.execute(select(tables.homes))}

    def of(self, routers: Collection[str]) -> dict[str, str]:
        """Return the hosts of some routers, as far as seen, by the names of contracts."""
        if len(routers) > AT_ONCE:
            return {router: home for router, home in self.all().items() if router in routers}
        table = tables.homes
        query = select(table).where(table.c.router.in_(sorted(routers)))
        with self._database.read() as connection:
            return {row.router: row.host for row in connection.execute(query)}

    def set(self, homes: Mapping[str, str], epoch: int) -> bool:
        """Write the current hosts of routers, all or nothing.

        Routers without a contract that follows them are skipped. Routers on hosts without an entry
        are removed.

        Args:
            homes: hosts by router.
            epoch: of the leader that saw them there.

        Returns:
            False, with nothing written, if another epoch has begun.
        """
        if not homes:
            return True
        with self._database.write() as connection:
            if not leads_still(connection, epoch):
                return False
            followed = _followed(connection) & homes.keys()
            entered = entered_hosts(connection, set(homes.values()))
            there = {router: homes[router] for router in followed if homes[router] in entered}
            forget(connection, homes.keys() - there.keys())
            settle(connection, self._database, there, self._clock())
        return True


def is_home(connection: Connection, host: str) -> bool:
    """Whether a router that a contract follows was last seen on a host."""
    query = select(tables.homes.c.router).where(tables.homes.c.host == host).limit(1)
    return connection.execute(query).first() is not None


def settle(
    connection: Connection, database: Database, homes: Mapping[str, str], since: datetime
) -> None:
    """Write the hosts of routers."""
    if not homes:
        return
    insert = database.insert(tables.homes)
    changed = {"host": insert.excluded.host, "since": insert.excluded.since}
    upsert = insert.on_conflict_do_update(index_elements=["router"], set_=changed)
    rows = [{"router": r, "host": host, "since": since} for r, host in sorted(homes.items())]
    connection.execute(upsert, rows)


def forget(connection: Connection, routers: Iterable[str]) -> None:
    """Remove the hosts of routers."""
    table = tables.homes
    rows = [{"gone": router} for router in sorted(routers)]
    if rows:
        connection.execute(delete(table).where(table.c.router == bindparam("gone")), rows)


def _followed(connection: Connection) -> set[str]:
    """Return the routers that contracts follow; locks these contracts against changes."""
    anywhere = select(tables.hosts.c.name).where(tables.hosts.c.name == ANYWHERE)
    connection.execute(anywhere.with_for_update(read=True)).all()
    table = tables.contracts
    query = select(table.c.vr).where(table.c.host == ANYWHERE, table.c.contract.is_not(None))
    rows: Iterable[str] = connection.execute(query).scalars()
    return set(rows)
