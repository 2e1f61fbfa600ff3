"""What is promised on a host, as a change of it must know: contracts, classes, routers' homes."""

from datetime import datetime

from sqlalchemy import Connection, select

from policer.contract import Contract
from policer.inforce import Book
from policer.promises import ANYWHERE
from policer.store import tables
from policer.store.records import read


def contracts_at(connection: Connection, host: str) -> dict[str, Contract]:
    """Return what routers of a host were promised, wherever that follows them or not.

    Of a router that has both, what was promised on this host holds.
    """
    return {**_settled(connection, host), **contracts_on(connection, host)}


def book_in(connection: Connection, now: datetime, *, lock: bool = False) -> Book:
    """Return the classes that contracts may name.

    Args:
        connection: of the transaction.
        now: from when on contracts are looked at.
        lock: whether to keep others from changing classes until it ends.
    """
    table = tables.classes
    query = select(table).where(table.c.entry.is_not(None)).order_by(table.c.name)
    rows = connection.execute(query.with_for_update(read=True) if lock else query)
    classes = {row.name: read(row.entry, Contract, f"class {row.name}") for row in rows}
    return Book(classes, now)


def home_of(connection: Connection, router: str) -> str | None:
    """Return the host where a router was last seen whose contract follows it."""
    table = tables.homes
    host = connection.execute(select(table.c.host).where(table.c.router == router)).scalar()
    return None if host is None else str(host)


def contracts_on(connection: Connection, host: str) -> dict[str, Contract]:
    """Return what was promised to routers on this host alone."""
    table = tables.contracts
    query = select(table.c.vr, table.c.contract)
    query = query.where(table.c.host == host, table.c.contract.is_not(None))
    return {
        row.vr: read(row.contract, Contract, f"contract {host}/{row.vr}")
        for row in connection.execute(query)
    }


def _settled(connection: Connection, host: str) -> dict[str, Contract]:
    """Return what follows routers that are on a host."""
    contracts, homes = tables.contracts, tables.homes
    query = select(contracts.c.vr, contracts.c.contract)
    query = query.join(homes, homes.c.router == contracts.c.vr)
    query = query.where(
        contracts.c.host == ANYWHERE, homes.c.host == host, contracts.c.contract.is_not(None)
    )
    return {
        row.vr: read(row.contract, Contract, f"contract {row.vr}")
        for row in connection.execute(query)
    }
