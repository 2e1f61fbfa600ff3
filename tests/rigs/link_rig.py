"""A link that runs, what it was told, and waiting for that."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from policer.contracts.host import Host
from policer.errors import LinkError
from policer.link import Keys, Link
from xtc.wire import Report, Telemetry

PATIENCE_S = 45.0
REASON_S = 5.0
"""A deadline, or a silence, before which libzmq's thread says why there is no answer."""


class Listener:
    """A link, and all that it told."""

    def __init__(self, host: Host, keys: Keys | None, silence_s: float) -> None:
        self.heard: list[Telemetry] = []
        self.troubles: list[str] = []
        self._news = asyncio.Event()
        self.link = Link(host, keys, self._hear, on_trouble=self._worry, silence_s=silence_s)

    def _hear(self, _host: str, telemetry: Telemetry) -> None:
        self.heard.append(telemetry)
        self._news.set()

    def _worry(self, _host: str, error: LinkError) -> None:
        assert isinstance(error, LinkError)
        self.troubles.append(str(error))
        self._news.set()

    def report(self, vr: str) -> Report:
        """Return how a router stood at the last tick that was heard."""
        return next(report for report in self.heard[-1].routers if report.vr == vr)

    def first(self, vr: str, holds: Callable[[Report], object]) -> float:
        """Return when something held first of a router, by the daemon's clock."""
        return next(
            telemetry.at
            for telemetry in self.heard
            for report in telemetry.routers
            if report.vr == vr and holds(report)
        )

    async def until(
        self,
        holds: Callable[[], object],
        meanwhile: Callable[[], object] = lambda: None,
        *,
        seconds: float = PATIENCE_S,
    ) -> None:
        """Wait until something holds; have something else done again and again meanwhile."""
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.to_thread(meanwhile)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.05)
                self._news.clear()


@asynccontextmanager
async def listening(
    host: Host, keys: Keys | None = None, silence_s: float = PATIENCE_S
) -> AsyncIterator[Listener]:
    """Run a link to a host."""
    listener = Listener(host, keys, silence_s)
    task = asyncio.create_task(listener.link.run())
    try:
        yield listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
