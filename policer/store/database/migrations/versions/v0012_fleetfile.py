"""Version 0012: tenants, plans for the fleet, and which plan a change belongs to.

Tenants that contracts name already are entered.
"""

import json
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0012"
down_revision: Final = "0011"

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables of tenants and plans, and the column of the plan in the audit log."""
    tenants = op.create_table(
        "tenants",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("entry", TEXT),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.Column("changed_by", TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger),
    )
    op.create_index("ix_tenants_generation", "tenants", ["generation"])
    _enter(tenants)
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
    """Remove them; contracts keep the names of their tenants."""
    op.drop_column("audit", "plan")
    op.drop_table("plans")
    op.drop_table("tenants")


def _enter(tenants: sa.Table) -> None:
    """Enter the tenants that contracts name, in the generation that there is."""
    connection = op.get_bind()
    contracts = sa.table("contracts", sa.column("contract", TEXT))
    stored = sa.select(contracts.c.contract).where(contracts.c.contract.is_not(None))
    rows = connection.execute(stored).scalars()
    named = {json.loads(terms).get("tenant") for terms in rows} - {None}
    number = sa.select(sa.table("generation", sa.column("number")).c.number).scalar_subquery()
    row = {"entry": "{}", "version": 1, "changed_at": datetime.now(UTC), "changed_by": "upgrade"}
    for name in sorted(named):
        connection.execute(tenants.insert().values(name=name, generation=number, **row))
