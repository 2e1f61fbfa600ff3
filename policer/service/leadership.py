"""Leadership: takes the lead when it is free, and stops immediately when it is lost.

The holder of the store's lock leads. The epoch that comes with the lock ensures that daemons obey
only the latest leader, even if a disconnected policer still considers itself leader.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from policer.errors import StoreError
from policer.fleet.live import Fleet, Leadership

TRY_EVERY_S = 1.0
"""Interval at which the lock is tried or checked: a failover takes no longer than a few of
these."""
NAP_S = 0.2
"""Longest wait before a requested epoch is taken."""
PATIENCE_S = 3.0
"""A leader that cannot check its lock for this time stops sending orders."""
_SILENT = f"the database did not answer within {PATIENCE_S:g} s"


class Lock(Protocol):
    """Interface of the store (`policer.store.service.leadership`)."""

    @property
    def since(self) -> int:
        """The epoch since which no other policer has led."""
        ...

    def acquire(self, above: int = 0) -> int | None:
        """Return a new epoch, above all before and a given one, if the lock was free."""
        ...

    def still(self) -> bool:
        """Whether the lock is held."""
        ...

    def holder(self) -> tuple[str, int]:
        """Return the leader and its epoch, as far as known."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class LeaderElection:
    """Updates `fleet.leadership`; call `release` after the last order."""

    def __init__(self, lock: Lock, fleet: Fleet, name: str, clock: Callable[[], float]) -> None:
        self._lock, self._fleet, self._name, self._clock = lock, fleet, name, clock
        self._log = structlog.get_logger("policer.lead")
        self._sure_at = 0.0
        """When the query started that last confirmed the lock."""
        self._above = 0
        """An epoch that a host obeyed and this policer did not issue."""
        self._asked = False
        """Whether a higher epoch was requested since the last check."""

    def raise_above(self, epoch: int) -> None:
        """Take an epoch above one that a host obeys, as long as this policer leads."""
        self._above = max(self._above, epoch)
        self._asked = True

    async def run(self) -> None:
        """Maintain the lock until cancelled."""
        while True:
            await self.look()
            await self._rest(min(TRY_EVERY_S, self._patience()))

    async def _rest(self, seconds: float) -> None:
        """Wait some seconds, or until a higher epoch is requested."""
        until = self._clock() + seconds
        while not self._asked and (left := until - self._clock()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, NAP_S))  # an event would not follow this clock
        self._asked = False

    async def look(self) -> None:
        """Check the lock once; a lead ends in time even if the database is slow."""
        asked_at, patience = self._clock(), self._patience()
        if patience == 0:
            self._doubt(_SILENT)
            return
        looking = self._keep if self._fleet.leadership.leading else self._try
        try:
            # Not wait_for: before Python 3.12 it may lose a cancellation.
            async with asyncio.timeout(patience):
                now = await asyncio.to_thread(looking)
        except (StoreError, TimeoutError) as error:
            self._doubt(str(error) or _SILENT)
        else:
            self._take(now, asked_at)

    async def release(self) -> None:
        """Stop sending orders, and release the lock."""
        self._fleet.leadership = Leadership()
        await asyncio.to_thread(self._release)

    def _patience(self) -> float:
        """Return how many seconds the database may stay silent from now on."""
        if not self._fleet.leadership.leading:
            return PATIENCE_S
        return max(0.0, PATIENCE_S - (self._clock() - self._sure_at))

    def _keep(self) -> Leadership:
        """Return whether the lead continues."""
        before = self._fleet.leadership
        if not self._lock.still():
            return Leadership()
        if self._above < before.epoch:
            return replace(before, problem="")
        return self._try()

    def _try(self) -> Leadership:
        """Take the lead if it is free."""
        epoch = self._lock.acquire(self._above)
        if epoch is not None:
            return Leadership(True, epoch, self._name, since=self._lock.since)
        holder, of_holder = self._lock.holder()
        return Leadership(epoch=of_holder, holder=holder)

    def _take(self, now: Leadership, asked_at: float) -> None:
        before, self._fleet.leadership = self._fleet.leadership, now
        self._sure_at = asked_at
        if now.leading is not before.leading:
            self._log.warning("leads" if now.leading else "no_longer_leads", epoch=now.epoch)
        elif now.epoch > before.epoch > 0 and now.leading:
            self._log.warning("its epoch was raised", before=before.epoch, epoch=now.epoch)

    def _doubt(self, problem: str) -> None:
        """Continue for a moment without a confirmed lock; the epoch bounds the harm."""
        before = self._fleet.leadership
        leads = before.leading and self._patience() > 0
        self._fleet.leadership = replace(before, leading=leads, problem=problem)
        if before.leading and not leads:
            self._log.error("no_longer_leads", problem=problem)

    def _release(self) -> None:
        try:
            self._lock.release()
        except StoreError as error:
            self._log.warning("lock_not_released", problem=str(error))
