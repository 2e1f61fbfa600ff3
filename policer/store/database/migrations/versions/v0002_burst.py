"""Version 0002: a contract may have a burst.

Contracts are JSON, so that no table changes. The version keeps out programs that do not know the
term: they could read no contract that has one.
"""

import json
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0002"
down_revision: Final = "0001"

KEYS: Final = {"contracts": ("host", "vr"), "revisions": ("host", "vr", "version")}


def upgrade() -> None:
    """Change nothing: a contract that says no burst has the default."""


def downgrade() -> None:
    """Take the burst out of all contracts and of their history."""
    for name, keys in KEYS.items():
        _without_burst(sa.table(name, *map(sa.column, (*keys, "contract"))), keys)


def _without_burst(table: sa.TableClause, keys: tuple[str, ...]) -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(table).where(table.c.contract.is_not(None))).all():
        contract = json.loads(row.contract)
        if "burst" in contract:
            del contract["burst"]
            there = sa.and_(*(table.c[key] == getattr(row, key) for key in keys))
            connection.execute(table.update().where(there).values(contract=json.dumps(contract)))
