"""The tables of the database, as the newest version has them (`migrations` says how they came)."""

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    null,
)
from sqlalchemy.types import TypeEngine


class SafeText(TypeDecorator[str]):
    """Text of any origin, ordered by its bytes.

    What a database cannot hold (NUL, halves of surrogate pairs) is replaced: a daemon's odd answer
    must not lose the event that tells of it, and an odd name is simply not found.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Keep PostgreSQL from ordering by the server's locale, which may change under an index."""
        collation = "C" if dialect.name == "postgresql" else None
        return Text(collation=collation)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace what cannot be stored."""
        del dialect
        if value is None:
            return None
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


class Instant(TypeDecorator[datetime]):
    """An instant in UTC, which SQLite has no type for."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Write it in UTC."""
        del dialect
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Read it in UTC."""
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata: Final = MetaData()
_NUMBER: Final = BigInteger().with_variant(Integer(), "sqlite")


def _version() -> tuple[Column[int], Column[datetime], Column[str], Column[int]]:
    """Return the columns of what is changed under a version number.

    A row that is written has no generation until the change is recorded (`audit.record`), which
    gives it the one of the change, so that no writer of rows can forget it.
    """
    return (
        Column("version", BigInteger, nullable=False),
        Column("changed_at", Instant, nullable=False),
        Column("changed_by", SafeText, nullable=False),
        Column("generation", BigInteger, index=True, onupdate=null()),
    )


# What was removed keeps its row, without an entry: its version numbers go on rising.
# The row of the name "" is no host: contracts of it follow their routers from host to host.
hosts: Final = Table(
    "hosts",
    metadata,
    Column("name", SafeText, primary_key=True),
    Column("entry", SafeText),
    *_version(),
)
contracts: Final = Table(
    "contracts",
    metadata,
    Column("host", SafeText, ForeignKey("hosts.name"), primary_key=True),
    Column("vr", SafeText, primary_key=True),
    Column("contract", SafeText),
    *_version(),
)
revisions: Final = Table(
    "revisions",
    metadata,
    Column("host", SafeText, primary_key=True),
    Column("vr", SafeText, primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("contract", SafeText),
    Column("at", Instant, nullable=False),
    Column("by", SafeText, nullable=False),
    ForeignKeyConstraint(["host", "vr"], ["contracts.host", "contracts.vr"]),
)
classes: Final = Table(
    "classes",
    metadata,
    Column("name", SafeText, primary_key=True),
    Column("entry", SafeText),
    *_version(),
)
tenants: Final = Table(
    "tenants",
    metadata,
    Column("name", SafeText, primary_key=True),
    Column("entry", SafeText),
    *_version(),
)
# Plans for the fleet, until they are a day old; `fleet` and `planned` are compressed JSON.
plans: Final = Table(
    "plans",
    metadata,
    Column("id", SafeText, primary_key=True),
    Column("made_at", Instant, nullable=False),
    Column("made_by", SafeText, nullable=False),
    Column("maker", SafeText, nullable=False),
    Column("basis", SafeText, nullable=False),
    Column("fleet", LargeBinary, nullable=False),
    Column("planned", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Column("applied_at", Instant),
    Column("applied_by", SafeText),
    Index("plans_made_at", "made_at"),
)
# Where routers are whose contracts follow them; the leader's alone to write.
homes: Final = Table(
    "homes",
    metadata,
    Column("router", SafeText, primary_key=True),
    Column("host", SafeText, nullable=False),
    Column("since", Instant, nullable=False),
    Index("homes_host", "host"),
)
events: Final = Table(
    "events",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("host", SafeText, nullable=False),
    Column("vr", SafeText),
    Column("kind", SafeText, nullable=False),
    Column("words", SafeText, nullable=False),
    Column("actor", SafeText, nullable=False),
    Column("tenant", SafeText),
    Index("events_at", "at"),
    Index("events_host", "host", "id"),
    Index("events_tenant", "tenant", "id"),
    Index("events_vr", "vr", "id"),
    Index("events_kind", "kind", "id"),
    sqlite_autoincrement=True,
)
punishments: Final = Table(
    "punishments",
    metadata,
    Column("host", SafeText, primary_key=True),
    Column("vr", SafeText, primary_key=True),
    Column("height", Integer, nullable=False),
    Column("guilty", Boolean, nullable=False),
    Column("since", Instant, nullable=False),
    Column("step", SafeText, nullable=False),
)
audit: Final = Table(
    "audit",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("actor", SafeText, nullable=False),
    Column("action", SafeText, nullable=False),
    Column("target", SafeText, nullable=False),
    Column("before", SafeText),
    Column("after", SafeText),
    Column("actor_id", SafeText, nullable=False, server_default=""),
    Column("address", SafeText, nullable=False, server_default=""),
    Column("plan", SafeText),
    sqlite_autoincrement=True,
)
tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", SafeText, primary_key=True),
    Column("name", SafeText, nullable=False),
    Column("scopes", SafeText, nullable=False),
    Column("hash", SafeText, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", SafeText, nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    Column("reach", SafeText),
)
idempotency: Final = Table(
    "idempotency",
    metadata,
    Column("token_id", SafeText, primary_key=True),
    Column("key", SafeText, primary_key=True),
    Column("request_hash", SafeText, nullable=False),
    Column("at", Instant, nullable=False),
    Column("status", Integer),
    Column("headers", SafeText),
    Column("body", LargeBinary),
    Index("idempotency_at", "at"),
)
# What was cleared, or has ended, keeps its row, without a mode: its version numbers go on rising.
overrides: Final = Table(
    "overrides",
    metadata,
    Column("kind", SafeText, primary_key=True),
    Column("host", SafeText, primary_key=True),
    Column("vr", SafeText, primary_key=True),
    Column("mode", SafeText),
    Column("above", BigInteger),
    Column("until", Instant),
    Column("reason", SafeText, nullable=False),
    *_version(),
)
# One row each, and its numbers only rise.
leadership: Final = Table(
    "leadership",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", SafeText, nullable=False),
)
generation: Final = Table(
    "generation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("number", BigInteger, nullable=False),
)
# The leader's alone. Each leader has a number of its own (`part`): what several wrote is added up.
history: Final = Table(
    "history",
    metadata,
    Column("host", SafeText, primary_key=True),
    Column("span", Integer, primary_key=True),
    Column("at", BigInteger, primary_key=True),
    Column("part", BigInteger, primary_key=True),
    Column("points", LargeBinary, nullable=False),
    Index("history_at", "span", "at"),
)
sla_days: Final = Table(
    "sla_days",
    metadata,
    Column("host", SafeText, primary_key=True),
    Column("vr", SafeText, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("part", BigInteger, primary_key=True),
    Column("data_s", Double, nullable=False),
    Column("promised", Double, nullable=False),
    Column("wanted", Double, nullable=False),
    Column("delivered", Double, nullable=False),
    Column("missing", Double, nullable=False),
    Column("breach_s", Double, nullable=False),
    Column("punished_s", Double, nullable=False),
    Column("punishments", Integer, nullable=False),
    Index("sla_days_day", "day"),
)
webhooks: Final = Table(
    "webhooks",
    metadata,
    Column("id", SafeText, primary_key=True),
    Column("name", SafeText, nullable=False, unique=True),
    Column("url", SafeText, nullable=False),
    Column("kinds", SafeText, nullable=False),
    Column("secret", SafeText, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", SafeText, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("tried_at", Instant),
    Column("problem", SafeText, nullable=False),
)
# Messages that were tried and not taken; without `next_at` they are dead.
webhook_letters: Final = Table(
    "webhook_letters",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("webhook", SafeText, ForeignKey("webhooks.id"), nullable=False),
    Column("message", SafeText, nullable=False),
    Column("kind", SafeText, nullable=False),
    Column("body", SafeText, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("tried_at", Instant, nullable=False),
    Column("next_at", Instant),
    Column("problem", SafeText, nullable=False),
    Index("webhook_letters_next", "webhook", "next_at"),
    Index("webhook_letters_tried", "tried_at"),
    sqlite_autoincrement=True,
)
VERSIONED: Final = tuple(table for table in metadata.sorted_tables if "generation" in table.c)
"""The tables whose rows say in which generation they were changed last."""
