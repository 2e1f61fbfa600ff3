"""The service's brake: it outlives the minute, and the policer that put it on."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from policer_plant import held_report
from store_values import host
from support.stores import with_tables

from common.clock import FakeClock
from common.units import Seconds
from policer.contracts.contract import Contract
from policer.contracts.ladder import Punishment, Step
from policer.decide.brake import WINDOW_S
from policer.decide.evidence import Evidence
from policer.decide.state import HostState, RouterState
from policer.decide.telemetry import HostTelemetry
from policer.fleet.live import Fleet, HostLive, Leadership
from policer.service.service import Service, ServiceSettings
from policer.store import PunishmentRow, Store, open_store

pytestmark = pytest.mark.anyio

VRS = [f"r{i}" for i in range(4)]
WARNED = RouterState(Evidence(guilty=True), Punishment(1, 0.0, guilty=True, step=Step.WARN))


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


class Context:
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
        telemetry = HostTelemetry(self.clock.now(), routers=reports)
        terms = dict.fromkeys(VRS, Contract(1e3))
        live = HostLive(
            host(), telemetry=telemetry, state=HostState(routers=routers), contracts=terms
        )
        self.fleet.put(live)

    @property
    def may_climb(self) -> bool:
        return self.service._policy("gold").may_climb

    def wait(self, seconds: float) -> None:
        self.clock.sleep(Seconds(seconds))


@pytest.fixture
async def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Context]:
    store = open_store(with_tables(tmp_path / "policer.db"))
    store.hosts.add(host(), "ann")
    now = datetime.now(UTC)
    rows = {("gold", vr): PunishmentRow("gold", vr, 1, True, now, "warn") for vr in VRS}
    monkeypatch.setattr(store.punishments, "all", lambda: rows)
    made = Context(store)
    yield made
    await made.service._end_all()
    store.close()


async def test_it_stays_on_while_they_are_guilty(context: Context) -> None:
    context.fleet.leadership = Leadership(leading=True, epoch=5, holder="me")
    await context.look()
    context.service._convicted("gold", len(VRS))
    context.shows(*VRS)
    await context.look()
    assert not context.may_climb
    context.wait(10 * WINDOW_S)
    assert not context.may_climb
    assert context.fleet.braked_hosts == {"gold"}
    context.shows(*VRS[1:])
    await context.look()
    assert context.may_climb
    assert context.fleet.braked_hosts == frozenset()
    kinds = [event.kind for event in context.service.writer._events]
    assert kinds == ["brake", "brake_off"]


async def test_a_policer_that_takes_over_puts_it_on_for_those_it_finds_punished(
    context: Context,
) -> None:
    assert context.may_climb
    context.fleet.leadership = Leadership(leading=True, epoch=5, holder="me")
    await context.look()
    assert not context.may_climb
    context.shows(*VRS)
    await context.look()
    context.wait(WINDOW_S)
    assert not context.may_climb
