"""Floors on groups of plain files: captured first, written on change, put back, left to others."""

from dataclasses import replace
from pathlib import Path

import pytest
from group_rig import DEFAULT, GroupRig, group_plan, make_group

from common.units import Seconds
from xtc.control.floors import AUTO, KEEP
from xtc.control.instance import RELEASE_AFTER
from xtc.daemon.release import RELEASED, all_released
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.host_floors import LOOK_EVERY
from xtc.modes import Finding, Mode
from xtc.spec import CgroupOriginal
from xtc.state.journal import Ledger, _decode
from xtc.wire import Activate, Deactivate, Observe, Pause, Resume

SETPOINT = 60e3
"""Needs 60 % of a CPU."""
HOG = "hog"


@pytest.fixture
def rig(tmp_path: Path) -> GroupRig:
    rig = GroupRig(tmp_path, {name: group_plan(tmp_path, name) for name in ("gold", "silver")})
    make_group(tmp_path / "cg" / HOG)
    for forwarder in rig.forwarders.values():
        forwarder.offered = 100e3
    return rig


@pytest.fixture
def shielded(tmp_path: Path) -> GroupRig:
    """A rig whose routers need no cap before there is a flood."""
    plans = {name: group_plan(tmp_path, name) for name in ("gold", "silver")}
    rig = GroupRig(tmp_path, {name: replace(one, shield=True) for name, one in plans.items()})
    rig.forwarders["gold"].offered = 40e3
    rig.tick()
    return rig


def share(rig: GroupRig, name: str) -> float:
    """Return what a weight gives of a CPU that all want."""
    weights = {path.name: int((path / "cpu.weight").read_text()) for path in cg(rig).iterdir()}
    return weights[name] / sum(weights.values())


def cg(rig: GroupRig) -> Path:
    return rig.groups["gold"].parent


def entries(rig: GroupRig) -> dict[str, int | None]:
    ledger = _decode((rig.directory / "journal").read_bytes())
    return {name: one.original.weight for name, one in ledger.entries.items()}  # type: ignore[union-attr]


def test_held_routers_get_weights_that_cover_their_setpoints(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT)
    rig.hold("silver", 20e3, periods=LOOK_EVERY)
    assert share(rig, "gold") >= 0.6
    assert share(rig, "silver") >= 0.2
    assert rig.report("gold").weight == rig.weight("gold")
    assert rig.report("gold").floor_problem == ""


def test_a_retune_changes_the_weight_at_once(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT)
    before = rig.weight("gold")
    rig.ask(Activate("gold", 45e3, sequence=1))
    rig.tick(2)
    assert DEFAULT < rig.weight("gold") < before


def test_a_floor_that_is_too_low_for_its_router_is_raised_before_its_turn(rig: GroupRig) -> None:
    """What packets cost was learned while they were cheap: for ten periods it fell short."""
    rig.hold("gold", SETPOINT, periods=LOOK_EVERY)
    gold = rig.forwarders["gold"]
    gold.cost_s *= 1.2
    gold.gets = share(rig, "gold")
    rig.tick(2)
    assert share(rig, "gold") >= 0.6 * 1.2


def test_a_starved_router_that_was_never_capped_gets_its_floor(shielded: GroupRig) -> None:
    shielded.forwarders["gold"].gets = 0.1
    shielded.hold("gold", SETPOINT)
    assert not shielded.capped("gold")
    assert shielded.report("gold").finding is Finding.STARVED
    assert share(shielded, "gold") >= 0.6


def test_the_weight_is_in_the_journal_before_it_is_written(
    rig: GroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    write = "xtc.kernel.weights.GroupWeight.write"
    monkeypatch.setattr(write, lambda _self, weight: seen.append((weight, entries(rig)["gold"])))
    rig.hold("gold", SETPOINT)
    assert seen
    assert all(stored == DEFAULT for _, stored in seen)


def test_without_a_journal_no_weight_is_written(
    rig: GroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("xtc.state.journal._write_durably", full)
        rig.hold("gold", SETPOINT)
        assert rig.weight("gold") == DEFAULT
    rig.tick(2)
    assert rig.weight("gold") > DEFAULT


def test_weights_are_written_on_change_alone(
    rig: GroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.hold("gold", SETPOINT, periods=2 * LOOK_EVERY)
    touched: list[str] = []
    monkeypatch.setattr(
        "xtc.kernel.weights.GroupWeight.write", lambda *_: touched.append("written")
    )
    monkeypatch.setattr(
        "xtc.kernel.weights.GroupWeight.read", lambda _: touched.append("read") or weight
    )
    weight = rig.weight("gold")
    rig.tick(3 * LOOK_EVERY)
    assert touched.count("written") == 0
    assert touched.count("read") <= 2 * 3


def test_who_contends_is_looked_at_again(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT, periods=LOOK_EVERY)
    before = rig.weight("gold")
    make_group(cg(rig) / "another", 1000)
    rig.tick(LOOK_EVERY)
    assert rig.weight("gold") > before
    assert share(rig, "gold") >= 0.6


def test_while_it_is_not_known_who_contends_weights_stay(
    rig: GroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.hold("gold", SETPOINT)
    before = rig.weight("gold")

    def unreadable(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("xtc.actuator.cgroup_weights.rivals", unreadable)
    rig.tick(2 * LOOK_EVERY)
    assert rig.weight("gold") == before
    assert rig.report("gold").floor_problem == ""


def test_a_change_right_before_the_first_weight_is_the_original(rig: GroupRig) -> None:
    store, changed = rig.journal.store, []

    def change_once(ledger: Ledger) -> None:
        store(ledger)
        if "gold" in ledger.entries and not changed:
            rig.set_weight("gold", 77)
            changed.append(True)

    rig.journal.store = change_once  # type: ignore[method-assign]
    rig.hold("gold", SETPOINT, periods=2 * LOOK_EVERY)
    assert rig.weight("gold") > DEFAULT
    rig.ask(Deactivate("gold"))
    assert rig.weight("gold") == 77


@pytest.mark.parametrize("operator", [DEFAULT, 30, 7000])
def test_a_release_puts_the_weight_back(rig: GroupRig, operator: int) -> None:
    rig.set_weight("gold", operator)
    rig.hold("gold", SETPOINT)
    rig.ask(Deactivate("gold"))
    assert rig.weight("gold") == operator
    assert not rig.capped("gold")


def test_a_weight_alone_is_put_back_when_the_loop_lets_go(shielded: GroupRig) -> None:
    rig = shielded
    rig.ask(Activate("gold", SETPOINT, ttl_s=20.0))
    rig.tick(10)
    assert not rig.capped("gold")
    assert rig.weight("gold") > DEFAULT
    rig.tick(12)
    assert rig.report("gold").mode is Mode.RELEASED
    assert rig.weight("gold") == DEFAULT


def test_a_blind_loop_lets_go_of_its_weight(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT)
    rig.blind = True
    rig.tick(RELEASE_AFTER + 2)
    assert rig.weight("gold") == DEFAULT


@pytest.mark.parametrize("ticks", range(1, 6))
def test_after_a_crash_the_journal_alone_puts_the_weight_back(rig: GroupRig, ticks: int) -> None:
    rig.ask(Activate("gold", SETPOINT))
    rig.tick(ticks)
    rig.crash()
    ledger = _decode((rig.directory / "journal").read_bytes())
    hypervisors = Hypervisors(rig.clock)
    outcomes = all_released(ledger.entries, hypervisors, rig.clock, Seconds(0.0))
    assert set(outcomes.values()) <= {RELEASED}
    assert rig.weight("gold") == DEFAULT


def test_the_next_daemon_goes_on_with_the_weight_and_puts_it_back(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT)
    held = rig.weight("gold")
    rig.restart()
    rig.tick(2 * LOOK_EVERY)
    assert rig.weight("gold") == held
    assert rig.report("gold").floor_problem == ""
    rig.ask(Deactivate("gold"))
    assert rig.weight("gold") == DEFAULT


def test_a_journal_without_weights_is_read_and_gets_them(rig: GroupRig) -> None:
    rig.plans["gold"] = replace(rig.plans["gold"], weight=KEEP)
    rig.restart()
    rig.hold("gold", SETPOINT)
    assert entries(rig) == {"gold": None}
    rig.plans["gold"] = replace(rig.plans["gold"], weight=AUTO)
    rig.restart()
    rig.tick(3)
    assert entries(rig) == {"gold": DEFAULT}
    assert rig.weight("gold") > DEFAULT


def test_a_weight_that_somebody_else_sets_is_theirs(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT)
    rig.set_weight("gold", 77)
    rig.tick(LOOK_EVERY + 1)
    assert "another process set its weight to 77" in rig.report("gold").floor_problem
    assert rig.capped("gold")
    rig.tick(2 * LOOK_EVERY)
    assert rig.weight("gold") == 77
    rig.ask(Deactivate("gold"))
    assert rig.weight("gold") == 77


def test_a_resume_takes_a_weight_of_others_as_the_original(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT)
    rig.set_weight("gold", 77)
    rig.tick(LOOK_EVERY + 1)
    rig.ask(Pause("gold"))
    rig.ask(Resume("gold"))
    rig.tick(LOOK_EVERY + 1)
    assert rig.weight("gold") > 77
    assert rig.report("gold").floor_problem == ""
    rig.ask(Deactivate("gold"))
    assert rig.weight("gold") == 77


def test_a_cap_that_came_while_only_the_weight_was_changed_stays(shielded: GroupRig) -> None:
    """The original is the quota before the first cap, not the one before the first weight."""
    rig = shielded
    rig.hold("gold", SETPOINT)
    assert rig.weight("gold") > DEFAULT
    (rig.groups["gold"] / "cpu.max").write_text("90000 100000\n")
    rig.ask(Deactivate("gold"))
    assert (rig.groups["gold"] / "cpu.max").read_text() == "90000 100000\n"
    assert rig.weight("gold") == DEFAULT


@pytest.mark.parametrize("file", ["cpu.weight", "cpu.idle"])
def test_a_weight_that_cannot_be_set_never_stops_the_cap(rig: GroupRig, file: str) -> None:
    if file == "cpu.weight":
        (rig.groups["gold"] / file).unlink()
    else:
        (rig.groups["gold"] / file).write_text("1\n")
    rig.restart()
    rig.hold("gold", SETPOINT)
    assert rig.capped("gold")
    assert rig.report("gold").problem == ""
    assert rig.report("gold").floor_problem
    rig.ask(Deactivate("gold"))
    assert not rig.capped("gold")


def test_a_number_is_held_and_one_out_of_range_is_told(tmp_path: Path) -> None:
    plans = {"low": group_plan(tmp_path, "low", 500), "high": group_plan(tmp_path, "high", 20_000)}
    rig = GroupRig(tmp_path, plans)
    for name in plans:
        rig.hold(name, SETPOINT)
    assert (rig.weight("low"), rig.weight("high")) == (500, 10_000)
    assert rig.report("low").floor_problem == ""
    assert rig.report("high").floor_problem == "cpu.weight takes 1 to 10000"


def test_kept_weights_are_never_touched(tmp_path: Path) -> None:
    rig = GroupRig(tmp_path, {"gold": group_plan(tmp_path, "gold", KEEP)})
    rig.forwarders["gold"].offered = 100e3
    rig.hold("gold", SETPOINT, periods=2 * LOOK_EVERY)
    assert rig.capped("gold")
    assert rig.weight("gold") == DEFAULT
    assert entries(rig) == {"gold": None}


def test_a_reload_to_keep_puts_the_weight_back(rig: GroupRig) -> None:
    rig.hold("gold", SETPOINT)
    plans = rig.plans | {"gold": replace(rig.plans["gold"], weight=KEEP)}
    rig.manager.reconfigure(plans, max_release_share=1.0)
    rig.tick(LOOK_EVERY + 1)
    assert rig.weight("gold") == DEFAULT
    assert rig.capped("gold")
    rig.tick()
    assert entries(rig) == {"gold": None}


def test_under_observation_no_weight_is_written(rig: GroupRig) -> None:
    rig.ask(Observe(on=True))
    rig.hold("gold", SETPOINT)
    assert rig.weight("gold") == DEFAULT


def test_a_host_with_too_little_cpu_is_told(rig: GroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    rig.restart()
    rig.hold("gold", SETPOINT)
    rig.hold("silver", SETPOINT, periods=LOOK_EVERY)
    assert "is left of 100%" in rig.report("gold").floor_problem
    assert "is left of 100%" in rig.report("silver").floor_problem


def test_without_pressure_a_router_that_drops_is_not_starved(rig: GroupRig) -> None:
    """Its packets are lost elsewhere: it never waited for a CPU."""
    rig.forwarders["gold"].offered = 40e3
    rig.forwarders["gold"].gets = 0.1
    pressure = rig.groups["gold"] / "cpu.pressure"
    pressure.write_text("some avg10=0.40 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00\n")
    rig.hold("gold", SETPOINT)
    assert rig.report("gold").finding is Finding.NOT_BINDING
    pressure.write_text("some avg10=60.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00\n")
    rig.tick()
    assert rig.report("gold").finding is Finding.STARVED


def test_an_original_of_an_older_xtc_leaves_the_weight_alone() -> None:
    assert CgroupOriginal(None, 100_000).weight is None
