"""XTC Manager: leases, errors, foreign hands, restarts and reloads on a simulated host."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulated_rig import Rig, flat, plan

from xtc import journal as journal_module
from xtc.actuator.base import CapLimits
from xtc.actuator.spec import SimulatedOriginal, SimulatedSpec
from xtc.errors import ActuatorError, Admission, Denied, Refused, Transient
from xtc.instance import RELEASE_AFTER, Finding, Mode
from xtc.keeper import MAX_BACKOFF
from xtc.lease import Kind
from xtc.routers import RouterPlan
from xtc.units import CapFraction, PacketsPerSecond, Seconds
from xtc.wire import Activate, Deactivate, Limit, Pause, Resume, Retune, Status


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"a": plan("a"), "b": plan("b")})


def configured(directory: Path, **setpoints: float | None) -> Rig:
    return Rig(directory, {name: plan(name, setpoint) for name, setpoint in setpoints.items()})


def held(rig: Rig, name: str, setpoint: float) -> bool:
    return abs(rig.throughput(name) - setpoint) <= 0.02 * setpoint


# The life of a router


def test_activate_retune_release(rig: Rig) -> None:
    rig.hold("a", 20e3)
    assert held(rig, "a", 20e3)
    rig.ask(Retune("a", 60e3))
    rig.tick(8)
    assert held(rig, "a", 60e3)
    (report,) = rig.ask(Deactivate("a"))
    assert (report.active, report.cap, report.mode) == (False, None, Mode.RELEASED)
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_what_stood_before_is_put_back(rig: Rig) -> None:
    rig.host.routers["a"].cap = CapFraction(0.7)
    rig.hold("a", 20e3)
    rig.ask(Deactivate("a"))
    assert rig.cap("a") == 0.7


def test_a_configured_setpoint_is_held_from_the_start(tmp_path: Path) -> None:
    rig = configured(tmp_path, a=30e3, b=None)
    rig.tick(8)
    assert held(rig, "a", 30e3)
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
    assert held(rig, "a", 60e3)


@pytest.mark.parametrize("request_of", [Pause, Resume, lambda vr: Retune(vr, 1e3)])
def test_what_is_not_held_cannot_be_steered(rig: Rig, request_of: type[Pause]) -> None:
    refusal = rig.refused(request_of("a"))
    assert (refusal.code, refusal.field) == ("inactive", "vr")
    assert "xtc activate a" in refusal.fix


def test_an_unknown_name_is_told_the_nearest(tmp_path: Path) -> None:
    rig = configured(tmp_path, edge1=None)
    refusal = rig.refused(Status("egde1"))
    assert (refusal.code, refusal.fix) == ("unknown_router", "did you mean edge1?")


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
    rig = configured(tmp_path, a=50e3)
    rig.ask(Activate("a", 20e3, ttl_s=10.0))
    rig.tick(9)
    assert held(rig, "a", 20e3)
    rig.tick(8)
    assert held(rig, "a", 50e3)


@pytest.mark.parametrize(("ttl", "taken"), [(1.9, False), (2.0, True)])
def test_a_lease_too_short_to_be_seen_is_refused(rig: Rig, ttl: float, taken: bool) -> None:
    if taken:
        rig.ask(Activate("a", 20e3, ttl_s=ttl))
    else:
        assert rig.refused(Activate("a", 20e3, ttl_s=ttl)).field == "ttl_s"


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
    rig = configured(tmp_path, a=50e3)
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
    assert held(rig, "a", 20e3)


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


# Actuators that fail


def test_one_transient_error_costs_one_period(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "apply"] = Transient("a", "busy")
    rig.ask(Retune("a", 60e3))
    rig.tick(1)
    rig.faults.errors.clear()
    rig.tick(8)
    assert held(rig, "a", 60e3)
    assert rig.report("a").problem == ""


@pytest.mark.parametrize("kind", [Denied, Admission])
def test_what_the_host_cannot_do_is_not_promised(rig: Rig, kind: type[ActuatorError]) -> None:
    rig.faults.errors["a", "open"] = kind("a", "cannot be opened", "mend it")
    refusal = rig.refused(Activate("a", 20e3))
    assert (refusal.code, refusal.problem, refusal.fix) == (
        kind.kind,
        "a: cannot be opened",
        "mend it",
    )
    assert not rig.report("a").active


def test_what_was_mended_is_promised_at_once(rig: Rig) -> None:
    rig.faults.errors["a", "open"] = Denied("a", "cannot be opened")
    rig.refused(Activate("a", 20e3))
    rig.faults.errors.clear()
    rig.hold("a", 20e3)
    assert held(rig, "a", 20e3)


def test_what_could_not_be_set_may_be_set_lower(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "apply"] = Admission("a", "no CPU time left")
    rig.ask(Retune("a", 60e3))
    rig.tick(3)
    assert "no CPU time left" in rig.report("a").problem
    rig.faults.errors.clear()
    rig.ask(Retune("a", 30e3))
    rig.tick(8)
    assert held(rig, "a", 30e3)


def test_a_release_that_fails_is_told_and_tried_again(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    refusal = rig.refused(Deactivate("a"))
    assert (refusal.code, "busy" in refusal.problem) == ("not_released", True)
    assert "busy" in rig.report("a").problem
    assert "a" in rig.journal.ledger.entries
    rig.faults.errors.clear()
    rig.tick(2)
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_gone_and_back_is_another_router(rig: Rig) -> None:
    rig.hold("a", 20e3)
    lost = rig.host.routers.pop("a")
    rig.tick(3)
    assert rig.report("a").finding is Finding.GONE
    assert rig.report("a").cap is None
    assert "a" not in rig.journal.ledger.entries
    rig.host.add("a", lost.plant).cap = CapFraction(0.9)
    rig.tick(MAX_BACKOFF + 8)
    assert held(rig, "a", 20e3)
    assert rig.journal.ledger.entries["a"].original == SimulatedOriginal(0.9)


def test_a_foreign_hand_is_left_alone_after_its_third_change(rig: Rig) -> None:
    rig.hold("a", 20e3)
    for _ in range(3):
        rig.host.routers["a"].cap = CapFraction(0.9)
        rig.tick(1)
    rig.tick(100)
    assert rig.cap("a") == 0.9
    assert (rig.report("a").finding, rig.report("a").mode) == (Finding.FOREIGN, Mode.MANUAL)
    assert "xtc resume" in rig.report("a").problem
    rig.ask(Resume("a"))
    rig.tick(8)
    assert held(rig, "a", 20e3)


def test_a_router_that_forwards_beside_its_cap_is_released_and_said_so(rig: Rig) -> None:
    flat(rig.host.routers["a"])
    rig.hold("a", 20e3, periods=12)
    assert rig.cap("a") is None
    assert rig.report("a").finding is Finding.UNRESPONSIVE
    assert "deadline" in rig.report("a").problem


# Restarts


def test_a_lease_is_held_on_with_after_a_crash(rig: Rig) -> None:
    rig.host.routers["a"].cap = CapFraction(0.9)
    rig.tick(1)
    rig.ask(Activate("a", 20e3, epoch=3, sequence=7, ttl_s=60.0))
    rig.tick(10)
    rig.restart()
    rig.tick(8)
    assert held(rig, "a", 20e3)
    assert rig.report("a").lease_remaining_s == pytest.approx(42)
    assert rig.refused(Activate("a", 9e3, epoch=3, sequence=7)).code == "stale_sequence"
    rig.ask(Deactivate("a"))
    assert rig.cap("a") == 0.9


def test_a_cap_adopted_by_a_blind_daemon_is_released_on_the_ladder(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.blind = True
    rig.restart()
    rig.tick(RELEASE_AFTER + 1)
    assert rig.cap("a") is None


def test_a_cap_adopted_is_released_with_its_lease(rig: Rig) -> None:
    rig.tick(1)
    rig.ask(Activate("a", 20e3, ttl_s=10.0))
    rig.tick(5)
    rig.blind = True
    rig.restart()
    rig.tick(6)
    assert rig.cap("a") is None


def test_a_lease_that_ended_meanwhile_is_released_at_the_start(rig: Rig) -> None:
    rig.tick(1)
    rig.ask(Activate("a", 20e3, ttl_s=10.0))
    rig.tick(5)
    rig.crash()
    rig.clock.sleep(Seconds(60.0))
    rig.start()
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_a_lease_survives_a_restart_even_while_its_router_is_gone(rig: Rig) -> None:
    rig.ask(Activate("a", 5e3, kind=Kind.PUNISHMENT, ttl_s=1000.0))
    lost = rig.host.routers.pop("a")
    rig.tick(2)
    rig.restart()
    rig.host.add("a", lost.plant)
    rig.tick(MAX_BACKOFF + 8)
    assert held(rig, "a", 5e3)


def test_a_setpoint_edited_while_the_daemon_was_down_is_obeyed(tmp_path: Path) -> None:
    rig = configured(tmp_path, a=20e3)
    rig.tick(8)
    rig.plans = {"a": plan("a", 60e3)}
    rig.restart()
    rig.tick(8)
    assert held(rig, "a", 60e3)


def test_a_router_no_longer_configured_is_released_at_the_start(rig: Rig) -> None:
    rig.hold("a", 20e3)
    del rig.plans["a"]
    rig.restart()
    assert rig.troubles == []
    assert rig.cap("a") is None


def test_what_cannot_be_released_at_the_start_stays_in_the_journal(rig: Rig) -> None:
    rig.hold("a", 20e3)
    del rig.plans["a"]
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    for _ in range(2):
        rig.restart()
        assert rig.troubles == ["a: a: busy"] or rig.troubles == ["a': a: busy"]
    rig.tick(1)
    assert [entry.spec for entry in rig.journal.ledger.entries.values()] == [SimulatedSpec("a")]
    rig.faults.errors.clear()
    rig.tick(MAX_BACKOFF)
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_a_router_renamed_while_the_daemon_was_down_keeps_its_original(tmp_path: Path) -> None:
    rig = configured(tmp_path, a=20e3)
    rig.tick(8)
    rig.plans = {"new": replace(plan("a", 20e3), name="new")}
    rig.restart()
    rig.tick(3)
    assert rig.journal.ledger.entries["new"].original == SimulatedOriginal(None)
    rig.ask(Deactivate(None))
    assert rig.cap("a") is None


def test_stopping_releases_or_keeps(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.manager.stop(release=False)
    assert rig.cap("a") is not None
    rig.restart()
    assert rig.manager.stop(release=True) == []
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_stopping_tells_what_could_not_be_released(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.hold("b", 20e3)
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    assert rig.manager.stop(release=True) == ["a: a: busy"]
    assert rig.cap("b") is None
    assert rig.journal.ledger.entries.keys() == {"a"}


# Reloads


def reload(rig: Rig, *plans: RouterPlan, share: float = 0.5) -> None:
    rig.manager.reconfigure({plan.name: plan for plan in plans}, max_release_share=share)


def test_a_reload_releases_what_is_no_longer_configured(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.hold("b", 20e3)
    reload(rig, plan("b"))
    assert rig.cap("a") is None
    rig.tick(3)
    assert held(rig, "b", 20e3)
    assert rig.manager.routers.keys() == {"b"}


def test_a_reload_that_would_release_too_many_changes_nothing(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.hold("b", 20e3)
    with pytest.raises(Refused) as caught:
        reload(rig, plan("c"))
    assert caught.value.code == "mass_release"
    assert rig.manager.routers.keys() == {"a", "b"}
    assert rig.cap("a") is not None
    reload(rig, plan("c"), share=1.0)
    assert rig.cap("a") is rig.cap("b") is None


def test_a_reload_moves_the_configured_setpoint_alone(tmp_path: Path) -> None:
    rig = configured(tmp_path, a=20e3, b=20e3)
    rig.ask(Activate("b", 20e3, ttl_s=900.0, kind=Kind.PUNISHMENT))
    reload(rig, plan("a", 60e3), plan("b", 60e3))
    rig.tick(8)
    assert held(rig, "a", 60e3)
    assert held(rig, "b", 20e3)


def test_a_setpoint_taken_from_the_configuration_is_held_no_more(tmp_path: Path) -> None:
    rig = configured(tmp_path, a=20e3)
    rig.tick(8)
    reload(rig, plan("a"))
    rig.tick(1)
    assert rig.cap("a") is None


def test_what_a_reload_could_not_release_is_released_later(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    reload(rig, plan("b"))
    rig.tick(3)
    assert len(rig.journal.ledger.entries) == 1
    rig.faults.errors.clear()
    rig.tick(MAX_BACKOFF)
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_a_router_back_before_it_was_released_keeps_its_true_original(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    reload(rig, plan("b"))
    reload(rig, plan("a"), plan("b"))
    rig.faults.errors.clear()
    rig.hold("a", 30e3)
    assert rig.journal.ledger.entries["a"].original == SimulatedOriginal(None)
    rig.ask(Deactivate("a"))
    assert rig.cap("a") is None


def test_a_router_moved_to_another_place_leaves_the_old_one(rig: Rig) -> None:
    rig.host.add("elsewhere", rig.host.routers["a"].plant)
    rig.hold("a", 20e3)
    reload(rig, replace(plan("a", 20e3), spec=SimulatedSpec("elsewhere")), plan("b"))
    assert rig.cap("a") is None
    rig.tick(2)
    assert rig.cap("elsewhere") is not None
    assert rig.journal.ledger.entries["a"].spec == SimulatedSpec("elsewhere")


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
    assert held(rig, "b", 20e3)


# Caps in steps


def test_caps_in_whole_percent_alternate_within_a_period(rig: Rig) -> None:
    steps = CapLimits(CapFraction(0.01), CapFraction(1.0), 0.01)
    rig.host.routers["a"].limits = steps
    rig.hold("a", 8e3)
    for slot, managed, cap in rig.manager.falling_caps():
        assert managed.plan.name == "a"
        assert 0 < slot < 10
        assert cap < (rig.cap("a") or 0)
    rig.ask(Deactivate("a"))
    assert rig.manager.falling_caps() == []


# The journal


def test_an_idle_manager_writes_no_journal(rig: Rig) -> None:
    rig.hold("a", 20e3)
    before = (rig.directory / "journal").stat().st_mtime_ns
    rig.tick(50)
    assert (rig.directory / "journal").stat().st_mtime_ns == before


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_on_a_full_disk_nothing_new_is_capped_and_the_rest_goes_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.hold("a", 20e3)
    with monkeypatch.context() as disk:
        disk.setattr(journal_module, "_write_durably", full)
        rig.ask(Activate("b", 20e3))
        rig.ask(Retune("a", 60e3))
        rig.tick(8)
        assert rig.cap("b") is None
        assert held(rig, "a", 60e3)
        assert "No space left" in rig.manager.journal_problem
        assert rig.refused(Activate("a", 9e3, epoch=1)).code == "journal"
    rig.tick(8)
    assert held(rig, "b", 20e3)
    assert rig.manager.journal_problem == ""


def test_on_a_full_disk_a_router_moved_elsewhere_is_not_capped_there(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has an entry of that name with the same original, but of another place."""
    rig.host.add("elsewhere", rig.host.routers["a"].plant)
    rig.hold("a", 20e3)
    monkeypatch.setattr(journal_module, "_write_durably", full)
    reload(rig, replace(plan("a", 20e3), spec=SimulatedSpec("elsewhere")), plan("b"))
    rig.tick(5)
    assert rig.cap("elsewhere") is None


def test_a_report_says_what_the_plant_does(rig: Rig) -> None:
    rig.tick(3)
    report = rig.report("a")
    assert report.throughput_pps == pytest.approx(rig.throughput("a"), rel=1e-3)
    assert report.offered_pps == pytest.approx(PacketsPerSecond(100e3))
    assert report.problem == ""
