"""An issuer's keys as last published: refreshed in time, with a rate limit.

Used by one event loop. No request waits for an issuer for longer than `WAIT_S`. While the issuer is
unavailable, the last keys stay valid for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import structlog

from policer.errors import IssuerAway
from policer.oidc.verify import NamedKey, usable_keys

AGAIN_S: Final = 60.0
"""Least interval of requests to the issuer, whatever keys tokens name."""
SOON_S: Final = 10.0
"""The same while there are no keys at all."""
FRESH_S: Final = 600.0
"""Keys older than this are refreshed, so that withdrawn keys expire."""
STALE_S: Final = 3600.0
"""Keys that could not be refreshed for this time are no longer used."""
WAIT_S: Final = 3.0


class FetchError(Exception):
    """The keys are unavailable; the text says why."""


class KeyRing:
    """The keys of one issuer."""

    def __init__(
        self,
        issuer: str,
        fetch: Callable[[], Awaitable[bytes]],
        clock: Callable[[], float],
        wait_s: float = WAIT_S,
    ) -> None:
        """Set the issuer, the source of its keys, a monotonic clock, and the longest wait."""
        self._issuer, self._fetch, self._clock, self._wait_s = issuer, fetch, clock, wait_s
        self._keys: Sequence[NamedKey] = ()
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._problem = ""
        """Why the last try failed."""
        self._trying: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("policer.oidc").bind(issuer=issuer)

    async def keys(self) -> Sequence[NamedKey]:
        """Return the keys; old ones are refreshed in the background.

        Raises:
            IssuerAway: there are none, or they are too old.
        """
        age = self._clock() - self._fetched_at
        if age <= FRESH_S:
            return self._keys
        self._try(SOON_S if age > STALE_S else AGAIN_S)
        if age > STALE_S:
            await self._wait()
            if self._clock() - self._fetched_at > STALE_S:
                raise IssuerAway(self._issuer, self._problem)
        return self._keys

    async def renewed(self) -> Sequence[NamedKey]:
        """Return the keys after a refresh, unless the last one was less than a minute ago.

        Raises:
            IssuerAway: the last try failed.
        """
        self._try(AGAIN_S)
        await self._wait()
        if self._problem:
            raise IssuerAway(self._issuer, self._problem)
        return self._keys

    async def close(self) -> None:
        """Stop refreshing."""
        if self._trying is not None:
            self._trying.cancel()
            with suppress(asyncio.CancelledError):
                await self._trying

    def _try(self, again_s: float) -> None:
        """Start a refresh, unless one is in progress or was done recently."""
        busy = self._trying is not None and not self._trying.done()
        if busy or self._clock() - self._tried_at < again_s:
            return
        self._tried_at = self._clock()
        self._trying = asyncio.create_task(self._ask(), name=f"keys of {self._issuer}")

    async def _wait(self) -> None:
        """Wait for a running refresh, for a limited time."""
        if self._trying is None:
            return
        done, _ = await asyncio.wait({self._trying}, timeout=self._wait_s)
        if not done:
            raise IssuerAway(self._issuer, f"no answer within {self._wait_s:g} s")

    async def _ask(self) -> None:
        try:
            keys = usable_keys(await self._fetch())
        except (FetchError, ValueError) as error:
            self._fail(str(error))
        except Exception:  # noqa: BLE001  the one firewall: what answers belongs to another program
            self._log.exception("keys_not_fetched")
            self._fail("it failed, and the log says how")
        else:
            self._keys, self._fetched_at, self._problem = keys, self._clock(), ""

    def _fail(self, problem: str) -> None:
        if problem != self._problem:
            self._log.warning("issuer_away", problem=problem)
        self._problem = problem
