"""Version 0009: what operators enter says in which generation it was changed last.

Policers then read again what was changed, and not all there is. All rows begin with the generation
of the upgrade.
"""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0009"
down_revision: Final = "0008"

TABLES: Final = ("hosts", "contracts", "classes", "overrides")


def upgrade() -> None:
    """Number the rows."""
    connection = op.get_bind()
    number = sa.select(sa.table("generation", sa.column("number")).c.number).scalar_subquery()
    for name in TABLES:
        op.add_column(name, sa.Column("generation", sa.BigInteger))
        rows = sa.table(name, sa.column("generation"))
        connection.execute(rows.update().values(generation=number))
        op.create_index(f"ix_{name}_generation", name, ["generation"])


def downgrade() -> None:
    """Forget the numbers."""
    for name in TABLES:
        op.drop_index(f"ix_{name}_generation", name)
        op.drop_column(name, "generation")
