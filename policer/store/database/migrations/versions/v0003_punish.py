"""Version 0003: a contract says when its router may be punished.

Contracts are JSON, so that no table changes. The version keeps out programs that do not know the
term. A contract that was made before has the default, `when_harming`.
"""

import json
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0003"
down_revision: Final = "0002"

KEYS: Final = {"contracts": ("host", "vr"), "revisions": ("host", "vr", "version")}


def upgrade() -> None:
    """Change nothing: a contract that does not say has the default."""


def downgrade() -> None:
    """Take the term out of all contracts and of their history."""
    for name, keys in KEYS.items():
        _without_punish(sa.table(name, *map(sa.column, (*keys, "contract"))), keys)


def _without_punish(table: sa.TableClause, keys: tuple[str, ...]) -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(table).where(table.c.contract.is_not(None))).all():
        contract = json.loads(row.contract)
        if contract.pop("punish", None) is not None:
            there = sa.and_(*(table.c[key] == getattr(row, key) for key in keys))
            connection.execute(table.update().where(there).values(contract=json.dumps(contract)))
