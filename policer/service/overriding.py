"""Follows the overrides in the store: shows what stands, ends what is over, asks for epochs.

The store is the only source, so that a request to any policer reaches the leader, and a new leader
goes on with what stands. A store that is away changes nothing but ends, which the clock decides.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from policer.contracts.overrides import Override, Overrides, standing
from policer.errors import StoreError
from policer.fleet.live import Fleet
from policer.service.store_call import Asking
from policer.store import Store

FOLLOW_EVERY_S = 0.4
"""How often the store is asked: the leader applies an override within a second."""


class Overriding:
    """Keeps `fleet.overrides` true."""

    def __init__(
        self,
        store: Store,
        fleet: Fleet,
        clock: Callable[[], float],
        wall: Callable[[], float],
        raise_above: Callable[[int], None],
    ) -> None:
        """Take what it works with.

        Args:
            store: where overrides are.
            fleet: where what stands is shown.
            clock: seconds of the policer's clock.
            wall: the time of day, seconds since 1970.
            raise_above: asks a leader for an epoch above another.
        """
        self._store, self._fleet, self._wall = store, fleet, wall
        self._raise_above = raise_above
        self._asking = Asking(clock)
        self._one_at_a_time = asyncio.Lock()
        self._seen = -1
        """The store's generation that was read last."""
        self._set: Sequence[Override] = ()

    @property
    def problem(self) -> str:
        """Why the store is of no use, while it says nothing."""
        return self._asking.problem

    async def run(self) -> None:
        """Follow the store until cancelled."""
        while True:
            try:
                await self.read()
                await self._act()
            except StoreError:
                pass  # the service asks as well, and says so
            await asyncio.sleep(FOLLOW_EVERY_S)

    async def read(self) -> None:
        """Take over what changed; raises StoreError."""
        async with self._one_at_a_time:
            generation = await self._asking.ask(self._store.generation)
            if generation == self._seen:
                return
            self._set = await self._asking.ask(self._store.overrides.all)
            self._seen = generation
            self._fleet.overrides = standing(self._set, self._now())

    def show(self) -> None:
        """Show no more what is over; waits for nothing."""
        until, now = self._fleet.overrides.until, self._now()
        if until is not None and until <= now:
            self._fleet.overrides = standing(self._set, now)

    async def _act(self) -> None:
        """Do what is the leader's: end what is over, and take the epoch that is asked for."""
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
