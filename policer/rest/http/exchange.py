"""What is known of a request while it is answered: its id, who asks, what its end calls for."""

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
    """In the log, in the answer's X-Request-Id, and in problem documents."""
    token: str = ""
    """The name of the token that asks; never the secret."""
    actor: str = ""
    """Its id."""
    status: int = 0
    ends: list[Callable[[], None]] = field(default_factory=list)
    """To be called when the exchange is over, however it ends."""

    def asked_by(self, token: TokenRow) -> None:
        """Note who asks, for the log."""
        self.token, self.actor = token.name, token.id

    def end(self) -> None:
        """Let go of what the request held."""
        while self.ends:
            self.ends.pop()()


def begin(scope: Scope) -> Exchange:
    """Give a request its exchange."""
    exchange = Exchange()
    scope.setdefault("state", {})[_KEY] = exchange
    return exchange


def exchange_of(scope: Scope) -> Exchange:
    """Return the exchange of a request that `policer.rest.middleware` let in."""
    found = scope["state"][_KEY]
    assert isinstance(found, Exchange)
    return found
