"""Contracts that follow routers over hosts with real managers, real sockets and a real store."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from fleet_rig import FleetRig
from support.stores import with_tables

from policer.contracts import location as whereabouts
from policer.contracts.contract import Contract
from policer.contracts.ladder import Escalation
from policer.contracts.promised import ANYWHERE
from policer.decide.evidence import Rules
from policer.decide.state import Policy
from policer.fleet.live import Fleet, HostLive
from policer.service import following
from policer.service.service import Service, ServiceSettings
from policer.store import Store, open_store
from xtc.wire import Report, Telemetry

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

PERIOD_S = 0.25
"""Real seconds of a tick, which is a second of the host's clock."""
SOON_S = 60.0
UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"
OTHER, ROAMING = Contract(guarantee_pps=60e3), Contract(guarantee_pps=30e3)
STRICT = Policy(rules=Rules(excess=1.2, acceptable=1.1), escalation=Escalation(climb_s=2.0))
"""Half of what is offered to a1 is above twice its setpoint, by rules stricter than usual."""
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


class Stage:
    """Two hosts; a0 is on both of them, and a1 wherever the test has it be."""

    def __init__(self, hosts: FleetRig) -> None:
        self.hosts = hosts
        self.place("h0")

    def place(self, *names: str, uuid: str = "") -> None:
        """Have a1 be on some hosts alone, as a domain of that UUID."""

        def work() -> None:
            for name, host in self.hosts.hosts.items():
                host.alter = _showing(uuid) if name in names else _hiding

        self.hosts.do(work)


def _hiding(telemetry: Telemetry) -> Telemetry:
    routers = tuple(report for report in telemetry.routers if report.vr != "a1")
    return msgspec.structs.replace(telemetry, routers=routers)


def _showing(uuid: str) -> Callable[[Telemetry], Telemetry]:
    def named(report: Report) -> Report:
        return msgspec.structs.replace(report, uuid=uuid) if report.vr == "a1" else report

    def alter(telemetry: Telemetry) -> Telemetry:
        return msgspec.structs.replace(telemetry, routers=tuple(map(named, telemetry.routers)))

    return alter


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="xtc-") as name:
        yield Path(name)


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    with FleetRig(folder, hosts=2, routers=2, period_s=PERIOD_S) as rig:
        yield Stage(rig)


@pytest.fixture
def store(folder: Path, stage: Stage) -> Iterator[Store]:
    made = open_store(with_tables(folder / "policer.db"))
    for name in ("h0", "h1"):
        made.hosts.add(stage.hosts[name].entry(), "test")
        made.contracts.put(name, "a0", OTHER, None, "test")
    yield made
    made.close()


class Running:
    """A service at work."""

    def __init__(self, service: Service, fleet: Fleet) -> None:
        self.service, self.fleet = service, fleet

    def live(self, host: str) -> HostLive:
        return self.fleet.hosts[host]

    def promised(self, host: str) -> bool:
        """Whether a1 has its contract on a host."""
        return "a1" in self.live(host).contracts

    def height(self, host: str) -> int:
        """Return how high a1 stands on its ladder on a host."""
        state = self.live(host).state.routers.get("a1")
        return 0 if state is None else state.punishment.height

    def held(self, host: str) -> bool:
        """Whether a1 is held on a host at no less than its guarantee, as its daemon says."""
        report = self.live(host).telemetry.routers.get("a1")
        setpoint = report.setpoint_pps if report is not None and report.active else None
        return (setpoint or 0.0) >= ROAMING.guarantee_pps

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(SOON_S):
            while not holds():  # noqa: ASYNC110  what is waited for rings no bell
                await asyncio.sleep(0.02)

    async def rounds(self, number: int) -> None:
        """Wait until so many rounds were played."""
        played: list[float] = []
        self.service.rounds.append(played.append)
        await self.until(lambda: len(played) >= number)


@asynccontextmanager
async def running(
    store: Store,
    name: str = "one",
    policy: Policy | None = None,
    wall: Callable[[], datetime] = lambda: NOON,
) -> AsyncIterator[Running]:
    fleet = Fleet()
    service = Service(store, fleet, ServiceSettings(name, policy or Policy()), None, wall=wall)
    task = asyncio.create_task(service.run())
    here = Running(service, fleet)
    try:
        await here.until(lambda: len(fleet.hosts) == 2)
        yield here
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def kinds(store: Store, *wanted: str) -> list[tuple[str, str]]:
    """Return kind and host of the events of some kinds, the first one first."""
    rows = store.events.page(None, 500)[::-1]
    return [(row.kind, row.host) for row in rows if row.kind in wanted]


def follow(store: Store, router: str = "a1", contract: Contract = ROAMING) -> None:
    store.contracts.put(ANYWHERE, router, contract, None, "test")


async def test_a_router_that_moves_keeps_its_contract_and_its_place_on_the_ladder(
    store: Store, stage: Stage
) -> None:
    follow(store)
    async with running(store, policy=STRICT) as one:
        await one.until(lambda: one.height("h0") == 3)
        assert one.held("h0")
        stage.place("h1")
        await one.until(lambda: one.promised("h1"))
        assert (one.height("h0"), one.height("h1")) == (0, 3)  # with the first word of h1
        assert not one.promised("h0")
        await one.until(lambda: one.held("h1"))
        assert one.height("h1") == 3
        await one.until(lambda: [*store.punishments.all()] == [("h1", "a1")])
        await one.until(lambda: store.homes.all() == {"a1": "h1"})
        await one.until(lambda: kinds(store, "moved", "twice")[-1:] == [("moved", "h1")])
        stage.place("h0")
        await one.until(lambda: one.promised("h0"))
        assert (one.height("h0"), one.height("h1")) == (3, 0)


async def test_by_its_uuid_a_router_is_followed_under_any_name(store: Store, stage: Stage) -> None:
    follow(store, UUID)
    stage.place("h0", uuid=UUID.upper())
    async with running(store) as one:
        await one.until(lambda: one.promised("h0") and one.held("h0"))
        assert one.live("h0").follows == {"a1": UUID}
        stage.place("h1")  # one of that name, and another UUID
        await one.rounds(20)
        assert not one.promised("h1")
        stage.place("h1", uuid=UUID)
        await one.until(lambda: one.promised("h1") and one.held("h1"))


async def test_who_claims_anothers_router_gets_nothing_and_is_told_of_once(
    store: Store, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "TWICE_AFTER_S", 1.0)
    follow(store)
    async with running(store) as one:
        await one.until(lambda: one.held("h0"))
        stage.place("h0", "h1")
        await one.until(lambda: kinds(store, "twice"))
        await one.rounds(40)
        assert (one.promised("h0"), one.promised("h1")) == (True, False)
        assert one.held("h0")
        assert kinds(store, "twice") == [("twice", "h1")]


async def test_a_silent_host_keeps_its_routers_for_a_while_and_gets_them_back(
    store: Store, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(store)
    async with running(store) as one:
        await one.until(lambda: one.held("h0"))
        stage.hosts.do(stage.hosts["h0"].kill)
        stage.place("h0", "h1")
        await one.rounds(2)
        assert not one.promised("h1")
        monkeypatch.setattr(whereabouts, "SILENT_S", 3.0)  # only now: rounds may take longer
        await one.until(lambda: one.promised("h1"))
        stage.hosts.do(stage.hosts["h0"].revive)
        await one.until(lambda: one.promised("h0"))
        assert not one.promised("h1")


async def test_a_router_that_brings_too_much_is_told_of_once(store: Store, stage: Stage) -> None:
    follow(store, contract=Contract(guarantee_pps=85e3))
    version = store.contracts.get("h1", "a0").version.number
    store.contracts.put("h1", "a0", Contract(guarantee_pps=90e3), version, "test")
    async with running(store) as one:
        await one.until(lambda: one.promised("h0"))
        stage.place("h1")
        await one.until(lambda: kinds(store, "overpromised"))
        await one.rounds(20)
        assert one.live("h1").overpromised
        assert kinds(store, "overpromised") == [("overpromised", "h1")]


async def test_the_next_leader_goes_on_with_a_router_that_moved_in_between(
    store: Store, stage: Stage
) -> None:
    follow(store)
    async with contextlib.AsyncExitStack() as first, running(store, "two", STRICT) as two:
        # Both may lead; who does is told what it needs by the store.
        one = await first.enter_async_context(running(store, "one", STRICT))
        await two.until(lambda: two.height("h0") == 3 or one.height("h0") == 3)
        leader, other = (one, two) if one.fleet.leadership.leading else (two, one)
        await leader.until(lambda: ("h0", "a1") in store.punishments.all())
        await leader.until(lambda: store.punishments.all()["h0", "a1"].height == 3)
        stage.place()
        leader.service._lead._lock.release()
        stage.place("h1")
        await other.until(lambda: other.promised("h1") and leader.promised("h1"))
        leads = lambda: next(  # noqa: E731  whoever it is
            (one for one in (leader, other) if one.fleet.leadership.leading), None
        )
        await other.until(lambda: (now := leads()) is not None and now.height("h1") >= 3)
        await other.until(lambda: [*store.punishments.all()] == [("h1", "a1")])
        await other.until(lambda: store.homes.all() == {"a1": "h1"})


async def test_a_policer_that_starts_again_finds_what_moved_meanwhile(
    store: Store, stage: Stage
) -> None:
    follow(store, UUID)
    stage.place("h0", uuid=UUID)
    async with running(store, "one", STRICT) as one:
        await one.until(lambda: one.height("h0") == 3)
    told = kinds(store, "moved")
    async with running(store, "two", STRICT) as two:
        await two.until(lambda: two.promised("h0") and two.height("h0") == 3)
    assert kinds(store, "moved") == told
    stage.place("h1", uuid=UUID)
    async with running(store, "three", STRICT) as three:
        await three.until(lambda: three.promised("h1") and three.height("h1") == 3)
        assert three.height("h0") == 0
        await three.until(lambda: store.homes.all() == {UUID: "h1"})


async def test_a_contract_begins_and_ends_while_the_policer_runs(
    store: Store, stage: Stage
) -> None:
    del stage
    hour = timedelta(hours=1)
    today = [NOON]
    dated = Contract(30e3, valid_from=NOON + hour, valid_until=NOON + 2 * hour)
    follow(store, contract=dated)
    async with running(store, wall=lambda: today[0]) as one:
        await one.until(lambda: store.homes.all() == {"a1": "h0"})
        await one.rounds(10)
        assert not one.promised("h0")
        assert one.fleet.homes() == {"a1": "h0"}
        today[0] += hour
        await one.until(lambda: one.promised("h0") and one.held("h0"))
        today[0] += hour
        await one.until(lambda: not one.promised("h0"))
