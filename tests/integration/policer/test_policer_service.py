"""The service over simulated hosts with real managers, real sockets and a real store."""

import asyncio
import contextlib
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from fleet_rig import FleetRig, lying
from sqlalchemy import Connection
from support.stalls import Stalls
from support.stores import with_tables
from support.waiting import eventually

from policer.contracts.contract import Contract
from policer.contracts.ladder import Escalation
from policer.contracts.overrides import Override
from policer.decide.evidence import Rules
from policer.decide.state import Policy
from policer.errors import StoreBusy
from policer.fleet.inbox import Pardon
from policer.fleet.live import Fleet, HostLive
from policer.service import store_call as asking
from policer.service.service import Service, ServiceSettings
from policer.store import OverrideKey, Store, open_store
from xtc.wire import Activate, Mode, Report

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

PERIOD_S = 0.25
"""Real seconds of a tick, which is a second of the host's clock."""
SOON_S = 60.0
BEAT_S = 2.0
"""A loop whose last heartbeat is older hangs."""
CONTRACTS = {"a0": Contract(guarantee_pps=60e3), "a1": Contract(guarantee_pps=30e3)}


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="xtc-") as name:
        yield Path(name)


@pytest.fixture
def hosts(folder: Path) -> Iterator[FleetRig]:
    with FleetRig(folder, hosts=2, routers=2, period_s=PERIOD_S) as rig:
        yield rig


@pytest.fixture
def store(folder: Path, hosts: FleetRig) -> Iterator[Store]:
    made = open_store(with_tables(folder / "policer.db"))
    for name in ("h0", "h1"):
        made.hosts.add(hosts[name].entry(), "test")
        for vr, contract in CONTRACTS.items():
            made.contracts.put(name, vr, contract, None, "test")
    yield made
    made.close()


class Running:
    """A service at work."""

    def __init__(self, service: Service, fleet: Fleet) -> None:
        self.service, self.fleet = service, fleet

    def live(self, host: str) -> HostLive:
        return self.fleet.hosts[host]

    def setpoint(self, vr: str, host: str = "h0") -> float | None:
        """Return what a router is held at, as its daemon reports it."""
        report = self.live(host).telemetry.routers.get(vr)
        return report.setpoint_pps if report is not None and report.active else None

    def held(self, host: str = "h0") -> bool:
        """Whether both routers of a host are held, at no less than their guarantees."""
        found = {vr: self.setpoint(vr, host) or 0.0 for vr in CONTRACTS}
        return all(found[vr] >= CONTRACTS[vr].guarantee_pps for vr in CONTRACTS)

    async def until(self, holds: Callable[[], object], seconds: float = SOON_S) -> None:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110  what is waited for rings no bell
                await asyncio.sleep(0.05)


@asynccontextmanager
async def running(
    store: Store, name: str = "one", policy: Policy | None = None
) -> AsyncIterator[Running]:
    fleet = Fleet()
    service = Service(store, fleet, ServiceSettings(name, policy or Policy()), None)
    task = asyncio.create_task(service.run())
    here = Running(service, fleet)
    try:
        await here.until(lambda: len(fleet.hosts) == 2)
        yield here
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _caps(report: Report) -> bool:
    return report.mode is not Mode.RELEASED or report.cap is not None


def kinds(store: Store, **query: str) -> list[str]:
    return [row.kind for row in store.events.page(None, 100, **query)]


async def test_contended_hosts_are_held_at_their_contracts_and_let_go_with_the_policer(
    store: Store, hosts: FleetRig
) -> None:
    async with running(store) as one:
        await one.until(lambda: one.held("h0") and one.held("h1"))
        total = sum(one.setpoint(vr) or 0.0 for vr in CONTRACTS)
        assert total <= one.live("h0").host.capacity_pps
        await one.until(lambda: "engaged" in kinds(store, host="h0"))
    daemon = hosts["h0"].rig

    def capped() -> bool:
        return any(map(_caps, daemon.manager.reports(daemon.clock.now())))

    await asyncio.to_thread(eventually, lambda: not hosts.do(capped))


async def test_a_contract_that_changes_is_followed(store: Store) -> None:
    async with running(store) as one:
        await one.until(one.held)
        version = store.contracts.get("h0", "a1").version.number
        lower = Contract(guarantee_pps=10e3, ceiling_pps=20e3)
        store.contracts.put("h0", "a1", lower, version, "test")
        await one.until(lambda: one.setpoint("a1") == pytest.approx(20e3, rel=0.05))
        await one.until(lambda: (one.setpoint("a0") or 0.0) > 90e3)


async def test_a_second_policer_takes_over_when_the_first_is_gone(store: Store) -> None:
    async with running(store, "one") as one:
        await one.until(one.held)
        epoch = one.fleet.leadership.epoch
        async with running(store, "two") as two:
            await two.until(lambda: two.fleet.leadership.holder == "one")
            assert not two.fleet.leadership.leading
            await two.until(two.held)  # it sees what the first one holds

            def taken_over() -> bool:
                if one.fleet.leadership.leading:  # it may have led again before the other looked
                    with contextlib.suppress(StoreBusy):
                        one.service._lead._lock.release()
                return two.fleet.leadership.leading

            await two.until(taken_over)
            assert two.fleet.leadership.epoch > epoch
            await one.until(lambda: not one.fleet.leadership.leading)
            await two.until(two.held)


async def test_a_store_that_is_away_stops_no_round(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise StoreBusy("locked by another program")

    async with running(store) as one:
        await one.until(one.held)
        monkeypatch.setattr(store.changes, "since", busy)
        monkeypatch.setattr(store.events, "add", busy)
        await one.until(lambda: one.service.store_problem)
        played: list[float] = []
        one.service.rounds.append(played.append)
        await one.until(lambda: len(played) > 30)  # longer than a lease
        assert one.held()
        monkeypatch.undo()
        await one.until(lambda: not one.service.store_problem)


async def test_a_store_that_hangs_is_the_stores_problem_and_not_the_loops(
    store: Store, monkeypatch: pytest.MonkeyPatch, stalls: Stalls
) -> None:
    monkeypatch.setattr(asking, "SILENT_S", 0.5)
    answer = threading.Event()
    begun = store._database._begun

    def hung(*, writes: bool) -> AbstractContextManager[Connection]:
        answer.wait(3 * SOON_S)
        return begun(writes=writes)

    async with running(store) as one:
        await one.until(one.held)
        monkeypatch.setattr(store._database, "_begun", hung)
        try:
            await one.until(lambda: "has not answered" in one.service.store_problem)
            beats: list[tuple[float, float]] = []

            def beat(_: object) -> None:
                now = time.monotonic()
                beats.append((now - one.service.heartbeat_age(), now))

            one.service.rounds.append(beat)
            await one.until(lambda: len(beats) > 30)  # longer than a lease
            stalls.check_within(*max(beats, key=lambda beat: beat[1] - beat[0]), BEAT_S)
            assert one.held()
        finally:
            answer.set()
        await one.until(lambda: not one.service.store_problem)


async def test_a_round_that_fails_is_counted_and_the_other_hosts_go_on(store: Store) -> None:
    async with running(store) as one:
        await one.until(one.held)
        loop, _ = one.service._loops["h0"]
        terms = one.live("h0").contracts
        loop.enter(loop.host, {**terms, "a0": Contract(cast("float", "no number"))})
        await one.until(lambda: one.live("h0").rounds_failed >= 3)
        assert one.held("h1")
        assert one.live("h1").rounds_failed == 0
        loop.enter(loop.host, terms)
        played: list[float] = []
        one.service.rounds.append(played.append)
        failed = one.live("h0").rounds_failed
        await one.until(lambda: len(played) > 10)
        await one.until(one.held)
        assert one.live("h0").rounds_failed <= failed + 1


async def test_a_host_that_lies_is_distrusted_and_nobody_is_punished(
    store: Store, hosts: FleetRig
) -> None:
    async with running(store) as one:
        await one.until(one.held)

        def lie() -> None:
            hosts["h0"].alter = lying(throughput_pps=9e8)

        hosts.do(lie)
        await one.until(lambda: one.live("h0").telemetry.distrust)
        await one.until(lambda: "distrusted" in kinds(store, host="h0"))
        assert one.held("h1")
        assert store.punishments.all() == {}


async def test_a_killed_daemon_is_shown_as_gone_and_comes_back_in_step(
    store: Store, hosts: FleetRig
) -> None:
    async with running(store) as one:
        await one.until(one.held)
        hosts.do(hosts["h0"].kill)
        await one.until(lambda: "gone" in kinds(store, host="h0"))
        assert one.held("h1")
        hosts.do(hosts["h0"].revive)
        await one.until(lambda: "back" in kinds(store, host="h0"))
        await one.until(one.held)


async def test_a_flood_is_punished_written_down_inherited_and_pardoned(store: Store) -> None:
    """Half of what is offered to a1 is above twice its setpoint, by rules stricter than usual."""
    strict = Policy(rules=Rules(excess=1.2, acceptable=1.1), escalation=Escalation(climb_s=2.0))
    async with running(store, "one", strict) as one:
        await one.until(lambda: ("h0", "a1") in store.punishments.all())
        await one.until(lambda: store.punishments.all()["h0", "a1"].step == "limit")
    async with running(store, "two", strict) as two:
        await two.until(lambda: "a1" in two.live("h0").state.routers)
        assert two.live("h0").state.routers["a1"].punishment.height == 3
        two.service.inbox.put(Pardon("h0", "a1", "operator"))
        await two.until(lambda: "pardoned" in kinds(store, vr="a1"))


async def test_a_host_whose_control_is_suspended_goes_by_its_own_configuration(
    store: Store, hosts: FleetRig
) -> None:
    daemon = hosts["h0"].rig

    def uncapped() -> bool:
        return not any(map(_caps, daemon.manager.reports(daemon.clock.now())))

    async with running(store) as one:
        await one.until(one.held)
        store.overrides.put(Override("suspension", "suspended", "h0"), None, "test")
        await one.until(lambda: hosts.do(uncapped))
        told, seen = hosts["h0"].messages, one.live("h0").telemetry.tick
        await one.until(lambda: one.live("h0").telemetry.tick > seen + 20)  # longer than a lease
        assert hosts["h0"].messages == told
        assert one.held("h1")
        store.overrides.clear(OverrideKey("suspension", "h0"), 1, "test")
        await one.until(one.held)
    assert {"override_set", "override_cleared"} <= set(kinds(store, host="h0"))


async def test_an_exempt_router_is_let_off_and_not_punished_again(store: Store) -> None:
    strict = Policy(rules=Rules(excess=1.2, acceptable=1.1), escalation=Escalation(climb_s=2.0))
    until = datetime.now(UTC) + timedelta(days=1)
    async with running(store, "one", strict) as one:
        await one.until(lambda: ("h0", "a1") in store.punishments.all())
        store.overrides.put(Override("exemption", "exempt", "h0", "a1", until), None, "test")
        await one.until(lambda: ("h0", "a1") not in store.punishments.all())
        seen = one.live("h0").telemetry.tick
        await one.until(lambda: one.live("h0").telemetry.tick > seen + 20)
        assert one.live("h0").state.routers["a1"].punishment.height == 0
        await one.until(lambda: (one.setpoint("a1") or 0.0) >= CONTRACTS["a1"].guarantee_pps)


async def test_an_operator_raises_the_epoch_above_one_that_the_leader_does_not_go_above_by_itself(
    store: Store, hosts: FleetRig
) -> None:
    """The daemon's lease runs on as that of another policer, and its telemetry has no epoch."""
    async with running(store) as one:
        await one.until(one.held)
        higher = one.fleet.leadership.epoch + 1000
        lease = Activate("a0", 1e3, higher, 1, 3600.0)
        hosts.do(lambda: hosts["h0"].rig.ask(lease))
        await one.until(lambda: "overtaken" in kinds(store, host="h0"))
        await one.until(lambda: one.live("h0").refusals)
        (event,) = store.events.page(None, 9, host="h0", kind="overtaken")
        assert "`policer epoch raise --above`" in event.words
        assert all(f"lower than {higher}" in words for words in one.live("h0").refusals.values())
        store.overrides.ask_epoch(Override("epoch", "above", above=higher), "test")
        await one.until(lambda: one.fleet.leadership.epoch == higher + 1)
        await one.until(lambda: one.held() and not one.live("h0").refusals)
        await one.until(lambda: "epoch_raised" in kinds(store))
