"""State of a request while it is answered: its id, its token, and cleanup at its end."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from litestar.types import Scope

from policer.store import TokenRow

_KEY = "xtc_exchange"


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    """Shown in the log, in the answer's X-Request-Id, and in problem documents."""
    token: str = ""
    """Name of the token of the request; never the secret."""
    actor: str = ""
    """Its id."""
    status: int = 0
    ends: list[Callable[[], None]] = field(default_factory=list)
    """Called when the exchange is over, however it ends."""

    def asked_by(self, token: TokenRow) -> None:
        """Record the token, for the log."""
        self.token, self.actor = token.name, token.id

    def end(self) -> None:
        """Release what the request held."""
        while self.ends:
            self.ends.pop()()


def begin(scope: Scope) -> Exchange:
    """Create the exchange of a request."""
    exchange = Exchange()
    scope.setdefault("state", {})[_KEY] = exchange
    return exchange


def exchange_of(scope: Scope) -> Exchange:
    """Return the exchange of a request admitted by `policer.rest.middleware`."""
    found = scope["state"][_KEY]
    assert isinstance(found, Exchange)
    return found
