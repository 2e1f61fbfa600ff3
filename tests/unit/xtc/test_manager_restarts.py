"""XTC Manager: what is adopted, released or kept when a daemon starts, stops or reloads."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulated_rig import Rig, configured_rig, plan

from common.units import CapFraction, Seconds
from xtc.config.plan import RouterPlan
from xtc.control.instance import RELEASE_AFTER
from xtc.errors import Refused, Transient
from xtc.lease import Kind
from xtc.manager.cap import MAX_BACKOFF
from xtc.spec import SimulatedOriginal, SimulatedSpec
from xtc.wire import Activate, Deactivate


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {"a": plan("a"), "b": plan("b")})


# Restarts


def test_a_lease_is_held_on_with_after_a_crash(rig: Rig) -> None:
    rig.plant.routers["a"].cap = CapFraction(0.9)
    rig.tick(1)
    rig.ask(Activate("a", 20e3, epoch=3, sequence=7, ttl_s=60.0))
    rig.tick(10)
    rig.restart()
    rig.tick(8)
    assert rig.holds("a", 20e3)
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
    lost = rig.plant.routers.pop("a")
    rig.tick(2)
    rig.restart()
    rig.plant.add("a", lost.plant)
    rig.tick(MAX_BACKOFF + 8)
    assert rig.holds("a", 5e3)


def test_a_setpoint_edited_while_the_daemon_was_down_is_obeyed(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=20e3)
    rig.tick(8)
    rig.plans = {"a": plan("a", 60e3)}
    rig.restart()
    rig.tick(8)
    assert rig.holds("a", 60e3)


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
        (trouble,) = rig.troubles
        assert trouble.endswith(": a: busy")
    rig.tick(1)
    assert [entry.spec for entry in rig.journal.ledger.entries.values()] == [SimulatedSpec("a")]
    rig.faults.errors.clear()
    rig.tick(MAX_BACKOFF)
    assert rig.cap("a") is None
    assert not rig.journal.ledger.entries


def test_a_router_renamed_while_the_daemon_was_down_keeps_its_original(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=20e3)
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
    assert rig.holds("b", 20e3)
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
    rig = configured_rig(tmp_path, a=20e3, b=20e3)
    rig.ask(Activate("b", 20e3, ttl_s=900.0, kind=Kind.PUNISHMENT))
    reload(rig, plan("a", 60e3), plan("b", 60e3))
    rig.tick(8)
    assert rig.holds("a", 60e3)
    assert rig.holds("b", 20e3)


def test_a_configured_setpoint_is_of_the_epoch_obeyed_last(rig: Rig) -> None:
    rig.ask(Activate("a", 20e3, epoch=5, sequence=1))
    reload(rig, plan("a"), plan("b", 30e3))
    assert rig.refused(Activate("b", 9e3, epoch=5, sequence=0)).code == "stale_sequence"
    rig.ask(Activate("b", 9e3, epoch=5, sequence=1))


def test_a_setpoint_taken_from_the_configuration_is_held_no_more(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=20e3)
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
    rig.plant.add("elsewhere", rig.plant.routers["a"].plant)
    rig.hold("a", 20e3)
    reload(rig, replace(plan("a", 20e3), spec=SimulatedSpec("elsewhere")), plan("b"))
    assert rig.cap("a") is None
    rig.tick(2)
    assert rig.cap("elsewhere") is not None
    assert rig.journal.ledger.entries["a"].spec == SimulatedSpec("elsewhere")


def moved(rig: Rig, setpoint: float | None = None) -> None:
    """Reload with router `a` at another place, `elsewhere`."""
    rig.plant.add("elsewhere", rig.plant.routers["a"].plant)
    reload(rig, replace(plan("a", setpoint), spec=SimulatedSpec("elsewhere")), plan("b"))


def test_a_router_that_moved_is_held_at_what_was_ordered_last(rig: Rig) -> None:
    rig.ask(Activate("a", 5e3, epoch=3, sequence=7, ttl_s=60.0, kind=Kind.PUNISHMENT))
    rig.tick(8)
    moved(rig, 60e3)
    rig.tick(2)
    assert (rig.cap("a"), rig.cap("elsewhere") is not None) == (None, True)
    report = rig.report("a")
    assert (report.setpoint_pps, report.epoch, report.sequence) == (5e3, 3, 7)
    assert report.lease_remaining_s == pytest.approx(50)
    assert rig.refused(Activate("a", 9e3, epoch=3, sequence=8)).code == "punished"
    assert rig.refused(Activate("a", 9e3, epoch=3, sequence=7)).code == "stale_sequence"


def test_a_router_that_moved_after_its_release_obeys_no_old_order(rig: Rig) -> None:
    rig.ask(Activate("a", 20e3, epoch=3, sequence=7))
    rig.ask(Deactivate("a"))
    moved(rig)
    assert rig.refused(Activate("a", 9e3, epoch=3, sequence=7)).code == "stale_sequence"


def test_a_router_released_on_request_is_not_held_where_it_moved(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=20e3, b=None)
    rig.tick(8)
    rig.ask(Deactivate("a"))
    moved(rig, 20e3)
    rig.tick(3)
    assert rig.cap("elsewhere") is None


@pytest.mark.parametrize("setpoint", [60e3, None])
def test_a_router_that_moved_follows_its_configuration(
    tmp_path: Path, setpoint: float | None
) -> None:
    rig = configured_rig(tmp_path, a=20e3, b=None)
    rig.tick(8)
    moved(rig, setpoint)
    rig.tick(1)
    assert rig.report("a").setpoint_pps == setpoint


# A place that is written in another way

REWORDED = SimulatedSpec("a", offered_pps=100e3)


def test_a_reload_that_words_a_place_anew_keeps_its_original_until_it_is_put_back(
    tmp_path: Path,
) -> None:
    rig = configured_rig(tmp_path, a=20e3)
    rig.plant.routers["a"].cap = CapFraction(0.9)
    rig.tick(8)
    rig.faults.errors["a", "restore"] = Transient("a", "the interface is down")
    reload(rig, replace(plan("a", 20e3), spec=REWORDED))
    rig.faults.errors.clear()
    rig.tick(2 * MAX_BACKOFF)
    assert rig.holds("a", 20e3)
    rig.ask(Deactivate("a"))
    assert (rig.cap("a"), rig.journal.ledger.entries) == (0.9, {})


def test_a_place_that_was_worded_anew_while_the_daemon_was_down_is_adopted(tmp_path: Path) -> None:
    rig = configured_rig(tmp_path, a=20e3)
    rig.plant.routers["a"].cap = CapFraction(0.9)
    rig.tick(8)
    rig.crash()
    rig.plans["a"] = replace(plan("a", 20e3), spec=REWORDED)
    rig.faults.errors["a", "restore"] = Transient("a", "the interface is down")
    rig.start()
    rig.faults.errors.clear()
    rig.tick(2 * MAX_BACKOFF)
    assert rig.holds("a", 20e3)
    rig.ask(Deactivate("a"))
    assert (rig.cap("a"), rig.journal.ledger.entries) == (0.9, {})
