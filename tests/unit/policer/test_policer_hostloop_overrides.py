"""A host's loop under overrides: suspended it sends nothing; an exempt router is not punished."""

from datetime import UTC, datetime

import pytest
from hostloop_rig import CAPACITY, HostRig
from policer_plant import held_report, report_of

from policer.contracts.contract import Contract
from policer.contracts.ladder import Escalation, Step
from policer.contracts.overrides import Override, standing
from policer.decide.state import Order, Policy
from policer.service import host_loop as hostloop
from xtc.wire import Activate, Kind, Refusal, Report

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GOLD, SILVER = Contract(60e3), Contract(10e3, measures=tuple(Step))
QUICK = Policy(escalation=Escalation(climb_s=2.0))
SUSPENDED = Override("suspension", "suspended", "h0")
EXEMPT = Override("exemption", "exempt", "h0", "silver", datetime(2026, 3, 2, tzinfo=UTC))


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is the rig's: nothing is to be waited for between two rounds."""
    monkeypatch.setattr(hostloop, "SHORTEST_S", 0.0)


def told(rig: HostRig, vr: str, offered: float) -> Report:
    """Return the report of a router that stands as it was ordered to."""
    setpoint = rig.live.orders.get(vr, Order()).setpoint_pps
    if setpoint is None:
        return report_of(vr, throughput_pps=min(offered, CAPACITY / 2), offered_pps=offered)
    throughput = min(offered, setpoint)
    return held_report(vr, setpoint, throughput_pps=throughput, offered_pps=offered)


async def flood(rig: HostRig, rounds: int = 60) -> None:
    """Let silver be sent far more than it was promised."""
    for _ in range(rounds):
        await rig.round(told(rig, "gold", 60e3), told(rig, "silver", 300e3))


def override(rig: HostRig, *overrides: Override) -> None:
    rig.fleet.overrides = standing(overrides, NOW)


def height(rig: HostRig) -> int:
    return rig.live.state.routers["silver"].punishment.height


async def test_a_host_whose_control_is_suspended_is_told_nothing_and_goes_on_being_shown() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER}, QUICK)
    rig.daemon.refuse = lambda one: Refusal("gone", "vr", "not here") if one.vr == "gold" else None
    await flood(rig)
    assert rig.live.refusals
    before, asked = height(rig), len(rig.daemon.asked)
    override(rig, SUSPENDED)
    await flood(rig)
    assert len(rig.daemon.asked) == asked
    assert (rig.live.orders, rig.live.refusals, rig.live.link_problem) == ({}, {}, "")
    assert not rig.live.state.standing.engaged
    assert set(rig.live.telemetry.routers) == {"gold", "silver"}
    assert rig.live.telemetry.heard_at == rig.now
    assert height(rig) == before  # nothing is judged meanwhile


async def test_control_that_is_resumed_goes_on_with_who_is_punished() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER}, QUICK)
    await flood(rig)
    before = height(rig)
    assert before == len(Step)
    override(rig, SUSPENDED)
    await flood(rig, 3)
    override(rig)
    rig.daemon.asked.clear()
    await flood(rig, 5)
    leases = [one for one in rig.daemon.asked if isinstance(one, Activate) and one.vr == "silver"]
    assert leases
    assert {lease.kind for lease in leases} == {Kind.PUNISHMENT}
    assert rig.live.state.standing.engaged


async def test_another_hosts_suspension_changes_nothing() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    override(rig, Override("suspension", "suspended", "h1"))
    await flood(rig)
    assert rig.live.orders


async def test_a_pardon_holds_though_control_is_suspended() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER}, QUICK)
    await flood(rig)
    override(rig, SUSPENDED)
    await flood(rig, 2)
    rig.loop.pardon("silver", "anna")
    await flood(rig, 2)
    assert height(rig) == 0
    assert rig.written() == {"silver": None}


async def test_an_exempt_router_is_let_off_within_a_round_and_stays_so() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER}, QUICK)
    await flood(rig)
    assert height(rig) == len(Step)
    override(rig, EXEMPT)
    rig.daemon.asked.clear()
    await flood(rig, 1)
    assert height(rig) == 0
    assert rig.written() == {"silver": None}
    last = [one for one in rig.daemon.asked if isinstance(one, Activate) and one.vr == "silver"]
    assert [(one.kind, one.ttl_s) for one in last] == [(Kind.PUNISHMENT, 4.0)]
    await flood(rig, 30)
    assert height(rig) == 0
    order = rig.live.orders["silver"]
    assert not order.punishment
    assert (order.setpoint_pps or 0.0) >= SILVER.guarantee_pps
    assert rig.live.contracts["silver"] == SILVER  # as it was entered
    override(rig)
    await flood(rig, 3)
    assert 1 <= height(rig) < len(Step)
