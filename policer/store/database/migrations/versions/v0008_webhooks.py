"""Version 0008: webhooks, and messages that were not taken."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0008"
down_revision: Final = "0007"

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.DateTime(timezone=True)
NUMBER: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "webhooks",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column("name", TEXT, nullable=False, unique=True),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("kinds", TEXT, nullable=False),
        sa.Column("secret", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by", TEXT, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("tried_at", TIME),
        sa.Column("problem", TEXT, nullable=False),
    )
    op.create_table(
        "webhook_letters",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("webhook", TEXT, sa.ForeignKey("webhooks.id"), nullable=False),
        sa.Column("message", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("tried_at", TIME, nullable=False),
        sa.Column("next_at", TIME),
        sa.Column("problem", TEXT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("webhook_letters_next", "webhook_letters", ["webhook", "next_at"])
    op.create_index("webhook_letters_tried", "webhook_letters", ["tried_at"])


def downgrade() -> None:
    """Remove both."""
    op.drop_table("webhook_letters")
    op.drop_table("webhooks")
