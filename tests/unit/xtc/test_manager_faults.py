"""XTC Manager: actuators that fail, foreign hands, and a full disk."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulated_rig import Rig, flat, plan

from common.units import CapFraction, PacketsPerSecond
from xtc.config.plan import RouterPlan
from xtc.errors import ActuatorError, Admission, Denied, Transient
from xtc.manager.cap import MAX_BACKOFF
from xtc.modes import Finding, Mode
from xtc.spec import ActuatorSpec, SimulatedOriginal, SimulatedSpec
from xtc.state import journal as journal_module
from xtc.wire import Activate, Deactivate, Resume, Retune


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"a": plan("a"), "b": plan("b")})


def reload(rig: Rig, *plans: RouterPlan, share: float = 0.5) -> None:
    rig.manager.reconfigure({plan.name: plan for plan in plans}, max_release_share=share)


# Actuators that fail


def test_one_transient_error_costs_one_period(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "apply"] = Transient("a", "busy")
    rig.ask(Retune("a", 60e3))
    rig.tick(1)
    rig.faults.errors.clear()
    rig.tick(8)
    assert rig.holds("a", 60e3)
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
    assert rig.holds("a", 20e3)


def test_what_could_not_be_set_may_be_set_lower(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "apply"] = Admission("a", "no CPU time left")
    rig.ask(Retune("a", 60e3))
    rig.tick(3)
    assert "no CPU time left" in rig.report("a").problem
    rig.faults.errors.clear()
    rig.ask(Retune("a", 30e3))
    rig.tick(8)
    assert rig.holds("a", 30e3)


def test_a_retry_ends_the_backoff_of_an_actuator(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "apply"] = Denied("a", "not allowed")
    rig.ask(Retune("a", 60e3))
    rig.tick(2)
    rig.faults.errors.clear()
    rig.manager.retry()
    rig.tick(8)
    assert rig.holds("a", 60e3)


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
    lost = rig.plant.routers.pop("a")
    rig.tick(3)
    assert rig.report("a").finding is Finding.GONE
    assert rig.report("a").cap is None
    assert "a" not in rig.journal.ledger.entries
    rig.plant.add("a", lost.plant).cap = CapFraction(0.9)
    rig.tick(MAX_BACKOFF + 8)
    assert rig.holds("a", 20e3)
    assert rig.journal.ledger.entries["a"].original == SimulatedOriginal(0.9)


def test_a_foreign_hand_is_left_alone_after_its_third_change(rig: Rig) -> None:
    rig.hold("a", 20e3)
    for _ in range(3):
        rig.plant.routers["a"].cap = CapFraction(0.9)
        rig.tick(1)
    rig.tick(100)
    assert rig.cap("a") == 0.9
    assert (rig.report("a").finding, rig.report("a").mode) == (Finding.FOREIGN, Mode.MANUAL)
    assert "xtc resume" in rig.report("a").problem
    rig.ask(Resume("a"))
    rig.tick(8)
    assert rig.holds("a", 20e3)


def test_a_router_that_forwards_beside_its_cap_is_released_and_said_so(rig: Rig) -> None:
    flat(rig.plant.routers["a"])
    rig.hold("a", 20e3, periods=12)
    assert rig.cap("a") is None
    assert rig.report("a").finding is Finding.UNRESPONSIVE
    assert "deadline" in rig.report("a").problem


# Caps that came from another host


def look_for_caps(rig: Rig, *marked: str, changed: bool = True) -> list[str]:
    """Let the manager release the routers with an xtc's mark; return which it looked at."""
    looked_at: list[str] = []

    def is_marked(spec: ActuatorSpec) -> bool:
        assert isinstance(spec, SimulatedSpec)
        looked_at.append(spec.plant)
        return spec.plant in marked

    rig.manager.release_marked(is_marked, changed=changed)
    return looked_at


def test_a_marked_router_is_released_before_the_next_period(rig: Rig) -> None:
    look_for_caps(rig, "a")
    assert ("a", "restore") in rig.faults.calls
    assert ("b", "restore") not in rig.faults.calls


def test_a_router_that_is_held_here_keeps_its_mark(rig: Rig) -> None:
    rig.hold("a", 20e3)
    assert look_for_caps(rig, "a", "b") == ["b"]
    assert ("a", "restore") not in rig.faults.calls


def test_what_a_marked_router_had_is_durable_before_it_is_released(rig: Rig) -> None:
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    look_for_caps(rig, "a")
    assert rig.journal.ledger.entries.keys() == {"a"}


def test_without_a_change_only_a_router_that_failed_is_looked_at(rig: Rig) -> None:
    rig.faults.errors["a", "open"] = Transient("a", "busy")
    assert look_for_caps(rig, "a", changed=False) == []
    assert look_for_caps(rig, "a") == ["a", "b"]
    assert look_for_caps(rig, "a", changed=False) == ["a"]
    rig.faults.errors.clear()
    rig.manager.retry()
    assert look_for_caps(rig, "a", changed=False) == ["a"]
    assert look_for_caps(rig, "a", changed=False) == []


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
        assert rig.holds("a", 60e3)
        assert "No space left" in rig.manager.journal_problem
        assert "No space left" in rig.report("b").problem
        assert rig.report("a").problem == ""
        assert rig.refused(Activate("a", 9e3, epoch=1)).code == "journal"
    rig.tick(8)
    assert rig.holds("b", 20e3)
    assert rig.manager.journal_problem == ""
    assert rig.report("b").problem == ""


def test_a_cap_that_could_not_be_put_back_is_said_when_its_router_comes_back(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    reload(rig, plan("b"))
    reload(rig, plan("a"), plan("b"))
    assert rig.cap("a") is not None
    assert "not restored yet" in rig.report("a").problem
    rig.faults.errors.clear()
    rig.tick(1)
    assert (rig.cap("a"), rig.report("a").problem) == (None, "")


def test_on_a_full_disk_a_router_moved_elsewhere_is_not_capped_there(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has an entry of that name with the same original, but of another place."""
    rig.plant.add("elsewhere", rig.plant.routers["a"].plant)
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
