"""The service's brake: it outlives the minute, and the policer that put it on."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from policer_plant import held_report
from store_values import host

from common.clock import FakeClock
from common.units import Seconds
from policer.brake import WINDOW_S
from policer.contract import Contract
from policer.evidence import Evidence
from policer.fleet import Fleet, HostLive, Leadership
from policer.ladder import Punishment, Step
from policer.service import Service, ServiceSettings
from policer.sight import Sight
from policer.state import HostState, RouterState
from policer.store import PunishmentRow, Store, open_store

pytestmark = pytest.mark.anyio

VRS = [f"r{i}" for i in range(4)]
WARNED = RouterState(Evidence(guilty=True), Punishment(1, 0.0, guilty=True, step=Step.WARN))


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


class Desk:
    """A leading service whose looks a test has by hand, over a host that is never there."""

    def __init__(self, store: Store) -> None:
        self.clock, self.fleet = FakeClock(), Fleet()
        self.service = Service(store, self.fleet, ServiceSettings("me"), None, self.clock.now)

    async def look(self) -> None:
        await self.service._look()

    def shows(self, *guilty: str) -> None:
        """Have the host report all routers, some of them guilty."""
        reports = {vr: held_report(vr) for vr in VRS}
        routers = {vr: WARNED if vr in guilty else RouterState() for vr in VRS}
        sight = Sight(self.clock.now(), routers=reports)
        terms = dict.fromkeys(VRS, Contract(1e3))
        live = HostLive(host(), sight=sight, state=HostState(routers=routers), contracts=terms)
        self.fleet.put(live)

    @property
    def may_climb(self) -> bool:
        return self.service._policy("gold").may_climb

    def wait(self, seconds: float) -> None:
        self.clock.sleep(Seconds(seconds))


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    store = open_store(f"sqlite:///{tmp_path}/policer.db")
    store.hosts.add(host(), "ann")
    now = datetime.now(UTC)
    rows = {("gold", vr): PunishmentRow("gold", vr, 1, True, now, "warn") for vr in VRS}
    monkeypatch.setattr(store.punishments, "all", lambda: rows)
    made = Desk(store)
    yield made
    await made.service._end_all()
    store.close()


async def test_it_stays_on_while_they_are_guilty(desk: Desk) -> None:
    desk.fleet.leadership = Leadership(leading=True, epoch=5, holder="me")
    await desk.look()
    desk.service._convicted("gold", len(VRS))
    desk.shows(*VRS)
    await desk.look()
    assert not desk.may_climb
    desk.wait(10 * WINDOW_S)
    assert not desk.may_climb
    assert desk.fleet.braked_hosts == {"gold"}
    desk.shows(*VRS[1:])
    await desk.look()
    assert desk.may_climb
    assert desk.fleet.braked_hosts == frozenset()
    kinds = [event.kind for event in desk.service.writer._events]
    assert kinds == ["brake", "brake_off"]


async def test_a_policer_that_takes_over_puts_it_on_for_those_it_finds_punished(
    desk: Desk,
) -> None:
    assert desk.may_climb
    desk.fleet.leadership = Leadership(leading=True, epoch=5, holder="me")
    await desk.look()
    assert not desk.may_climb
    desk.shows(*VRS)
    await desk.look()
    desk.wait(WINDOW_S)
    assert not desk.may_climb
