"""What is known of a token that a request shows: the policer's own, or an issuer's."""

from datetime import datetime
from typing import NamedTuple, Protocol

from policer.store import TokenRow


class Known(NamedTuple):
    """A token that was looked up, or verified."""

    row: TokenRow
    ends: datetime | None
    """When it expires; None is never."""


class Verifies(Protocol):
    """Knows tokens that an issuer has signed."""

    async def known(self, token: str) -> Known:
        """Return who shows a token; raises Unauthenticated, NotGranted or IssuerAway."""
        ...
