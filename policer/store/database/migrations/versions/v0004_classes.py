"""Version 0004: contracts follow routers, name classes, and hold at some times alone.

The row "" among the hosts is no host: what is promised there follows its router. A program that
does not know classes cannot keep contracts of one, so they are taken out on the way down.
"""

import json
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0004"
down_revision: Final = "0003"

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.DateTime(timezone=True)
NEW: Final = ("class", "valid_from", "valid_until", "hours", "zone")
KEYS: Final = ("host", "vr")


def upgrade() -> None:
    """Make the tables of classes and of routers' homes, and the row of no host."""
    op.create_table(
        "classes",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("entry", TEXT),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.Column("changed_by", TEXT, nullable=False),
    )
    op.create_table(
        "homes",
        sa.Column("router", TEXT, primary_key=True),
        sa.Column("host", TEXT, nullable=False),
        sa.Column("since", TIME, nullable=False),
    )
    op.create_index("homes_host", "homes", ["host"])
    hosts = sa.table(
        "hosts",
        sa.column("name"),
        sa.column("version"),
        sa.column("changed_at", TIME),
        sa.column("changed_by"),
    )
    row = {"name": "", "version": 1, "changed_at": datetime.now(UTC), "changed_by": "policer"}
    op.get_bind().execute(hosts.insert().values(row))


def downgrade() -> None:
    """Remove what the older program does not know: contracts that need it, and their history."""
    connection = op.get_bind()
    contracts, revisions = _table("contracts"), _table("revisions", "version")
    for row in connection.execute(sa.select(contracts)).all():
        if row.host == "" or _names_classes(row.contract):
            for table in (revisions, contracts):
                there = (table.c.host == row.host) & (table.c.vr == row.vr)
                connection.execute(table.delete().where(there))
    for table in (contracts, revisions):
        _without_terms(connection, table)
    hosts = sa.table("hosts", sa.column("name"))
    connection.execute(hosts.delete().where(hosts.c.name == ""))
    op.drop_table("homes")
    op.drop_table("classes")


def _table(name: str, *more: str) -> sa.TableClause:
    return sa.table(name, *map(sa.column, (*KEYS, *more, "contract")))


def _names_classes(contract: str | None) -> bool:
    if contract is None:
        return False
    terms = json.loads(contract)
    return bool(terms.get("class") or terms.get("hours"))


def _without_terms(connection: Any, table: sa.TableClause) -> None:
    """Take the new terms out of contracts; a revision that named a class promised nothing."""
    keys = [name for name in table.c.keys() if name != "contract"]  # noqa: SIM118  columns
    for row in connection.execute(sa.select(table).where(table.c.contract.is_not(None))).all():
        terms = {k: v for k, v in json.loads(row.contract).items() if k not in NEW}
        there = sa.and_(*(table.c[key] == getattr(row, key) for key in keys))
        connection.execute(table.update().where(there).values(contract=json.dumps(terms)))
