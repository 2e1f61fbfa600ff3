"""What an issuer's token may do here: from its claims to a scope and a reach; pure."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from policer.contracts.reach import Reach
from policer.store import Scope

MOST_NAME = 64
"""Characters of a name that is shown."""
MOST_SUBJECT = 255
"""Characters of a subject (OpenID Connect Core 1.0, section 2)."""
_LISTS_OF_WORDS = frozenset({"scope", "scp"})
"""Claims that are words with spaces between them (RFC 8693, section 4.2)."""


class Grant(NamedTuple):
    """What who has a value in the claim may do."""

    value: str
    scope: Scope
    reach: Reach


def granted(grants: Iterable[Grant], values: Iterable[str]) -> Grant | None:
    """Return the first grant, in their order, of which a token has the value; None without any."""
    has = set(values)
    return next((grant for grant in grants if grant.value in has), None)


def values_of(claims: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts in a claim: groups, roles or scopes; what is none is left out.

    A claim of that very name comes first. Else its dots lead into claims, as in
    ``realm_access.roles``.
    """
    value = claims[name] if name in claims else _inside(claims, name.split("."))
    if isinstance(value, str):
        return value.split() if name in _LISTS_OF_WORDS else [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _inside(claims: Any, names: Iterable[str]) -> Any:
    for name in names:
        if not isinstance(claims, dict):
            return None
        claims = claims.get(name)
    return claims


def subject_of(claims: Mapping[str, Any]) -> str:
    """Return whom a token is about; "" where the claim is none that can be kept and shown."""
    subject = claims.get("sub")
    fits = isinstance(subject, str) and subject.isprintable() and len(subject) <= MOST_SUBJECT
    return str(subject) if fits else ""


def name_of(claims: Mapping[str, Any], claim: str, subject: str) -> str:
    """Return a name to show; without a claim of it, that is the subject."""
    name = claims.get(claim)
    shown = name if isinstance(name, str) and name.strip() else subject
    return "".join(one if one.isprintable() else "?" for one in shown[:MOST_NAME])
