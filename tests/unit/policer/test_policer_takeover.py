"""The service, when the lead is won, lost, won again and given up: who is punished then."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest
from store_values import host

from policer.errors import StoreBusy
from policer.fleet.inbox import Pardon
from policer.fleet.live import Fleet
from policer.service.host_loop import HostLoop
from policer.service.service import Service, ServiceSettings
from policer.store import PunishmentRow, Store
from policer.store.service.leadership import Leadership

pytest_plugins = ["store_rig"]
pytestmark = pytest.mark.anyio

KEY = ("gold", "r1")
SINCE = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


def row(height: int = 2, step: str = "lower") -> PunishmentRow:
    return PunishmentRow(*KEY, height, guilty=True, since=SINCE, step=step)


@dataclass
class Policer:
    """A service whose tasks a test runs by hand, over a host that is never there."""

    service: Service
    fleet: Fleet
    store: Store

    @property
    def loop(self) -> HostLoop:
        return self.service._loops["gold"][0]

    @property
    def lock(self) -> Leadership:
        return self.service._lead._lock  # type: ignore[return-value]  # the store's own

    @property
    def height(self) -> int:
        """How high r1 stands on its ladder, as everybody sees it."""
        state = self.fleet.hosts["gold"].state.routers.get("r1")
        return 0 if state is None else state.punishment.height

    async def lead(self) -> None:
        """Take the lead, and over what the store has."""
        await self.service._lead.look()
        await self.service._look()

    async def read_mail(self) -> None:
        """Do what is in the inbox."""
        mail = asyncio.create_task(self.service._read_mail())
        await asyncio.sleep(0)
        mail.cancel()
        await asyncio.gather(mail, return_exceptions=True)

    def lose(self) -> None:
        """Lose the lock, as with the database's session."""
        self.lock.release()


@pytest.fixture
async def policer(store: Store) -> AsyncIterator[Policer]:
    store.hosts.add(host(), "ann")
    store.punishments.set([row()], [])
    fleet = Fleet()
    service = Service(store, fleet, ServiceSettings("me"), None)
    made = Policer(service, fleet, store)
    yield made
    await service._end_all()


async def test_an_accepted_pardon_holds_though_the_lead_is_lost_and_won_before_it_is_written(
    policer: Policer,
) -> None:
    await policer.lead()
    assert policer.height == 2
    policer.service.inbox.put(Pardon(*KEY, "anna"))
    await policer.read_mail()
    assert policer.height == 0
    policer.lose()
    await policer.lead()  # it is lost
    assert not policer.fleet.leadership.leading
    await policer.lead()
    assert policer.fleet.leadership.leading
    assert policer.height == 0
    policer.service.writer.flush()
    assert policer.store.punishments.all() == {}


async def test_a_pardon_waits_until_it_is_known_who_is_punished(policer: Policer) -> None:
    await policer.lead()
    policer.lose()
    await policer.service._lead.look()
    await policer.service._lead.look()
    assert policer.fleet.leadership.leading
    policer.service.inbox.put(Pardon(*KEY, "anna"))
    await policer.read_mail()
    await policer.service._look()
    await policer.read_mail()
    policer.service.writer.flush()
    assert policer.height == 0
    assert policer.store.punishments.all() == {}


async def test_after_another_leader_only_what_it_left_counts(policer: Policer) -> None:
    """What this one decided while it was cut off, a pardon that it accepted too, is overtaken."""
    await policer.lead()
    policer.loop.pardon("r1", "anna")
    policer.service.inbox.put(Pardon(*KEY, "anna"))
    policer.lose()
    other = policer.store.leadership("other")
    epoch = other.acquire()
    policer.store.punishments.set([row(3, "limit")], [], epoch)
    await policer.lead()
    await policer.read_mail()
    other.release()
    await policer.lead()
    await policer.read_mail()
    policer.service.writer.flush()
    assert policer.height == 3
    assert policer.store.punishments.all() == {KEY: row(3, "limit")}
    noted = [event.kind for event in policer.store.events.page(None, 9)]
    assert noted == ["pardoned"]  # not the second one, which was never carried out


async def test_a_host_that_is_reached_another_way_has_the_same_routers_punished(
    policer: Policer,
) -> None:
    await policer.lead()
    before = policer.loop
    policer.service.writer.punish(*KEY, row(3, "limit"), policer.fleet.leadership.epoch)
    moved = msgspec.structs.replace(host(), requests="ipc:///run/elsewhere")
    policer.store.hosts.replace(moved, 1, "ann")
    await policer.service._look()
    assert policer.loop is not before
    assert policer.height == 3
    await policer.service._look()
    policer.service.writer.flush()
    assert policer.store.punishments.all() == {KEY: row(3, "limit")}


async def test_a_host_that_is_removed_takes_along_what_waits(policer: Policer) -> None:
    await policer.lead()
    policer.service.writer.punish(*KEY, row(3, "limit"), policer.fleet.leadership.epoch)
    policer.store.hosts.remove("gold", 1, "ann")
    await policer.service._look()
    policer.store.hosts.add(host(), "ann")
    await policer.service._look()
    policer.service.writer.flush()
    assert (policer.height, policer.store.punishments.all()) == (0, {})


async def test_a_brake_is_not_shown_by_one_that_does_not_lead(policer: Policer) -> None:
    await policer.lead()
    policer.fleet.braked = True
    policer.lose()
    await policer.lead()
    assert not policer.fleet.braked


async def test_at_a_stop_all_is_written_before_another_may_lead(
    policer: Policer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no round is played meanwhile: its host loops ended first."""
    await policer.lead()
    task = asyncio.create_task(policer.service.run())
    await asyncio.sleep(0)
    other = policer.store.leadership("other")
    policer.service.writer.punish(*KEY, row(3, "limit"), policer.fleet.leadership.epoch)
    flush, seen = policer.service.writer.flush, []

    def slow() -> None:
        seen.append((other.acquire(), list(policer.service._loops)))
        flush()

    monkeypatch.setattr(policer.service.writer, "flush", slow)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert seen == [(None, [])]
    assert policer.store.punishments.all() == {KEY: row(3, "limit")}
    assert other.acquire() is not None


async def test_a_store_that_is_away_at_a_stop_keeps_nobody_from_leading(
    policer: Policer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> bool:
        raise StoreBusy("locked by another program")

    await policer.lead()
    policer.service.writer.punish(*KEY, row(3, "limit"), policer.fleet.leadership.epoch)
    monkeypatch.setattr(policer.store.punishments, "set", busy)
    task = asyncio.create_task(policer.service.run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert policer.store.leadership("other").acquire() is not None


async def test_what_cannot_be_read_is_taken_over_at_the_next_look(
    policer: Policer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy() -> dict[tuple[str, str], PunishmentRow]:
        raise StoreBusy("locked by another program")

    with monkeypatch.context() as patch:
        patch.setattr(policer.store.punishments, "all", busy)
        await policer.lead()
        assert policer.service.store_problem
        assert policer.service._ruled == 0  # no round is played
    await policer.service._look()
    assert policer.height == 2
