"""What a token may reach, as conditions of a query: the database leaves out the rest."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, and_, cast, func, or_
from sqlalchemy.dialects.postgresql import JSONB

from policer.contracts.reach import Reach, parts_of
from policer.store.database.engine import Database

_WILD: Final = frozenset("*?")
_LIKE: Final = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\", "*": "%", "?": "_"})
"""A pattern in the words of SQL's LIKE."""


class Columns(NamedTuple):
    """Where a table has host, router and tenant."""

    host: ColumnElement[str]
    vr: ColumnElement[Any]
    """None in it is about no router."""
    tenant: ColumnElement[Any]


def reaching(database: Database, reach: Reach, columns: Columns) -> Iterator[ColumnElement[bool]]:
    """Yield what rows must fulfil, the same as `Reach.may_see` and `may_see_host`.

    Rows about no router are of their host, and rows about no host are of the fleet.
    """
    if not reach.limited:
        return
    yield columns.host != ""
    if reach.hosts:
        yield _any_of(database, columns.host, reach.hosts)
    if reach.partial:
        yield columns.vr.is_not(None)
    if reach.routers:
        pairs = [parts_of(router) for router in reach.routers]
        yield or_(
            *(
                and_(_fits(database, columns.host, host), _fits(database, columns.vr, vr))
                for host, vr in pairs
            )
        )
    if reach.tenants:
        yield columns.tenant.in_(reach.tenants)


def tenant_in(database: Database, contract: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the tenant in a contract as it is stored, which is JSON."""
    if database.path is None:
        tenant: ColumnElement[Any] = cast(contract, JSONB)["tenant"].astext
        return tenant
    extracted: ColumnElement[Any] = func.json_extract(contract, "$.tenant")
    return extracted


def _any_of(
    database: Database, column: ColumnElement[Any], patterns: Sequence[str]
) -> ColumnElement[bool]:
    """Return whether a name fits any pattern; plain names are found by an index."""
    plain = [one for one in patterns if not _WILD.intersection(one)]
    wild = [one for one in patterns if _WILD.intersection(one)]
    return or_(column.in_(plain), *(_fits(database, column, one) for one in wild))


def _fits(database: Database, column: ColumnElement[Any], pattern: str) -> ColumnElement[bool]:
    """Return whether a name fits a pattern, capital letters told from small ones."""
    if not _WILD.intersection(pattern):
        return column == pattern
    if database.path is None:
        return column.like(pattern.translate(_LIKE), escape="\\")
    return column.op("GLOB", is_comparison=True)(pattern)
