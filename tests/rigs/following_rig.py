"""A policer over hosts without sockets: a test says what they tell, what time it is, who leads."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

from hostloop_rig import Daemon
from policer_plant import report_of

from common.clock import FakeClock
from common.units import Seconds
from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE
from policer.fleet.live import Fleet, HostLive
from policer.link import Link
from policer.service.host_loop import HostLoop
from policer.service.service import Service, ServiceSettings
from policer.store import Event, PunishmentRow, Store
from xtc.wire import Report, Telemetry

UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
"""A Monday."""


class Policer:
    """One policer on a store that others may share; its tasks are run by hand."""

    def __init__(self, store: Store, name: str = "me") -> None:
        self.store, self.fleet = store, Fleet()
        self.clock, self.today = FakeClock(1000.0), NOON
        self._ticks = count(1)
        settings = ServiceSettings(name)
        self.service = Service(
            store, self.fleet, settings, None, self.clock.now, wall=lambda: self.today
        )
        self.service.writer.note = self._note  # type: ignore[method-assign]  # all is kept
        self.events: list[Event] = []

    def _note(self, event: Event) -> None:
        self.events.append(event)
        type(self.service.writer).note(self.service.writer, event)

    async def look(self) -> None:
        """Do what is done once a second: see who leads, what the store has, and what time it is."""
        await self.service._lead.look()
        await self.service._look()
        for loop, task in self.service._loops.values():
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            if not isinstance(loop._link, Daemon):
                loop._link = cast("Link", Daemon())
        self.tick_over()

    def tick_over(self) -> None:
        """Do what needs no store."""
        self.service._following.look(tuple(self.service._loops))

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.sleep(Seconds(seconds))
        self.today += timedelta(seconds=seconds)

    async def hear(self, host: str, *reports: str | Report, seconds: float = 1.0) -> None:
        """Let so many seconds pass, a host tell which routers it has, and a round be played."""
        self.wait(seconds)
        self.tell(host, *reports)
        await self.loop(host)._round()

    def tell(self, host: str, *reports: str | Report) -> None:
        """Have a host tell which routers it has."""
        found = tuple(report_of(one) if isinstance(one, str) else one for one in reports)
        self.loop(host)._hear(host, Telemetry(self.clock.now(), next(self._ticks), found))

    def loop(self, host: str) -> HostLoop:
        return self.service._loops[host][0]

    def live(self, host: str) -> HostLive:
        return self.fleet.hosts[host]

    def contracts(self, host: str) -> Mapping[str, Contract]:
        return self.live(host).contracts

    def heights(self, host: str) -> dict[str, int]:
        """Return how high each router of a host stands on its ladder, of those that do."""
        routers = self.loop(host)._state.routers.items()
        return {vr: one.punishment.height for vr, one in routers if one.punishment.height}

    def kinds(self, *wanted: str) -> list[tuple[str, str, str | None]]:
        """Return kind, host and router of all events of some kinds."""
        return [(e.kind, e.host, e.vr) for e in self.events if e.kind in wanted]

    async def end(self) -> None:
        """End as one that dies: what was not written is lost."""
        await self.service._end_all()
        self.service._lead._lock.release()
        self.store.close()


def punished(host: str, vr: str, **changed: Any) -> PunishmentRow:
    """Return the row of a router that stands on the second step."""
    fields = {"height": 2, "guilty": True, "since": NOON, "step": "lower"}
    return PunishmentRow(host, vr, **(fields | changed))  # type: ignore[arg-type]  # of any field


def follow(store: Store, router: str, contract: Contract, home: str | None = None) -> None:
    """Have a contract follow a router, which is seen on a host."""
    store.contracts.put(ANYWHERE, router, contract, None, "test", seen_on=home)
