"""Version 0010: contracts and classes may have rates in bits/s.

They are JSON, so that no table changes. The version keeps out programs that do not know the terms:
they could read no contract that has one. On the way down, rates in bits/s become packets/s of the
size for which they were sold, which is what they take of a host.
"""

import json
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0010"
down_revision: Final = "0009"

TABLES: Final = {
    "contracts": ("contract", ("host", "vr")),
    "revisions": ("contract", ("host", "vr", "version")),
    "classes": ("entry", ("name",)),
}
MAX_PPS: Final = 1e9


def upgrade() -> None:
    """Change nothing: a contract that says no bits/s has none."""


def downgrade() -> None:
    """Take bits/s out of all contracts, of their history and of all classes."""
    for name, (text, keys) in TABLES.items():
        _in_packets(sa.table(name, *map(sa.column, (*keys, text))), text, keys)


def _in_packets(table: sa.TableClause, text: str, keys: tuple[str, ...]) -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(table).where(table.c[text].is_not(None))).all():
        terms = json.loads(getattr(row, text))
        there = sa.and_(*(table.c[key] == getattr(row, key) for key in keys))
        known = {text: json.dumps(_known(terms))}
        connection.execute(table.update().where(there).values(known))


def _known(terms: dict[str, Any]) -> dict[str, Any]:
    """Return a contract's terms as the older program knows them."""
    rest = dict(terms)
    bits = 8 * rest.pop("packet_bytes", 1)
    for rate in ("guarantee", "ceiling"):
        sold = rest.pop(f"{rate}_bps", None)
        if sold is not None:
            rest[f"{rate}_pps"] = min(MAX_PPS, sold / bits)
    return rest
