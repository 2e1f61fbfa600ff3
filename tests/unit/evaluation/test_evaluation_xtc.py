"""The XTC experiments: setpoints, metrics of a run, loads and tables, without any packet."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.evaluation.calibration import PAPER_KPPS, Calibration, Equation
from benchmarks.evaluation.plan import Cell, Run
from benchmarks.evaluation.result import Value
from benchmarks.evaluation.xtc import actuators, fairness, hold, hops, six
from benchmarks.evaluation.xtc.shared import Turn, Turns
from benchmarks.evaluation.xtc.stage import (
    DEAD_BEAT,
    FIXED,
    NONE,
    OURS,
    OURS_CAP,
    PI,
    Held,
    Window,
    begin_at_fixed_cap,
    table_of,
)
from lab.programs.processes import Place
from lab.routers.router import Router, Surroundings
from lab.traffic.counts import Pinged
from xtc.actuator.cgroup import CgroupActuator
from xtc.spec import CgroupSpec

MAP = ((5.0, 16e3), (20.0, 64e3), (50.0, 98e3))
HERE = Calibration(250e3, MAP, Equation(0.0915, 63.0, 78.14, 1.39, 0.99))
"""A machine that is twice as fast as the paper's."""


def by_metric(values: list[Value]) -> dict[str, float]:
    return {value.metric: value.value for value in values}


def held(*pps: float, sent: int = 10, received: int = 8) -> Held:
    return Held([(float(n), rate) for n, rate in enumerate(pps)], sent, received, (4.0, 6.0))


def router() -> Router:
    place = Place("/run/netns/x")
    return Router(
        "vr",
        "user-space",
        1,
        "/run/netns/x",
        Path("/g"),
        Surroundings("d", place, place, place, False),
    )


def test_a_run_is_measured_in_the_papers_unit() -> None:
    run = Run("xtc-hold", Cell(OURS, "UDP, setpoint 20 kp/s", 1.0), 0)
    found = by_metric(list(hold.measured(run, held(38e3, 42e3), HERE, 20.0)))
    assert found[hold.ACHIEVED] == pytest.approx(20.0)
    assert found[hold.ERROR] == pytest.approx(0.0)
    assert found[hold.RMSE] == pytest.approx(5.0)
    assert found[hold.LOSS] == pytest.approx(20.0)
    assert found[hold.RTT] == 5.0


def test_nothing_is_claimed_of_probes_that_never_came_back() -> None:
    run = Run("xtc-hold", Cell(OURS, "UDP, setpoint 20 kp/s", 1.0), 0)
    silent = Held([(0.0, 0.0)], 10, 0, ())
    found = by_metric(list(hold.measured(run, silent, HERE, 20.0)))
    assert found[hold.LOSS] == 100.0
    assert {hold.RTT, hold.RMSE}.isdisjoint(found)


def test_the_load_of_a_point() -> None:
    assert hold.load_of(hold.Point(hold.TCP, 20.0), HERE).tcp
    flood = hold.load_of(hold.Point(hold.UDP, 20.0), HERE)
    assert (flood.flood_pps, flood.theft) == (HERE.pps(PAPER_KPPS), 0.0)
    thief = hold.load_of(hold.Point(hold.THIEF, 16.0), HERE)
    assert thief.theft == pytest.approx(0.15 * 0.10), "of the 10 % that 32 kp/s take"


def test_every_cell_of_a_hold_has_its_point() -> None:
    assert {cell.point for cell in (*hold.cells(), *hold.quick_cells())} <= hold.POINTS.keys()


@pytest.fixture
def quota(tmp_path: Path) -> CgroupActuator:
    """Return the quota of a group that consists of plain files with the kernel's formats."""
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 0\n")
    return CgroupActuator(CgroupSpec(path=str(tmp_path)))


@pytest.mark.parametrize("way", [FIXED, PI, DEAD_BEAT])
def test_the_papers_laws_begin_at_the_fixed_cap(way: str, quota: CgroupActuator) -> None:
    begin_at_fixed_cap(quota, way, HERE, 64e3)
    assert quota.applied() == pytest.approx(0.20)


def test_the_papers_laws_have_longer_to_settle_where_routers_share_a_cpu() -> None:
    window = Window(4, 5)
    assert [window.for_way(way) for way in (NONE, FIXED, OURS)] == [window] * 3
    assert window.for_way(DEAD_BEAT) == window.for_way(PI) == Window(8, 5)


@pytest.mark.parametrize("way", [NONE, OURS, OURS_CAP])
def test_other_ways_begin_without_a_cap(way: str, quota: CgroupActuator) -> None:
    begin_at_fixed_cap(quota, way, HERE, 64e3)
    assert quota.applied() is None


def test_a_row_without_control_has_no_setpoint_to_miss() -> None:
    seen = (40e3, Pinged(0, 10, 10, (1_000_000,), 0), Pinged(1, 20, 15, (3_000_000,), 0))
    assert hops.ERROR not in by_metric(list(hops.values_of(NONE, "p", seen, 20e3)))


def test_only_the_papers_laws_have_a_model_and_only_ours_a_shield() -> None:
    tables = {way: table_of(router(), way, Path("m.toml")) for way in (NONE, PI, OURS, OURS_CAP)}
    assert 'law = "pi"' in tables[PI]
    assert 'model = "m.toml"' in tables[PI]
    assert [way for way, table in tables.items() if "shield = false" in table] == [PI, OURS_CAP]


def test_a_quota_has_the_period_that_is_asked_for() -> None:
    assert actuators.quota_of(20.0, 30_000) == (6_000, 30_000)
    assert actuators.quota_of(1.0, 10_000) == (1_000, 10_000), "the kernel's smallest"


@pytest.mark.parametrize("configuration", six.CONFIGURATIONS)
def test_setpoints_add_up_to_the_uncontrolled_aggregate(configuration: str) -> None:
    setpoints = six.setpoints_of(configuration, 12e3)
    assert sum(setpoints.values()) == pytest.approx(12e3)
    assert list(setpoints) == [f"vr{n}" for n in range(1, 7)]
    assert sum(six.CONFIGURATIONS[configuration]) == 78.0


def turn(before: float = 110.0, after: float = 90.0) -> Turn:
    pps, rtt_ms = {"vr1": 30.0, "vr2": 66.0}, {"vr1": 3.0, "vr2": 9.0}
    return Turn(pps, rtt_ms, {"vr1": 30.0, "vr2": 60.0}, before, after)


def test_a_way_is_next_to_no_control_before_and_after_it() -> None:
    values = six.values_of(OURS, "p", turn())
    assert by_metric(list(values)) == pytest.approx(
        {six.AGGREGATE: 96.0, six.MISSED: 10.0, six.RTT: 9.0}
    )
    fair = by_metric(list(fairness.values_of(OURS, "p", turn())))
    assert fair == pytest.approx({fairness.MIN_MAX: 30 / 66, fairness.AGGREGATE: 96.0})


@pytest.mark.parametrize(
    ("after", "setpoints", "taken"),
    [
        ((105.0,), [100.0], 105.0),
        ((50.0, 48.0), [100.0, 50.0], 48.0),
        ((50.0, 70.0), [100.0, 50.0], 70.0),
    ],
    ids=["steady", "steady again", "never: the steadiest"],
)
def test_a_turn_during_which_the_machine_changed_is_repeated(
    after: tuple[float, ...], setpoints: list[float], taken: float
) -> None:
    left, held = list(after), []

    def hold(way: str, setpoints: Mapping[str, float], before: float) -> Turn:
        held.append((way, setpoints["vr1"]))
        return Turn({"vr1": before}, {}, setpoints, before, left.pop(0))

    turns = Turns(Turn({"vr1": 100.0}, {}, {}, 100.0, 100.0), hold)
    assert turns.make(OURS, lambda aggregate: {"vr1": aggregate}).after == taken
    assert held == [(OURS, setpoint) for setpoint in setpoints]


def test_a_row_of_hosts_loses_what_was_not_answered() -> None:
    first, last = Pinged(0, 100, 90, (), 0), Pinged(1, 200, 165, (2_000_000, 4_000_000), 0)
    values = by_metric(list(hops.values_of(OURS, hops.point_of(3), (95.0, first, last), 100.0)))
    assert values == pytest.approx({hops.LOSS: 25.0, hops.RTT: 3.0, hops.ERROR: 5.0})
    assert [hops.point_of(hosts) for hosts in (1, 2)] == ["1 host", "2 hosts"]
