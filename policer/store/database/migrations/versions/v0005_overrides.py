"""Version 0005: what operators override, one row for each brake, host, router or epoch."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0005"
down_revision: Final = "0004"

# As in version 0001: bytewise order, whatever the server's locale.
TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the table, and the two rows that are about the fleet."""
    op.create_table(
        "overrides",
        sa.Column("kind", TEXT, primary_key=True),
        sa.Column("host", TEXT, primary_key=True),
        sa.Column("vr", TEXT, primary_key=True),
        sa.Column("mode", TEXT),
        sa.Column("above", sa.BigInteger),
        sa.Column("until", TIME),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.Column("changed_by", TEXT, nullable=False),
    )
    op.execute(
        "INSERT INTO overrides (kind, host, vr, reason, version, changed_at, changed_by) VALUES "
        "('brake', '', '', '', 1, CURRENT_TIMESTAMP, 'policer'), "
        "('epoch', '', '', '', 1, CURRENT_TIMESTAMP, 'policer')"
    )


def downgrade() -> None:
    """Forget all overrides; the older program knows none."""
    op.drop_table("overrides")
