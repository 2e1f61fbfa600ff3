"""Bearer tokens of the service; the database has only their hashes."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, Final, Literal, get_args

import msgspec
from sqlalchemy import Row, or_, select, update

from policer.actor import By
from policer.contracts.reach import UNLIMITED, Reach
from policer.errors import Problem, Unknown
from policer.store.database import tables
from policer.store.database.engine import Database
from policer.store.database.pruning import prune
from policer.store.database.records import Clock, as_stored, read, refuse, text_of
from policer.store.history.audit import Change, record

Scope = Literal["read", "operate", "admin"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""From the least to the most; each includes those before it."""
SECRET: Final = re.compile(r"xtcp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,64}")
_NOBODY: Final = hashlib.sha256(b"").hexdigest()


class TokenRow(msgspec.Struct, frozen=True):
    """A token, without its secret; all times UTC."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    """None never expires."""
    revoked_at: datetime | None = None
    """None is in force."""
    reach: Reach = UNLIMITED
    """Its limits."""

    def allows(self, scope: Scope) -> bool:
        """Whether it includes a scope."""
        return any(SCOPES.index(own) >= SCOPES.index(scope) for own in self.scopes)


class Tokens:
    """The table of tokens."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(
        self,
        name: str,
        scopes: Collection[str],
        expires_at: datetime | None,
        actor: By,
        reach: Reach = UNLIMITED,
    ) -> tuple[TokenRow, str]:
        """Create a token; return it with its secret, which cannot be read again.

        Args:
            name: for reading; not unique.
            scopes: its permissions.
            expires_at: None is never.
            actor: creator of the token.
            reach: its limits.

        Raises:
            Invalid: the name, a scope or a limit is invalid, the end is not in the future, or a
                limited token would be an administrator's.
        """
        now, reach = self._clock(), as_stored(reach)
        refuse((*_problems(name, scopes, expires_at, now), *problems_of(scopes, reach)))
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        made = secrets.token_hex(6), name, ordered, now, str(actor), expires_at
        row = TokenRow(*made, reach=reach)
        secret = f"xtcp_{row.id}_{secrets.token_urlsafe(32)}"
        values = msgspec.structs.asdict(row) | {
            "scopes": " ".join(ordered),
            "hash": _hash(secret),
            "reach": text_of(reach) if reach.limited else None,
        }
        with self._database.write() as connection:
            connection.execute(tables.tokens.insert().values(values))
            record(connection, now, actor, Change("add", f"token {row.id}", None, row))
        return row, secret

    def by_secret(self, secret: str) -> TokenRow | None:
        """Return the token of a secret; None if it is unknown, expired or revoked.

        Takes as long for an unknown token as for a wrong secret.
        """
        match = SECRET.fullmatch(secret)
        if match is None:
            return None
        with self._database.read() as connection:
            query = select(tables.tokens).where(tables.tokens.c.id == match[1])
            row = connection.execute(query).one_or_none()
        known = hmac.compare_digest(_hash(secret), _NOBODY if row is None else row.hash)
        if row is None or not known:
            return None
        token = _token(row)
        expired = token.expires_at is not None and token.expires_at <= self._clock()
        return None if expired or token.revoked_at is not None else token

    def prune(self, before: datetime) -> int:
        """Remove tokens that were revoked, or expired, before an instant; return how many.

        The audit log keeps their creation and revocation.
        """
        columns = tables.tokens.c
        ended = or_(columns.revoked_at < before, columns.expires_at < before)
        return prune(self._database, tables.tokens, ended)

    def all(self) -> list[TokenRow]:
        """Return every token, in force or not, the oldest first."""
        table = tables.tokens
        with self._database.read() as connection:
            rows = connection.execute(select(table).order_by(table.c.created_at, table.c.id)).all()
        return [_token(row) for row in rows]

    def revoke(self, token_id: str, actor: By) -> TokenRow:
        """Revoke a token permanently; a revoked token stays unchanged.

        Raises:
            Unknown: there is no such token.
        """
        table, now = tables.tokens, self._clock()
        with self._database.write() as connection:
            query = select(table).where(table.c.id == token_id).with_for_update()
            row = connection.execute(query).one_or_none()
            if row is None:
                raise Unknown("token", token_id, "`policer token list` lists them")
            before = _token(row)
            if before.revoked_at is not None:
                return before
            after = msgspec.structs.replace(before, revoked_at=now)
            connection.execute(update(table).where(table.c.id == token_id).values(revoked_at=now))
            record(connection, now, actor, Change("revoke", f"token {token_id}", before, after))
        return after


def problems_of(scopes: Collection[str], reach: Reach) -> Iterator[Problem]:
    """Yield the reasons why tokens of these scopes cannot have these limits."""
    if reach.limited and "admin" in scopes:
        problem = "an administrator makes tokens and hosts, and so cannot be limited"
        yield Problem("scope", problem, "give operate or read, or no limits")


def _problems(
    name: str, scopes: Collection[str], expires_at: datetime | None, now: datetime
) -> list[Problem]:
    problems = []
    if not _NAME.fullmatch(name):
        fix = "give one of 1 to 64 printable characters"
        problems.append(Problem("name", f"{name[:80]!r} is no name", fix))
    if not scopes or not set(scopes) <= set(SCOPES):
        given = ", ".join(map(repr, scopes)) or "none"
        problems.append(Problem("scopes", f"{given}", f"give one or more of {', '.join(SCOPES)}"))
    if expires_at is not None and expires_at.tzinfo is None:
        problems.append(Problem("expires_at", "it has no time zone", "give one, such as Z"))
    elif expires_at is not None and expires_at <= now:
        problems.append(Problem("expires_at", "it is over", "give an instant to come"))
    return problems


def _hash(secret: str) -> str:
    """Return a secret's hash: it has 256 random bits, so that no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Row[Any]) -> TokenRow:
    scopes = tuple(scope for scope in SCOPES if scope in row.scopes.split())
    return TokenRow(
        id=row.id,
        name=row.name,
        scopes=scopes,
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        reach=UNLIMITED if row.reach is None else read(row.reach, Reach, f"token {row.id}"),
    )
