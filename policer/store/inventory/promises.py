"""Promises on a host, as needed for a change: contracts, classes, and hosts of routers."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, select

from policer.contracts.contract import Contract
from policer.contracts.in_force import Book
from policer.contracts.promised import ANYWHERE, name_of
from policer.store.database import tables
from policer.store.database.records import read


def contracts_at(connection: Connection, host: str) -> dict[str, Contract]:
    """Return the contracts of a host's routers, including those that follow.

    If a router has both, the contract of this host holds. Both count here, since that one may be
    removed, or end, before the other.
    """
    return {**_settled(connection, host), **contracts_on(connection, host)}


def book_in(connection: Connection, now: datetime) -> Book:
    """Return the classes that contracts may name.

    Args:
        connection: of the transaction.
        now: time from which contracts count.
    """
    table = tables.classes
    query = select(table).where(table.c.entry.is_not(None))
    rows = connection.execute(query)
    classes = {row.name: read(row.entry, Contract, f"class {row.name}") for row in rows}
    return Book(classes, now)


def keep_classes(connection: Connection, names: Collection[str]) -> None:
    """Lock classes against changes until the transaction ends.

    Call it before locking any host, like a change of a class: otherwise the two could deadlock.
    """
    if names:
        table = tables.classes
        query = select(table.c.name).where(table.c.name.in_(sorted(names)))
        connection.execute(query.order_by(table.c.name).with_for_update(read=True)).all()


def home_of(connection: Connection, router: str) -> str | None:
    """Return the last known host of a router that a contract follows."""
    table = tables.homes
    host = connection.execute(select(table.c.host).where(table.c.router == router)).scalar()
    return None if host is None else str(host)


def contracts_on(connection: Connection, host: str) -> dict[str, Contract]:
    """Return the contracts of this host alone."""
    table = tables.contracts
    query = select(table.c.vr, table.c.contract)
    query = query.where(table.c.host == host, table.c.contract.is_not(None))
    return {
        row.vr: read(row.contract, Contract, f"contract {host}/{row.vr}")
        for row in connection.execute(query)
    }


def _settled(connection: Connection, host: str) -> dict[str, Contract]:
    """Return the contracts that follow routers on a host."""
    contracts, homes = tables.contracts, tables.homes
    query = select(contracts.c.vr, contracts.c.contract)
    query = query.join(homes, homes.c.router == contracts.c.vr)
    query = query.where(
        contracts.c.host == ANYWHERE, homes.c.host == host, contracts.c.contract.is_not(None)
    )
    return {
        name_of(ANYWHERE, row.vr): read(row.contract, Contract, f"contract {row.vr}")
        for row in connection.execute(query)
    }
