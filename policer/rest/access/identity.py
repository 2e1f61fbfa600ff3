"""Identity of a token in a request: the policer's own, or an issuer's."""

from datetime import datetime
from typing import NamedTuple, Protocol

from policer.store import TokenRow


class Known(NamedTuple):
    """A token after lookup or verification."""

    row: TokenRow
    ends: datetime | None
    """When it expires; None is never."""


class Verifies(Protocol):
    """Verifies tokens signed by an issuer."""

    async def known(self, token: str) -> Known:
        """Return the identity of a token; raises Unauthenticated, NotGranted or IssuerAway."""
        ...
