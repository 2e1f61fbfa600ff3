"""Version 0001: the first tables."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final = None

# Bytewise order, whatever the server's locale: pages go by it, and an upgrade of the server's C
# library cannot make an index wrong.
TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.DateTime(timezone=True)
# SQLite numbers rows by itself for this type alone.
NUMBER: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables, and the two rows that only ever count up."""
    _promises()
    _what_happened()
    _access()
    _the_lead()


def _promises() -> None:
    op.create_table(
        "hosts",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("entry", TEXT),
        *_version(),
    )
    op.create_table(
        "contracts",
        sa.Column("host", TEXT, sa.ForeignKey("hosts.name"), primary_key=True),
        sa.Column("vr", TEXT, primary_key=True),
        sa.Column("contract", TEXT),
        *_version(),
    )
    op.create_table(
        "revisions",
        sa.Column("host", TEXT, primary_key=True),
        sa.Column("vr", TEXT, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True),
        sa.Column("contract", TEXT),
        sa.Column("at", TIME, nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["host", "vr"], ["contracts.host", "contracts.vr"]),
    )


def _version() -> tuple["sa.Column[int]", "sa.Column[object]", "sa.Column[str]"]:
    return (
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("changed_at", TIME, nullable=False),
        sa.Column("changed_by", TEXT, nullable=False),
    )


def _what_happened() -> None:
    op.create_table(
        "events",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("at", TIME, nullable=False),
        sa.Column("host", TEXT, nullable=False),
        sa.Column("vr", TEXT),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("words", TEXT, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("events_at", "events", ["at"])
    op.create_index("events_host", "events", ["host", "id"])
    op.create_index("events_vr", "events", ["vr", "id"])
    op.create_index("events_kind", "events", ["kind", "id"])
    op.create_table(
        "punishments",
        sa.Column("host", TEXT, primary_key=True),
        sa.Column("vr", TEXT, primary_key=True),
        sa.Column("height", sa.Integer, nullable=False),
        sa.Column("guilty", sa.Boolean, nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("step", TEXT, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("action", TEXT, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("before", TEXT),
        sa.Column("after", TEXT),
        sqlite_autoincrement=True,
    )


def _access() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("scopes", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by", TEXT, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("revoked_at", TIME),
    )
    op.create_table(
        "idempotency",
        sa.Column("token_id", TEXT, primary_key=True),
        sa.Column("key", TEXT, primary_key=True),
        sa.Column("request_hash", TEXT, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("headers", TEXT),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("idempotency_at", "idempotency", ["at"])


def _the_lead() -> None:
    op.create_table(
        "leadership",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", TEXT, nullable=False),
    )
    op.create_table(
        "generation",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.execute("INSERT INTO leadership (id, epoch, holder) VALUES (1, 0, '')")
    op.execute("INSERT INTO generation (id, number) VALUES (1, 0)")
