"""The server's connections: few for each address, and none that only waits.

uvicorn gives a client any time for its request, and counts connections that ask nothing against
those that do: a thousand idle ones would shut everybody out.
"""

import resource
from asyncio import Transport
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from policer.daemon.connection_limits import Crowd

FILES = 65_536
"""Open files that are allowed, as far as the system lets: each connection is one."""


class BoundedProtocol(H11Protocol):
    """One connection, known to the crowd from its first moment to its last."""

    def __init__(
        self,
        *arguments: Any,
        crowd: "Crowd[BoundedProtocol]",
        clock: Callable[[], float],
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._crowd, self._clock = crowd, clock

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Take the connection, and close another one for it if there are too many."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        victim = self._crowd.opened(self, address, self._clock())
        if victim is not None:
            victim.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._crowd.closed(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what has come; a request that is whole is answered, however long that takes."""
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._crowd.busy(self)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._crowd.idle(self, self._clock())
        super().on_response_complete()


def close_overdue(crowd: Crowd[BoundedProtocol], now: float) -> None:
    """Close the connections that have waited for too long."""
    for protocol in crowd.overdue(now):
        crowd.closed(protocol)
        protocol.transport.abort()


def allow_files() -> None:
    """Raise the number of open files to what is needed, as far as the system lets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
