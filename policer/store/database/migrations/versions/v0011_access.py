"""Version 0011: tokens have limits, contracts tenants, and changes ids and addresses.

A contract is JSON: its tenant takes no column. An event has the tenant that its router had then.
"""

import json
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0011"
down_revision: Final = "0010"

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.DateTime(timezone=True)
NEW: Final = {"events": ("tenant",), "audit": ("actor_id", "address"), "tokens": ("reach",)}
TERMS: Final = {"contracts": "contract", "revisions": "contract", "classes": "entry"}
"""Where terms are, in which column."""


def upgrade() -> None:
    """Make the columns: what already exists is unlimited, without tenant and author."""
    op.add_column("events", sa.Column("tenant", TEXT))
    op.create_index("events_tenant", "events", ["tenant", "id"])
    for name in NEW["audit"]:
        op.add_column("audit", sa.Column(name, TEXT, nullable=False, server_default=""))
    op.add_column("tokens", sa.Column("reach", TEXT))


def downgrade() -> None:
    """Revoke limited tokens, which an older program would not limit; forget tenants."""
    _revoke_limited()
    for name, column in TERMS.items():
        _without_tenant(name, column)
    op.drop_index("events_tenant", "events")
    for table, columns in NEW.items():
        for column in columns:
            op.drop_column(table, column)


def _revoke_limited() -> None:
    tokens = sa.table("tokens", sa.column("reach"), sa.column("revoked_at", TIME))
    limited = tokens.c.reach.is_not(None) & tokens.c.revoked_at.is_(None)
    op.execute(tokens.update().where(limited).values(revoked_at=datetime.now(UTC)))


def _without_tenant(name: str, column: str) -> None:
    """Take the tenant out of terms, where it is stored though it is none, too."""
    connection = op.get_bind()
    table = sa.Table(name, sa.MetaData(), autoload_with=connection)  # its key may be any
    stored = table.c[column]
    wanted = sa.select(*table.primary_key, stored).where(stored.is_not(None))
    for row in connection.execute(wanted).all():
        terms = json.loads(getattr(row, column))
        if "tenant" in terms:
            del terms["tenant"]
            there = sa.and_(*(key == getattr(row, key.name) for key in table.primary_key))
            connection.execute(table.update().where(there).values({column: json.dumps(terms)}))
