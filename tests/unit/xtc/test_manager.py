"""XTC Manager: the life of a router, its leases, a blind meter, limits and the journal."""

from pathlib import Path

import pytest
from simulated_rig import Rig, configured_rig, plan

from common.setpoint import Setpoint, Unit
from common.units import CapFraction
from xtc.actuator.base import CapLimits
from xtc.control.dither import SLOTS
from xtc.control.instance import RELEASE_AFTER
from xtc.errors import Denied, Transient
from xtc.lease import Kind
from xtc.manager.cap import MAX_BACKOFF
from xtc.modes import Finding, Mode
from xtc.wire import Activate, Deactivate, Limit, Pause, Refusal, Resume, Retune, Status


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"a": plan("a"), "b": plan("b")})


# The life of a router


def test_activate_retune_release(rig: Rig) -> None:
    rig.hold("a", 20e3)
    assert rig.holds("a", 20e3)
    rig.ask(Retune("a", 60e3))
    rig.tick(8)
    assert rig.holds("a", 60e3)
    (report,) = rig.ask(Deactivate("a"))
    assert (report.active, report.cap, report.mode) == (False, None, Mode.RELEASED)
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_what_stood_before_is_put_back(rig: Rig) -> None:
    rig.plant.routers["a"].cap = CapFraction(0.7)
    rig.hold("a", 20e3)
    rig.ask(Deactivate("a"))
    assert rig.cap("a") == 0.7


def test_a_configured_setpoint_is_held_from_the_start(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=30e3, b=None)
    rig.tick(8)
    assert rig.holds("a", 30e3)
    assert rig.cap("b") is None


def test_a_pause_keeps_the_cap_and_a_resume_goes_on(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.ask(Pause("a"))
    rig.ask(Retune("a", 60e3))
    before = rig.cap("a")
    rig.tick(40)
    assert rig.cap("a") == before
    assert rig.report("a").mode is Mode.MANUAL
    rig.ask(Resume("a"))
    rig.tick(8)
    assert rig.holds("a", 60e3)


@pytest.mark.parametrize("request_of", [Pause, Resume, lambda vr: Retune(vr, 1e3)])
def test_what_is_not_held_cannot_be_steered(rig: Rig, request_of: type[Pause]) -> None:
    refusal = rig.refused(request_of("a"))
    assert (refusal.code, refusal.field) == ("inactive", "vr")
    assert "xtc activate a" in refusal.fix


def test_an_unknown_name_is_told_the_nearest(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, edge1=None)
    refusal = rig.refused(Status("egde1"))
    assert (refusal.code, refusal.fix) == ("unknown_router", "did you mean edge1?")


def test_a_request_that_cannot_be_read_is_refused_under_its_id(rig: Rig) -> None:
    reply = rig.manager.handle(b'{"version":2,"id":"7"}')
    assert isinstance(reply.result, Refusal)
    assert (reply.id, reply.result.code) == ("7", "version")


def test_status_tells_of_all_or_of_one(rig: Rig) -> None:
    assert [report.vr for report in rig.ask(Status())] == ["a", "b"]
    assert [report.vr for report in rig.ask(Status("b"))] == ["b"]


# Leases


def test_a_lease_ends_to_the_period_in_release(rig: Rig) -> None:
    rig.tick(1)
    rig.ask(Activate("a", 20e3, ttl_s=10.0))
    rig.tick(9)
    assert rig.cap("a") is not None
    rig.tick(1)
    assert rig.cap("a") is None
    assert rig.report("a").finding is Finding.LEASE_ENDED


def test_a_lease_ends_in_the_configured_setpoint(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=50e3)
    rig.ask(Activate("a", 20e3, ttl_s=10.0))
    rig.tick(9)
    assert rig.holds("a", 20e3)
    rig.tick(8)
    assert rig.holds("a", 50e3)


@pytest.mark.parametrize(("ttl", "taken"), [(1.9, False), (2.0, True)])
def test_a_lease_too_short_to_be_seen_is_refused(rig: Rig, ttl: float, taken: bool) -> None:
    if taken:
        rig.ask(Activate("a", 20e3, ttl_s=ttl))
    else:
        assert rig.refused(Activate("a", 20e3, ttl_s=ttl)).field == "ttl_s"


@pytest.mark.parametrize(
    ("setpoint", "burst", "taken"),
    [
        (Setpoint(20e3, burst=1.0), 1.0, True),
        (Setpoint(20e3, burst=1.2e6), 1.2e6, True),
        (Setpoint(20e3, burst=1.3e6), 4e3, False),
        (Setpoint(50e6, Unit.BITS, 12144.0), 12144.0, True),
        (Setpoint(50e6, Unit.BITS, 12143.0), 10e6, False),
    ],
)
def test_a_burst_that_makes_no_sense_is_refused(
    rig: Rig, setpoint: Setpoint, burst: float, taken: bool
) -> None:
    rig.ask(Activate("a", setpoint.pps, setpoint_bps=setpoint.bps))
    order = Retune("a", setpoint.pps, setpoint_bps=setpoint.bps, burst=setpoint.burst)
    if taken:
        rig.ask(order)
    else:
        refusal = rig.refused(order)
        assert (refusal.code, refusal.field) == ("burst", "burst")
        assert "60 s of the setpoint" in refusal.fix
    assert rig.report("a").burst == burst


def test_a_refused_lease_changes_nothing(rig: Rig) -> None:
    rig.ask(Activate("a", 20e3, epoch=5, sequence=1))
    for stale in (
        Activate("a", 9e3, epoch=4, sequence=9),
        Retune("a", 9e3, epoch=5, sequence=1),
        Activate("b", 9e3, epoch=0),
    ):
        rig.refused(stale)
    assert rig.report("a").setpoint_pps == 20e3
    assert not rig.report("b").active


def test_a_lease_that_ended_is_not_taken_again(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=50e3)
    old = Activate("a", 20e3, epoch=5, sequence=3, ttl_s=5.0)
    rig.ask(old)
    rig.tick(6)
    assert rig.refused(old).code == "stale_sequence"


# A blind meter


def test_a_blind_router_is_released_and_held_again_when_it_is_seen(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.blind = True
    rig.tick(RELEASE_AFTER - 1)
    assert rig.cap("a") is not None
    rig.tick(1)
    assert (rig.cap("a"), rig.report("a").mode) == (None, Mode.RELEASED)
    rig.blind = False
    rig.tick(8)
    assert rig.holds("a", 20e3)


def test_a_punished_router_cannot_free_itself_by_blinding_the_meter(rig: Rig) -> None:
    rig.ask(Activate("a", 5e3, ttl_s=100.0, kind=Kind.PUNISHMENT))
    rig.tick(8)
    rig.blind = True
    rig.tick(91)
    assert rig.cap("a") is not None
    rig.tick(1)
    assert rig.cap("a") is None


def test_a_release_that_failed_on_the_ladder_is_tried_until_it_is_done(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    rig.blind = True
    rig.tick(RELEASE_AFTER + 5)
    assert rig.cap("a") is not None
    assert "a" in rig.journal.ledger.entries
    rig.faults.errors.clear()
    rig.tick(MAX_BACKOFF)
    assert rig.cap("a") is None


# Limits


def test_a_limit_is_set_reported_and_lifted(rig: Rig) -> None:
    rig.tick(2)
    (report,) = rig.ask(Limit("a", 30e3))
    assert (report.limit_pps, rig.limiter.limits) == (30e3, {"a.0": 30e3})
    assert rig.journal.ledger.limits == {"a": ("a.0",)}
    rig.ask(Limit("a", None))
    rig.tick(1)
    assert not rig.limiter.limits
    assert not rig.journal.ledger.limits


def test_a_limit_needs_an_interface(rig: Rig) -> None:
    assert rig.refused(Limit("a", 30e3)).code == "no_interface"


def test_limits_of_a_crashed_daemon_are_lifted(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Limit("a", 30e3))
    rig.restart()
    assert not rig.limiter.limits


def test_a_limit_that_cannot_be_lifted_stands_in_nobodys_way(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.hold("b", 20e3)
    rig.ask(Limit("a", 30e3))
    rig.limiter.error = Denied("a.0", "not allowed")
    assert "not allowed" in rig.refused(Deactivate("a")).problem
    assert rig.cap("a") is None
    rig.restart()
    assert rig.troubles == ["a.0: not allowed"]
    assert rig.journal.ledger.limits == {"'": ("a.0",)}
    rig.limiter.error = None
    rig.tick(MAX_BACKOFF)
    assert not rig.limiter.limits
    assert not rig.journal.ledger.limits
    assert rig.holds("b", 20e3)


# Caps in steps


def test_caps_in_whole_percent_alternate_within_a_period(rig: Rig) -> None:
    steps = CapLimits(CapFraction(0.01), CapFraction(1.0), 0.01)
    rig.plant.routers["a"].limits = steps
    rig.hold("a", 6e3)
    ((slot, managed),) = rig.manager.falling_caps()
    assert (managed.plan.name, managed.low_part(), rig.cap("a")) == ("a", (slot, 0.01), 0.02)
    assert 0 < slot < SLOTS
    rig.ask(Deactivate("a"))
    assert rig.manager.falling_caps() == []
