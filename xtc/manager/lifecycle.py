"""Begins and ends the control of routers: shield first, then cap, each once the journal has it."""

from collections.abc import Iterable
from functools import partial

from common.units import Seconds
from xtc.errors import Refused
from xtc.manager.host import Host
from xtc.manager.learned import Remembered
from xtc.manager.records import Records
from xtc.manager.router import ManagedRouter

MIXED = 0.1
"""Share of a period after which a newly written cap affects too little of its sample."""


class Lifecycle:
    """Begins and ends loops, between two ticks and in them."""

    def __init__(
        self,
        host: Host,
        records: Records,
        period: Seconds,
        remembered: Remembered | None,
    ) -> None:
        """Begin loops on a host; with what earlier runs learned, where that was kept."""
        self._host, self._records, self._period = host, records, period
        self.remembered = remembered
        self.ticked_at: Seconds | None = None
        """The instant of the last tick."""

    def begin(self, managed: ManagedRouter, now: Seconds, *, new: bool) -> None:
        """Shield a router whose control begins, or cap it, once the journal contains it."""
        managed.observed = self._host.observe
        if self.remembered is not None:
            managed.remember(self.remembered.of)
        if new:
            self._host.beginnings.start(managed.plan.name)
        if self._host.beginnings.claim(managed, now):
            self._records.store_lazily()
        self._go_on_with(managed, now)

    def go_on(self, now: Seconds) -> None:
        """Shield and cap the routers that waited only for the journal."""
        self._host.each("begin", lambda managed: self._go_on_if_waiting(managed, now))

    def _go_on_if_waiting(self, managed: ManagedRouter, now: Seconds) -> None:
        if self._host.beginnings.waits(managed.plan.name):
            self._go_on_with(managed, now)

    def _go_on_with(self, managed: ManagedRouter, now: Seconds) -> None:
        if managed.observing:
            return
        beginnings, name = self._host.beginnings, managed.plan.name
        beginnings.follow(managed, now, self._records.journal.certain)
        beginnings.first_cap(managed, self._period)
        if name in beginnings.capping - self._records.durable():
            self._records.store_lazily()
        if name in self._records.durable() and (command := beginnings.due(name)) is not None:
            managed.undurable = ""
            managed.carry_out(command)
            managed.mixed = self._is_within(now)

    def _is_within(self, now: Seconds) -> bool:
        """Whether an instant is so far into a period that its sample would mix two caps."""
        return self.ticked_at is not None and now - self.ticked_at > MIXED * self._period

    def deactivate(self, *routers: ManagedRouter) -> None:
        """Release routers on request.

        Raises:
            Refused: a cap or a limit could not be undone yet; the loop has ended anyway.
        """
        for managed in routers:
            managed.by_hand = True
        troubles = self.end(routers)
        self._records.store_lazily()
        if troubles:
            fix = "xtc retries until it succeeds; `xtc status` shows the obstacle"
            raise Refused("not_released", "vr", "; ".join(troubles), fix)

    def end(self, routers: Iterable[ManagedRouter]) -> list[str]:
        """End loops and undo their work; return messages about what could not be undone yet."""
        troubles: list[str] = []
        for managed in routers:
            if self.remembered is not None:
                note = partial(self.remembered.note, managed)
                self._host.work_on(managed, "remember", note)
            managed.instance = None
            self._host.beginnings.end(managed.plan.name)
            troubles += self._host.undo(managed)
        return troubles
