"""Writes results of the rounds into the store, off the loop; a slow database delays no round."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

import structlog

from policer.errors import StoreError
from policer.service.store_call import StoreCall
from policer.store import Event, PunishmentRow, Store

MOST_WAITING = 10_000
"""Limit of events waiting for an unavailable database; beyond, the oldest are dropped and
counted."""
FLUSH_EVERY_S = 0.5
AT_ONCE = 500


class _Decided(NamedTuple):
    """Step of a router on its ladder, and the epoch of that decision."""

    epoch: int
    row: PunishmentRow | None


class Writer:
    """Keeps events and punishments until the store has taken them."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._asking = StoreCall(clock)
        self._events: deque[Event] = deque()
        self._punished: dict[tuple[str, str], _Decided] = {}
        self._homes: dict[str, tuple[int, str]] = {}
        """Epoch and host of routers that moved."""
        self._mutex = Lock()
        """Held for moments, to read and change `_punished`."""
        self._flushing = Lock()
        """Held while writing: an earlier decision is never written later."""
        self._log = structlog.get_logger("policer.writer")
        self.dropped = 0
        """Events lost because the store was unavailable for too long."""
        self._refused = ""
        """The store's error when it accepted nothing."""

    @property
    def waiting(self) -> int:
        """Number of events that the store has not taken yet."""
        return len(self._events)

    @property
    def problem(self) -> str:
        """Why the store takes nothing, while it does not."""
        return self._asking.problem or self._refused

    def note(self, event: Event) -> None:
        """Queue an event for the store."""
        if len(self._events) >= MOST_WAITING:
            self._events.popleft()
            self.dropped += 1
        self._events.append(event)

    def punish(self, host: str, vr: str, row: PunishmentRow | None, epoch: int) -> None:
        """Queue a router's step on its ladder, as decided in an epoch; None is no step."""
        with self._mutex:
            self._punished[host, vr] = _Decided(epoch, row)

    def settle(self, router: str, host: str, epoch: int) -> None:
        """Queue the host of a router that its contract follows, as seen in an epoch."""
        with self._mutex:
            self._homes[router] = epoch, host

    def lead(self, since: int, epoch: int) -> None:
        """Continue in a new epoch: entries since `since` stay valid, older ones are superseded."""
        with self._mutex:
            waits = {k: d for k, d in self._punished.items() if d.epoch >= since}
            if lost := len(self._punished) - len(waits):
                self._log.warning("superseded_punishments_not_written", routers=lost)
            self._punished = {key: _Decided(epoch, d.row) for key, d in waits.items()}

    def forget(self, host: str) -> None:
        """Drop what waits for a removed host."""
        with self._mutex:
            self._punished = {key: d for key, d in self._punished.items() if key[0] != host}

    def punished(self) -> dict[tuple[str, str], PunishmentRow]:
        """Return the punishments in the store and those that it has not taken yet.

        Raises:
            StoreError: the store cannot be read.
        """
        # What is written meanwhile is in the store's answer, or waited before it.
        before = self._waiting_rows()
        latest = {**self._store.punishments.all(), **before, **self._waiting_rows()}
        return {key: row for key, row in latest.items() if row is not None}

    def _waiting_rows(self) -> Mapping[tuple[str, str], PunishmentRow | None]:
        with self._mutex:
            return {key: decided.row for key, decided in self._punished.items()}

    async def run(self) -> None:
        """Write what waits until cancelled; `flush` writes the rest."""
        while True:
            await asyncio.sleep(FLUSH_EVERY_S)
            await self._asking.ask(self.flush)

    def flush(self) -> None:
        """Write what waits; what the store does not take keeps waiting."""
        with self._flushing:
            try:
                self._flush_punishments()
                self._flush_homes()
                self._flush_events()
            except StoreError as error:
                if not self._refused:
                    self._log.error("the store takes nothing", problem=str(error))
                self._refused = str(error)
            else:
                self._refused = ""

    def _flush_punishments(self) -> None:
        """Write the latest state of each router; later changes wait for the next time.

        Entries that another epoch blocks also wait, until the owner of that epoch is known
        (`lead`).
        """
        with self._mutex:
            taken = dict(self._punished)
        for epoch in sorted({decided.epoch for decided in taken.values()}):
            self._write({key: d for key, d in taken.items() if d.epoch == epoch}, epoch)

    def _write(self, decided: Mapping[tuple[str, str], _Decided], epoch: int) -> None:
        rows = [one.row for one in decided.values() if one.row is not None]
        gone = [key for key, one in decided.items() if one.row is None]
        if not self._store.punishments.set(rows, gone, epoch):
            return
        with self._mutex:
            for key, one in decided.items():
                if self._punished.get(key) is one:
                    del self._punished[key]

    def _flush_homes(self) -> None:
        """Write the places of routers; the next leader sees those that an epoch superseded."""
        with self._mutex:
            taken = dict(self._homes)
        for epoch in sorted({epoch for epoch, _ in taken.values()}):
            self._store.homes.set({r: h for r, (e, h) in taken.items() if e == epoch}, epoch)
        with self._mutex:
            self._homes = {r: one for r, one in self._homes.items() if taken.get(r) != one}

    def _flush_events(self) -> None:
        while self._events:
            batch = [self._events[i] for i in range(min(AT_ONCE, len(self._events)))]
            self._store.events.add(batch)
            for event in batch:
                if self._events and self._events[0] is event:
                    self._events.popleft()
