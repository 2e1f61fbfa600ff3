"""The service follows overrides: brake, restart, another leader, ends, epochs, a store away."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from policer_plant import held_report
from store_values import host, promise

from policer.contracts.contract import Contract
from policer.contracts.ladder import Punishment, Step
from policer.contracts.overrides import BrakeMode, Override
from policer.decide.evidence import Evidence
from policer.decide.state import HostState, RouterState
from policer.decide.telemetry import HostTelemetry
from policer.errors import StoreBusy, StoreError
from policer.fleet.live import Fleet, HostLive, Leadership
from policer.service.service import Service, ServiceSettings
from policer.store import OverrideKey, Store

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]
pytestmark = pytest.mark.anyio

VRS = [f"r{i}" for i in range(4)]
WARNED = RouterState(Evidence(guilty=True), Punishment(1, 0.0, guilty=True, step=Step.WARN))
SUSPENDED = Override("suspension", "suspended", "gold")


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


class Policer:
    """A service whose tasks a test runs by hand, by the store's time of day."""

    def __init__(self, backend: "Backend", store: Store, name: str) -> None:
        self.store, self.fleet = store, Fleet()
        self.service = Service(store, self.fleet, ServiceSettings(name), None)
        self.service._overriding._wall = lambda: backend.clock().timestamp()

    async def lead(self) -> None:
        """Take the lead if it is free, or look after it; and over what the store has."""
        await self.service._lead.look()
        await self.service._look()

    async def follow(self) -> None:
        """Follow the overrides once, as the service does several times a second."""
        await self.service._overriding.read()
        await self.service._overriding._act()
        await self.service._look()

    def brake(self, mode: BrakeMode) -> None:
        version = self.store.overrides.brake().version
        self.store.overrides.put(Override("brake", mode), version, "ann")

    def shows_guilty(self) -> None:
        """Have the host report routers that are all guilty."""
        live = HostLive(
            host(),
            telemetry=HostTelemetry(
                self.service._clock(), routers={vr: held_report(vr) for vr in VRS}
            ),
            state=HostState(routers=dict.fromkeys(VRS, WARNED)),
            contracts=dict.fromkeys(VRS, Contract(1e3)),
        )
        self.fleet.put(live)
        self.service._braking.count()
        self.service._convicted("gold", len(VRS))

    @property
    def may_climb(self) -> bool:
        return self.service._policy("gold").may_climb

    def kinds(self) -> list[str]:
        """Return what the service noted by itself, and then what the store has."""
        noted = [event.kind for event in self.service.writer._events]
        return noted + [row.kind for row in self.store.events.since(0, 99)]

    async def end(self) -> None:
        await self.service._end_all()


@pytest.fixture
async def one(backend: "Backend", store: Store) -> AsyncIterator[Policer]:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r0", promise(1e3), None, "ann")
    made = Policer(backend, store, "one")
    yield made
    await made.end()


@pytest.fixture
async def two(backend: "Backend", one: Policer) -> AsyncIterator[Policer]:
    """Another policer on the same database."""
    made = Policer(backend, backend.open(), "two")
    assert made.store is not one.store
    yield made
    await made.end()


async def test_on_stops_all_ladders_and_off_lets_all_be_climbed(one: Policer) -> None:
    await one.lead()
    assert one.may_climb
    one.brake("on")
    await one.follow()
    assert not one.may_climb
    assert one.fleet.braked
    one.brake("automatic")
    await one.follow()
    assert one.may_climb
    assert not one.fleet.braked
    one.shows_guilty()
    assert not one.may_climb
    assert one.fleet.braked_hosts == {"gold"}
    one.brake("off")
    await one.follow()
    assert one.may_climb
    assert one.fleet.braked_hosts == frozenset()
    assert set(one.fleet.counted) == {"gold"}  # what the count says is known all the same
    one.brake("automatic")
    await one.follow()
    assert not one.may_climb
    assert one.kinds() == ["brake"] + ["override_set", "override_cleared"] * 2


async def test_what_the_count_says_under_an_override_is_said_as_such(one: Policer) -> None:
    await one.lead()
    one.brake("off")
    await one.follow()
    one.shows_guilty()
    (event,) = one.service.writer._events
    assert event.words.endswith("an operator's override lets escalation continue")


async def test_exempt_routers_do_not_count_for_the_brake(one: Policer, backend: "Backend") -> None:
    await one.lead()
    until = backend.clock() + timedelta(hours=1)
    one.store.overrides.put(Override("exemption", "exempt", "gold", "r0", until), None, "ann")
    await one.follow()
    one.shows_guilty()
    assert one.service._braking._routers["gold"].all == len(VRS) - 1


async def test_overrides_survive_a_restart_and_a_change_of_the_leader(
    one: Policer, two: Policer, backend: "Backend"
) -> None:
    await one.lead()
    await two.lead()
    one.brake("on")
    two.store.overrides.put(SUSPENDED, None, "ann")  # asked of the one that follows
    for policer in (one, two):
        await policer.follow()
        assert (policer.fleet.leadership.leading, policer.may_climb) == (policer is one, False)
        assert policer.fleet.braked
        assert set(policer.fleet.overrides.suspended) == {"gold"}
    one.service._lead._lock.release()
    await two.lead()
    assert two.fleet.leadership.leading
    assert not two.may_climb
    fresh = Policer(backend, backend.open(), "three")
    await fresh.lead()
    assert set(fresh.fleet.overrides.suspended) == {"gold"}
    await fresh.end()


async def test_no_host_is_told_anything_before_overrides_are_known(
    one: Policer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> list[Override]:
        raise StoreBusy("locked")

    monkeypatch.setattr(one.store.overrides, "all", away)
    await one.lead()
    assert one.fleet.hosts == {}
    assert "locked" in one.service.store_problem
    monkeypatch.undo()
    await one.lead()
    assert set(one.fleet.hosts) == {"gold"}


async def test_an_override_ends_by_the_clock_though_the_store_is_away(
    one: Policer, backend: "Backend", monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.lead()
    until = backend.clock() + timedelta(minutes=5)
    one.store.overrides.put(Override("brake", "on", until=until), 1, "ann")
    await one.follow()

    def away() -> int:
        raise StoreBusy("locked")

    monkeypatch.setattr(one.store, "generation", away)
    backend.clock.forward(minutes=4, seconds=59)
    one.service._overriding.show()
    assert not one.may_climb
    backend.clock.forward(seconds=1)
    one.service._overriding.show()
    assert one.may_climb
    with pytest.raises(StoreError):
        await one.follow()
    monkeypatch.undo()
    await one.follow()
    assert one.kinds() == ["override_set", "override_expired"]
    await one.follow()
    assert one.kinds() == ["override_set", "override_expired"]


async def test_only_the_leader_ends_what_is_over(
    one: Policer, two: Policer, backend: "Backend"
) -> None:
    await one.lead()
    await two.lead()
    until = backend.clock() + timedelta(minutes=5)
    one.store.overrides.put(Override("brake", "on", until=until), 1, "ann")
    backend.clock.forward(minutes=6)
    await two.follow()
    assert (two.may_climb, two.kinds()) == (True, ["override_set"])
    await one.follow()
    assert one.kinds() == ["override_set", "override_expired"]


async def test_the_leader_takes_the_epoch_that_is_asked_for_of_any_policer(
    one: Policer, two: Policer
) -> None:
    await one.lead()
    await two.lead()
    above = one.fleet.leadership.epoch + 1000
    two.store.overrides.ask_epoch(Override("epoch", "above", above=above), "ann")
    await two.follow()
    await one.follow()
    await one.lead()
    assert one.fleet.leadership == Leadership(
        leading=True, epoch=above + 1, holder="one", since=one.fleet.leadership.since
    )
    assert one.fleet.leadership.since <= above  # nobody led between
    await one.follow()
    await one.follow()
    assert one.fleet.overrides.epoch is None
    assert one.kinds() == ["override_set", "epoch_raised"]
    assert one.service._ruled == above + 1


async def test_a_leader_that_comes_later_takes_the_epoch_that_was_asked_for(one: Policer) -> None:
    above = 1_900_000_000
    one.store.overrides.ask_epoch(Override("epoch", "above", above=above), "ann")
    await one.lead()
    await one.follow()
    await one.lead()
    assert one.fleet.leadership.epoch == above + 1


async def test_a_host_that_is_removed_is_suspended_no_longer(one: Policer) -> None:
    await one.lead()
    one.store.overrides.put(SUSPENDED, None, "ann")
    one.store.contracts.remove("gold", "r0", 1, "ann")
    one.store.hosts.remove("gold", 1, "ann")
    one.store.hosts.add(host(), "ann")
    await one.follow()
    assert one.fleet.overrides.suspended == {}
    assert one.store.overrides.all() == []
    key = OverrideKey("suspension", "gold")
    assert str(key.target) == "suspension gold"
