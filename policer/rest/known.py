"""What is known of a token that a request shows, whoever made it."""

from datetime import datetime
from typing import NamedTuple, Protocol

from policer.store import TokenRow


class Known(NamedTuple):
    """A token that was looked up, or verified."""

    row: TokenRow
    ends: datetime | None
    """From when on it is none any more; None is never."""


class Verifies(Protocol):
    """Knows tokens that an issuer has signed."""

    async def known(self, token: str) -> Known:
        """Return who shows a token; raises Unauthenticated, NotGranted or IssuerAway."""
        ...
