"""Version 0011: tenants, plans for the fleet, and which plan a change belongs to.

A program that does not know tenants refuses contracts that name one, so the names are taken out on
the way down.
"""

import json
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0011"
down_revision: Final = "0010"

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.DateTime(timezone=True)
ENTRIES: Final = {
    "contracts": ("contract", ("host", "vr")),
    "revisions": ("contract", ("host", "vr", "version")),
    "classes": ("entry", ("name",)),
}
"""Where contracts are: table, column, and the columns of the key."""


def upgrade() -> None:
    """Make the tables of tenants and plans, and the column of the plan in the audit log."""
    op.create_table(
        "tenants",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("entry", TEXT),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.Column("changed_by", TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger),
    )
    op.create_index("ix_tenants_generation", "tenants", ["generation"])
    op.create_table(
        "plans",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column("made_at", TIME, nullable=False),
        sa.Column("made_by", TEXT, nullable=False),
        sa.Column("maker", TEXT, nullable=False),
        sa.Column("basis", TEXT, nullable=False),
        sa.Column("fleet", sa.LargeBinary, nullable=False),
        sa.Column("planned", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("applied_at", TIME),
        sa.Column("applied_by", TEXT),
    )
    op.create_index("plans_made_at", "plans", ["made_at"])
    op.add_column("audit", sa.Column("plan", TEXT))


def downgrade() -> None:
    """Remove them, and the names of tenants in contracts and their history."""
    connection = op.get_bind()
    for name, (column, keys) in ENTRIES.items():
        _without_tenants(connection, sa.table(name, *map(sa.column, (*keys, column))), column, keys)
    op.drop_column("audit", "plan")
    op.drop_table("plans")
    op.drop_table("tenants")


def _without_tenants(
    connection: Any, table: sa.TableClause, column: str, keys: tuple[str, ...]
) -> None:
    for row in connection.execute(sa.select(table).where(table.c[column].is_not(None))).all():
        terms = json.loads(getattr(row, column))
        terms.pop("tenant", None)
        there = sa.and_(*(table.c[key] == getattr(row, key) for key in keys))
        connection.execute(table.update().where(there).values({column: json.dumps(terms)}))
