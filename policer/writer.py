"""Writes what the rounds noticed into the store, off the loop; a slow database delays no round."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

import structlog

from policer.asking import Asking
from policer.errors import StoreError
from policer.store import Event, PunishmentRow, Store

MOST_WAITING = 10_000
"""Events that wait for a database that is away; beyond, the oldest are dropped and counted."""
FLUSH_EVERY_S = 0.5
AT_ONCE = 500


class Writer:
    """Keeps events and punishments until the store has taken them."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._asking = Asking(clock)
        self._events: deque[Event] = deque()
        self._punished: dict[tuple[str, str], PunishmentRow | None] = {}
        self._log = structlog.get_logger("policer.writer")
        self.dropped = 0
        """Events lost, since the store was away for too long."""
        self._refused = ""
        """What the store said when it took nothing."""

    @property
    def waiting(self) -> int:
        """Events that the store has not taken yet."""
        return len(self._events)

    @property
    def problem(self) -> str:
        """Why the store takes nothing, while it does not."""
        return self._asking.problem or self._refused

    def note(self, event: Event) -> None:
        """Keep an event for the store."""
        if len(self._events) >= MOST_WAITING:
            self._events.popleft()
            self.dropped += 1
        self._events.append(event)

    def punish(self, host: str, vr: str, row: PunishmentRow | None) -> None:
        """Keep where a router stands on its ladder; None where it stands on none."""
        self._punished[host, vr] = row

    async def run(self) -> None:
        """Write what waits, for ever; what is left when cancelled is written before it ends."""
        try:
            while True:
                await asyncio.sleep(FLUSH_EVERY_S)
                await self._asking.ask(self.flush)
        finally:
            await asyncio.to_thread(self.flush)

    def flush(self) -> None:
        """Write what waits; what the store does not take waits on."""
        try:
            self._flush_punishments()
            self._flush_events()
        except StoreError as error:
            if not self._refused:
                self._log.error("the store takes nothing", problem=str(error))
            self._refused = str(error)
        else:
            self._refused = ""

    def _flush_punishments(self) -> None:
        """Write the latest of each router; what changed meanwhile waits for the next time."""
        taken = dict(self._punished)
        if not taken:
            return
        rows = [row for row in taken.values() if row is not None]
        gone = [key for key, row in taken.items() if row is None]
        self._store.punishments.set(rows, gone)
        for key, row in taken.items():
            if self._punished.get(key) is row:
                del self._punished[key]

    def _flush_events(self) -> None:
        while self._events:
            batch = [self._events[i] for i in range(min(AT_ONCE, len(self._events)))]
            self._store.events.add(batch)
            for event in batch:
                if self._events and self._events[0] is event:
                    self._events.popleft()
