"""Version 0007: the history of routers, and how contracts were kept day by day."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0007"
down_revision: Final = "0005"

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SUMS: Final = (
    "data_s",
    "promised",
    "wanted",
    "delivered",
    "missing",
    "breach_s",
    "punished_s",
)


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "history",
        sa.Column("host", TEXT, primary_key=True),
        sa.Column("span", sa.Integer, primary_key=True),
        sa.Column("at", sa.BigInteger, primary_key=True),
        sa.Column("part", sa.BigInteger, primary_key=True),
        sa.Column("points", sa.LargeBinary, nullable=False),
    )
    op.create_index("history_at", "history", ["span", "at"])
    op.create_table(
        "sla_days",
        sa.Column("host", TEXT, primary_key=True),
        sa.Column("vr", TEXT, primary_key=True),
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("part", sa.BigInteger, primary_key=True),
        *(sa.Column(name, sa.Double, nullable=False) for name in SUMS),
        sa.Column("punishments", sa.Integer, nullable=False),
    )
    op.create_index("sla_days_day", "sla_days", ["day"])


def downgrade() -> None:
    """Remove both."""
    op.drop_table("sla_days")
    op.drop_table("history")
