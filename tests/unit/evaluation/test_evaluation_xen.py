"""The evaluation on emulated Xen: its plan, the task of dom0, and the values of samples."""

import json
import statistics
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from system.xen.dom0.capmap import CapMap

from benchmarks.evaluation.__main__ import incomplete
from benchmarks.evaluation.calibration import Calibration, Equation, model, rising
from benchmarks.evaluation.catalogue import EXPERIMENTS, OWN, chosen
from benchmarks.evaluation.plan import Cell, Run, planned_s
from benchmarks.evaluation.xtc import xen
from benchmarks.evaluation.xtc.hold import ACHIEVED, ERROR, RMSE, THIEF, UDP, Point
from benchmarks.evaluation.xtc.stage import DEAD_BEAT, FIXED, NONE, OURS, PI
from xtc.config.file import parse_config
from xtc.config.plan import plans

HERE = Calibration(187.5, ((10.0, 15.0), (45.0, 90.0)), Equation(0.1, 0.12, 0.06, 1.2, 0.9))
AT_20, STOLEN_20 = Point(UDP, 20).words, Point(THIEF, 20).words
TABLE = """
[daemon]
period_s = {period_s}
[router.gold]
actuator = {{ kind = "libvirt", domain = "gold", uri = "xen:///system" }}
{lines}"""


def run(way: str, point: str = AT_20) -> Run:
    return Run("xen-hold", Cell(way, point, 1.0), 0)


def test_it_takes_an_hour_at_most() -> None:
    runs = list(xen.EXPERIMENT.runs(quick=False))
    assert planned_s(runs) + xen.BOOTS_S <= 3600
    assert len(runs) == 5 * len(xen.cells())


def test_each_way_of_both_experiments_is_there() -> None:
    points = {(cell.way, cell.point) for cell in xen.cells()}
    for setpoint in (10, 20, 60):
        at = Point(UDP, setpoint).words
        assert {(way, at) for way in (FIXED, PI, DEAD_BEAT, OURS)} <= points
    for setpoint in (20, 60):
        both = (Point(UDP, setpoint).words, Point(THIEF, setpoint).words)
        assert {(way, at) for way in (FIXED, DEAD_BEAT, OURS) for at in both} <= points
    assert (NONE, xen.FREE.words) in points
    assert {cell.point for cell in (*xen.cells(), *xen.quick_cells())} <= xen.POINTS.keys()


def test_the_task_has_the_runs_in_their_order() -> None:
    runs = list(xen.EXPERIMENT.runs(quick=False))
    task = json.loads(json.dumps(xen.task(runs)))
    assert [order["name"] for order in task["runs"]] == [one.words for one in runs]
    assert len({order["name"] for order in task["runs"]}) == len(runs)
    assert sorted(task["caps_percent"]) == list(xen.CAPS)
    assert all(isinstance(percent, int) for percent in task["caps_percent"])


@pytest.mark.parametrize(
    ("way", "law", "begin_percent"),
    [
        (FIXED, "", None),
        (PI, "pi", None),
        (DEAD_BEAT, "dead-beat-min3", None),
        (OURS, "default", 0),
    ],
)
def test_a_run_has_its_law_and_the_cap_to_begin_with(
    way: str, law: str, begin_percent: int | None
) -> None:
    order = xen.order(run(way))
    assert (order.law, order.begin_percent) == (law, begin_percent)
    assert order.setpoint_pps == pytest.approx(30.0)
    assert (order.theft, xen.order(run(way, STOLEN_20)).theft) == (0.0, 0.15)
    assert ("shield = false" in order.table) == (way in {PI, DEAD_BEAT})


def test_without_control_nothing_is_capped_or_held() -> None:
    order = xen.order(run(NONE, xen.FREE.words))
    assert (order.law, order.begin_percent, order.setpoint_pps, order.theft) == ("", 0, None, 0.0)


@pytest.mark.parametrize("way", [PI, DEAD_BEAT, OURS])
def test_the_daemon_takes_the_table_and_the_model_of_a_way(way: str, tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    file.write_text(model(HERE, xen.PERIOD_S))
    order = xen.order(run(way))
    lines = order.table.replace(xen.MODEL, str(file))
    config = parse_config(TABLE.format(period_s=xen.PERIOD_S, lines=lines))
    assert plans(config)["gold"].law == order.law


def test_the_map_of_caps_is_the_calibration() -> None:
    steps = [(float(cap), [2.0 * cap, 2.2 * cap]) for cap in (3, 20, 5, 30, 10, 45, 60)]
    found = xen.calibration(steps)
    assert found.pps(100.0) == pytest.approx(xen.OFFERED_PPS)
    assert found.cap_map[0] == pytest.approx((3.0, 6.3))
    assert found.equation.b > 0


@given(
    st.lists(
        st.tuples(st.floats(1, 100), st.lists(st.floats(0.1, 300), min_size=1, max_size=4)),
        min_size=1,
        max_size=6,
        unique_by=lambda step: step[0],
    ),
    st.floats(0.01, 400),
)
def test_dom0_reads_a_map_as_the_host_does(
    steps: list[tuple[float, list[float]]], pps: float
) -> None:
    points = rising([(percent, statistics.fmean(rates)) for percent, rates in steps])
    assume(pps < points[-1][1])
    assume(pps not in {rate for _, rate in points})  # several caps may have that throughput
    expected = Calibration(1.0, points, HERE.equation).fixed_percent(pps)
    assert CapMap(steps).percent_for(pps) == pytest.approx(expected, rel=1e-6)


def test_beyond_a_map_the_largest_cap_is_fixed() -> None:
    assert CapMap([(10, [20.0]), (60, [100.0])]).percent_for(200.0) == 60
    assert CapMap([(3, [0.0]), (10, [20.0])]).percent_for(10.0) == pytest.approx(6.5)


def test_samples_become_values_in_the_papers_unit() -> None:
    found = {one.metric: one.value for one in xen.measured(run(OURS), (27.0, 33.0), HERE)}
    assert found == pytest.approx({ACHIEVED: 20.0, ERROR: 0.0, RMSE: 10.0})
    free = xen.measured(run(NONE, xen.FREE.words), (150.0, 150.0), HERE)
    assert {one.metric: one.value for one in free} == pytest.approx({ACHIEVED: 100.0, RMSE: 0.0})


def test_an_ordinary_evaluation_names_the_command_and_makes_no_run(tmp_path: Path) -> None:
    assert xen.EXPERIMENT in EXPERIMENTS
    assert xen.EXPERIMENT not in OWN
    assert "`make evaluation-xen` makes them" in incomplete(tmp_path, quick=False)["xen-hold"]
    with pytest.raises(ValueError, match="make evaluation-xen"):
        chosen("xen-hold")
    with pytest.raises(RuntimeError, match="another command"):
        xen.EXPERIMENT.bench(None, False)
