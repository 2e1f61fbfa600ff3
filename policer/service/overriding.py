"""Follows the overrides in the store: shows current ones, ends expired ones, requests epochs.

The store is the only source, so a request to any policer reaches the leader, and a new leader keeps
the current overrides. While the store is unavailable, overrides only expire, by the clock.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from policer.contracts.overrides import Override, Overrides, standing
from policer.errors import StoreError
from policer.fleet.live import Fleet
from policer.service.store_call import StoreCall
from policer.store import Store

FOLLOW_EVERY_S = 0.4
"""Interval of reading the store: the leader applies an override within a second."""


class Overriding:
    """Updates `fleet.overrides`."""

    def __init__(
        self,
        store: Store,
        fleet: Fleet,
        clock: Callable[[], float],
        wall: Callable[[], float],
        raise_above: Callable[[int], None],
    ) -> None:
        """Take the objects it works with.

        Args:
            store: source of the overrides.
            fleet: where current overrides are shown.
            clock: seconds of the policer's clock.
            wall: the time of day, seconds since 1970.
            raise_above: requests an epoch above another from the leader.
        """
        self._store, self._fleet, self._wall = store, fleet, wall
        self._raise_above = raise_above
        self._asking = StoreCall(clock)
        self._one_at_a_time = asyncio.Lock()
        self._seen = -1
        """Generation of the store that was read last."""
        self._set: Sequence[Override] = ()

    @property
    def problem(self) -> str:
        """The store's problem while it does not answer."""
        return self._asking.problem

    async def run(self) -> None:
        """Follow the store until cancelled."""
        while True:
            try:
                await self.read()
                await self._act()
            except StoreError:
                pass  # the service reads as well, and reports the error
            await asyncio.sleep(FOLLOW_EVERY_S)

    async def read(self) -> None:
        """Take over changes; raises StoreError."""
        async with self._one_at_a_time:
            generation = await self._asking.ask(self._store.generation)
            if generation == self._seen:
                return
            self._set = await self._asking.ask(self._store.overrides.all)
            self._seen = generation
            self._fleet.overrides = standing(self._set, self._now())

    def show(self) -> None:
        """Hide expired overrides; never blocks."""
        until, now = self._fleet.overrides.until, self._now()
        if until is not None and until <= now:
            self._fleet.overrides = standing(self._set, now)

    async def _act(self) -> None:
        """Do the leader's part: end expired overrides, and take the requested epoch."""
        leadership = self._fleet.leadership
        if not leadership.leading:
            return
        now = self._now()
        if any(override.ended(now) for override in self._set):
            await self._asking.ask(self._store.overrides.end_due)
        above = _above(self._fleet.overrides)
        if above is None:
            return
        if leadership.epoch > above:
            await self._asking.ask(self._store.overrides.took_epoch, leadership.epoch)
        else:
            self._raise_above(above)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), UTC)


def _above(overrides: Overrides) -> int | None:
    return None if overrides.epoch is None else overrides.epoch.above
