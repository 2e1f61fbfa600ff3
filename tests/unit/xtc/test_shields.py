"""Held routers have a shield, as their loops stand; what cannot be undone yet is tried again."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_rig import Rig, flat, plan

from common.units import BitsPerSecond, CapFraction, PacketsPerSecond, Seconds
from xtc.control.instance import RELEASE_AFTER, Command
from xtc.control.shielding import PERIODS
from xtc.errors import Denied, Permanent, Transient
from xtc.manager.removals import AGAIN_EVERY
from xtc.manager.shields import LOOK_EVERY, MOST_NEW
from xtc.measure.collector import Binding, Reading, Side
from xtc.modes import Finding, Mode
from xtc.state import journal as journal_module
from xtc.wire import Activate, Deactivate, Observe, Pause, Resume, Retune

SETPOINT = 20e3


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, {name: replace(plan(name), shield=True) for name in "ab"})


def test_a_held_router_has_one_at_its_setpoint(rig: Rig) -> None:
    rig.tick(2)
    assert rig.shield.rates == {}
    rig.hold("a", SETPOINT)
    assert rig.shield.rates == {"a": SETPOINT}
    assert rig.shield.bearing == {"a.0": "a"}
    assert (rig.report("a").shield_pps, rig.report("b").shield_pps) == (SETPOINT, None)


def test_one_that_is_held_in_bits_has_one_in_bits(rig: Rig) -> None:
    rig.ask(Activate("a", None, setpoint_bps=20e6))
    rig.tick(2)
    report = rig.report("a")
    assert (report.shield_pps, report.shield_bps) == (None, 20e6)
    rig.ask(Retune("a", 20e6))
    rig.tick()
    report = rig.report("a")
    assert (report.shield_pps, report.shield_bps) == (20e6, None)


def test_one_in_bits_opens_for_a_router_that_drops_a_part_of_what_arrives(rig: Rig) -> None:
    rig.ask(Activate("a", None, setpoint_bps=20e6))
    managed = rig.manager.routers["a"]
    rig.tick(2)
    shield = rig.report("a").shield_bps
    for dropped in range(
        1000, 1000 * (PERIODS + 1), 1000
    ):  # half of what arrives, in any unit, is not forwarded
        rig.shield.drops["a"] = dropped
        half = Reading(
            PacketsPerSecond(1e3),
            PacketsPerSecond(2e3),
            ("a.0",),
            throughput_bps=BitsPerSecond(10e6),
            offered_bps=BitsPerSecond(20e6),
        )
        rig.clock.sleep(Seconds(1.0))
        rig.manager.tick({"a": half}, rig.clock.now())
    assert managed.instance is not None
    assert rig.report("a").shield_bps == pytest.approx(2 * (shield or 0), rel=0.01)


def flooded(rig: Rig, seconds: float, drops: int) -> None:
    """End a period of a router that forwards ten times its setpoint, however long it was."""
    rig.shield.drops["a"] = drops
    flood = Reading(PacketsPerSecond(10 * SETPOINT), PacketsPerSecond(10 * SETPOINT), ("a.0",))
    rig.clock.sleep(Seconds(seconds))
    rig.manager.tick({"a": flood}, rig.clock.now())


@pytest.mark.parametrize("before", [None, 10 * SETPOINT])
def test_what_passed_before_it_stood_is_not_paid_back(rig: Rig, before: float | None) -> None:
    if before is not None:
        rig.hold("a", before)
    rig.tick(2)
    rig.clock.sleep(Seconds(0.9))
    rig.ask(Activate("a", SETPOINT) if before is None else Retune("a", SETPOINT))
    flooded(rig, 0.1, drops=100)
    assert rig.report("a").shield_pps == SETPOINT


def test_one_that_is_retuned_in_every_period_learns_all_the_same(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.tick(2)
    flooded(rig, 1.0, drops=100)
    assert rig.report("a").shield_pps == 0.5 * SETPOINT
    for period in range(60):
        rig.ask(Retune("a", SETPOINT + period % 2))
        rig.shield.drops["a"] += 100
        half = Reading(PacketsPerSecond(SETPOINT / 2), PacketsPerSecond(SETPOINT / 2), ("a.0",))
        rig.clock.sleep(Seconds(1.0))
        rig.manager.tick({"a": half}, rig.clock.now())
    assert rig.report("a").shield_pps == pytest.approx(SETPOINT, rel=1e-3)


def test_what_passes_while_it_stands_is_paid_back(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.tick(2)
    flooded(rig, 1.0, drops=100)
    assert (rig.report("a").shield_pps or 0.0) <= 0.5 * SETPOINT


def test_what_decides_before_it_is_told_within_a_turn_of_all_routers(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.shield.others["a.0"] = "filter bpf other (pref 1) decides before xtc's on a.0"
    rig.tick(2)
    assert "pref 1" in rig.report("a").shield_problem
    rig.shield.others.clear()
    rig.tick(2)
    assert rig.report("a").shield_problem == ""


def test_one_that_is_not_wanted_is_not_set(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"a": plan("a")})
    rig.hold("a", SETPOINT)
    assert (rig.shield.rates, rig.journal.ledger.shields) == ({}, {})


def test_many_that_are_new_at_once_are_set_in_turn(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(2 * MOST_NEW + 1)]
    rig = Rig(tmp_path, {name: replace(plan(name), shield=True) for name in names})
    rig.tick(2)
    for name in names:
        rig.ask(Activate(name, SETPOINT))
    for count in (MOST_NEW, 2 * MOST_NEW, 2 * MOST_NEW + 1):
        rig.tick()
        assert len(rig.shield.rates) == count


def test_it_follows_the_setpoint(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.ask(Retune("a", SETPOINT / 2))
    assert rig.shield.rates == {"a": SETPOINT / 2}
    rig.ask(Retune("a", 2 * SETPOINT))
    assert rig.shield.rates == {"a": 2 * SETPOINT}


def test_it_is_set_with_the_request_that_activates(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    assert rig.shield.rates == {"a": SETPOINT}
    assert rig.journal.ledger.shields == {"a": ("a.0",)}


def test_it_goes_with_the_cap(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.ask(Deactivate("a"))
    assert (rig.shield.rates, rig.shield.bearing) == ({}, {})
    rig.tick()
    assert rig.journal.ledger.shields == {}


def test_it_goes_where_the_loop_lets_go(rig: Rig) -> None:
    rig.ask(Activate("a", SETPOINT, ttl_s=5.0))
    rig.tick(3)
    assert rig.shield.bearing
    rig.tick(4)
    assert rig.report("a").mode is Mode.RELEASED
    assert not rig.shield.bearing


def test_an_interface_that_was_made_again_bears_it_in_the_period_that_shows_it(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.shield.bearing.clear()
    reset = Reading(None, None, ("a.0",), ("a.0: its counters were reset",))
    rig.manager.tick({"a": reset}, rig.clock.now())
    assert rig.shield.bearing == {"a.0": "a"}
    rig.shield.bearing.clear()
    rig.manager.tick({"a": reset}, rig.clock.now())
    assert rig.shield.bearing == {}  # one that stays so is not looked at all the time


def test_one_that_was_taken_away_is_there_again_in_its_turn(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.shield.bearing.clear()
    rig.tick(LOOK_EVERY)
    assert rig.shield.bearing == {"a.0": "a"}


def test_a_pause_leaves_it_as_it_is(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.ask(Pause("a"))
    rig.ask(Retune("a", 2 * SETPOINT))
    rig.tick(2 * LOOK_EVERY)
    assert rig.shield.rates == {"a": SETPOINT}
    rig.ask(Resume("a"))
    rig.tick()
    assert rig.shield.rates == {"a": 2 * SETPOINT}


def test_a_pause_keeps_none_that_is_not_wanted_any_longer(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.ask(Pause("a"))
    rig.plans["a"] = replace(rig.plans["a"], shield=False)
    rig.manager.reconfigure(rig.plans, max_release_share=1.0)
    rig.tick()
    assert not rig.shield.bearing


def test_it_goes_with_the_lease_where_the_actuator_is_not_to_be_had(rig: Rig) -> None:
    rig.faults.errors["a", "open"] = Transient("a", "the hypervisor does not answer")
    rig.ask(Activate("a", SETPOINT, ttl_s=5.0))
    rig.tick(3)
    assert rig.shield.bearing
    rig.tick(4)
    assert not rig.shield.bearing


def test_it_follows_the_lease_where_the_cap_is_left_to_others(rig: Rig) -> None:
    rig.ask(Activate("a", SETPOINT, ttl_s=40.0))
    for times in range(8):
        rig.tick(2)
        rig.plant.routers["a"].cap = CapFraction(0.77 + 0.02 * (times % 2))
    assert rig.report("a").finding is Finding.FOREIGN
    rig.ask(Retune("a", 2 * SETPOINT, ttl_s=10.0))
    rig.tick()
    assert rig.shield.rates == {"a": 2 * SETPOINT}
    rig.tick(12)
    assert not rig.shield.bearing


def test_who_only_observes_finds_it_as_it_was(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.ask(Observe(on=True))
    rig.ask(Retune("a", 2 * SETPOINT))
    rig.ask(Activate("b", SETPOINT))
    rig.tick(2 * LOOK_EVERY)
    assert rig.shield.rates == {"a": SETPOINT}
    rig.ask(Observe(on=False))
    rig.tick()
    assert rig.shield.rates == {"a": 2 * SETPOINT, "b": SETPOINT}


def test_where_the_journal_cannot_be_written_none_is_set_and_those_there_are_lifted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.ask(Activate("a", SETPOINT, ttl_s=5.0))
    rig.tick(2)
    monkeypatch.setattr(journal_module.os, "write", no_space)
    rig.ask(Activate("b", SETPOINT))
    rig.tick(5)
    assert rig.report("a").mode is Mode.RELEASED
    assert not rig.shield.bearing


def test_where_the_journal_cannot_be_written_one_that_is_there_follows_the_setpoint(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.hold("a", SETPOINT)
    monkeypatch.setattr(journal_module.os, "write", no_space)
    for share in (2, 3):
        rig.ask(Retune("a", share * SETPOINT))
        rig.tick(2)
        assert rig.shield.rates == {"a": pytest.approx(share * SETPOINT)}


def no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_one_that_does_not_answer_to_its_cap_is_found_and_keeps_it(rig: Rig) -> None:
    flat(rig.plant.routers["a"])
    rig.hold("a", SETPOINT, periods=2)
    router = rig.plant.routers["a"]
    router.plant = replace(router.plant, offered=rig.shield.rates["a"])  # as the shield does
    rig.shield.drops["a"] = 10
    for _ in range(30):
        rig.shield.drops["a"] += 1000
        rig.tick()
    assert rig.report("a").finding is Finding.UNRESPONSIVE
    assert rig.cap("a") is None
    assert rig.shield.bearing == {"a.0": "a"}


def test_one_that_does_not_answer_loses_it_where_nobody_sees_what_it_does(rig: Rig) -> None:
    test_one_that_does_not_answer_to_its_cap_is_found_and_keeps_it(rig)
    rig.blind = True
    rig.tick(RELEASE_AFTER - 1)
    assert rig.shield.bearing
    rig.tick(2)
    assert not rig.shield.bearing
    rig.blind = False
    rig.tick(2)
    assert rig.shield.bearing


def bind(rig: Rig, **patterns: str) -> None:
    """Reload with other interfaces."""
    plans = {n: replace(p, binding=Binding((patterns[n],))) for n, p in rig.plans.items()}
    rig.manager.reconfigure(plans, max_release_share=1.0)
    rig.collector.rebind({name: each.binding for name, each in plans.items()})


def test_interfaces_that_two_routers_exchange_bear_their_new_ones_shield(rig: Rig) -> None:
    for name in "ab":
        rig.hold(name, SETPOINT)
    bind(rig, a="b.0", b="a.0")
    for _ in range(2 * LOOK_EVERY):
        rig.tick()
        assert rig.shield.bearing == {"a.0": "b", "b.0": "a"}
    rig.ask(Deactivate("a"))
    assert rig.shield.bearing == {"a.0": "b"}


def test_an_interface_that_another_router_takes_keeps_that_ones_shield(rig: Rig) -> None:
    bind(rig, a="[ab].0", b="none")
    for name in "ab":
        rig.hold(name, SETPOINT)
    assert rig.shield.bearing == {"a.0": "a", "b.0": "a"}
    bind(rig, a="a.0", b="b.0")
    for _ in range(2 * LOOK_EVERY):
        rig.tick()
        assert rig.shield.bearing == {"a.0": "a", "b.0": "b"}


def test_one_that_cannot_be_changed_is_set_anew_and_the_report_says_why(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.shield.error = Transient("a", "busy")
    rig.ask(Retune("a", 2 * SETPOINT))
    rig.tick(2)
    assert (rig.report("a").shield_problem, rig.report("a").problem) == ("a: busy", "")
    rig.shield.error = None
    rig.tick(LOOK_EVERY)
    assert rig.report("a").shield_problem == ""
    assert rig.shield.rates == {"a": 2 * SETPOINT}


def test_it_opens_for_one_that_is_short_although_its_cap_can_rise_no_more(tmp_path: Path) -> None:
    ceiling = CapFraction(0.2)
    rig = Rig(tmp_path, {"a": replace(plan("a"), shield=True, ceiling=ceiling)})
    rig.hold("a", 4 * SETPOINT)
    assert rig.report("a").finding is Finding.AT_CEILING
    for dropped in range(1000, 1000 * (PERIODS + 1), 1000):
        rig.shield.drops["a"] = dropped
        rig.tick()
    assert rig.shield.rates["a"] > 4 * SETPOINT


def test_what_it_drops_is_offered_all_the_same(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    before = rig.report("a").offered_pps
    assert before is not None
    rig.shield.drops["a"] = 7000
    rig.tick()
    assert rig.report("a").offered_pps == pytest.approx(before + 7000)
    rig.tick()
    assert rig.report("a").offered_pps == pytest.approx(before)


def test_at_the_routers_own_end_what_it_drops_is_not_counted_twice(tmp_path: Path) -> None:
    own = Binding(("a.0",), side=Side.ROUTER)
    rig = Rig(tmp_path, {"a": replace(plan("a"), shield=True, binding=own)})
    rig.hold("a", SETPOINT)
    counted = []
    step = rig.manager.routers["a"].step

    def watched(reading: Reading, *rest: Seconds) -> Command:
        counted.append(reading.offered)
        return step(reading, *rest)

    rig.manager.routers["a"].step = watched  # type: ignore[method-assign, assignment]
    rig.shield.drops["a"] = 1000
    rig.tick()
    sample = rig.manager.routers["a"].sample
    assert sample is not None
    assert sample.offered == pytest.approx(counted[0] - 1000)
    assert rig.report("a").offered_pps == pytest.approx(counted[0])


def test_where_it_cannot_be_read_what_was_offered_is_not_known(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.shield.error = Transient("a", "busy")
    rig.tick()
    assert rig.report("a").offered_pps is None
    rig.shield.error = None
    rig.tick(2)
    assert rig.report("a").offered_pps is not None


def test_where_no_interface_bears_one_the_cap_holds_and_the_report_says_why(rig: Rig) -> None:
    rig.shield.refusals["a.0"] = Permanent("a.0", "filter bpf other belongs to another owner")
    rig.hold("a", SETPOINT)
    report = rig.report("a")
    assert (report.shield_pps, report.problem) == (None, "")
    assert "another owner" in report.shield_problem
    assert rig.cap("a") is not None
    rig.shield.refusals.clear()
    rig.tick(LOOK_EVERY)
    assert (rig.report("a").shield_problem, rig.shield.bearing) == ("", {"a.0": "a"})


def test_one_that_somebody_removed_is_set_again(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.shield.bearing.clear()
    rig.tick(LOOK_EVERY)
    assert rig.shield.bearing == {"a.0": "a"}


def test_the_journal_knows_of_it_first(rig: Rig) -> None:
    known = []
    limit = rig.shield.limit

    def watched(*arguments: object) -> object:
        known.append(dict(rig.journal.ledger.shields))
        return limit(*arguments)  # type: ignore[arg-type]

    rig.shield.limit = watched  # type: ignore[method-assign, assignment]
    rig.hold("a", SETPOINT)
    assert known[0] == {"a": ("a.0",)}


def test_after_a_crash_it_is_adopted_or_lifted(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.hold("b", SETPOINT)
    del rig.plans["b"]
    rig.restart()
    assert rig.shield.bearing == {"a.0": "a"}
    rig.tick(3)
    assert rig.shield.bearing == {"a.0": "a"}
    assert rig.journal.ledger.shields == {"a": ("a.0",)}


def test_after_a_crash_one_that_is_not_held_any_longer_is_lifted(rig: Rig) -> None:
    rig.ask(Activate("a", SETPOINT, ttl_s=5.0))
    rig.tick(2)
    rig.crash()
    rig.clock.sleep(Seconds(10.0))
    rig.start()
    rig.tick()
    assert not rig.shield.bearing
    assert rig.journal.ledger.shields == {}


def test_one_that_cannot_be_lifted_is_tried_again_and_stays_in_the_journal(rig: Rig) -> None:
    rig.hold("a", SETPOINT)
    rig.shield.error = Denied("a.0", "no filter may be set")
    assert "no filter" in rig.refused(Deactivate("a")).problem
    rig.tick()
    assert set(rig.journal.ledger.shields.values()) == {("a.0",)}
    rig.shield.error = None
    rig.tick(AGAIN_EVERY)
    assert not rig.shield.bearing
    rig.tick()
    assert rig.journal.ledger.shields == {}


def test_an_unforeseen_error_of_one_reaches_no_other(rig: Rig) -> None:
    rig.hold("b", SETPOINT)

    def broken(_managed: object, _now: object) -> None:
        raise ZeroDivisionError("bug")

    rig.manager.host.shields.look = broken  # type: ignore[method-assign, assignment]
    rig.hold("a", SETPOINT)
    assert rig.shield.rates["a"] == SETPOINT
    assert rig.report("a").mode is Mode.CLOSED_LOOP
    assert rig.report("b").problem.startswith("unforeseen ZeroDivisionError (shield)")
