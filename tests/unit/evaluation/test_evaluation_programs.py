"""Experiments that are benchmarks: their command lines are read, their rows become values."""

import json
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluation import catalogue
from benchmarks.evaluation.plan import Cell, Run
from benchmarks.evaluation.programs import gcc, program, simulated, xco, zovn
from benchmarks.evaluation.programs.program import Program, kept
from benchmarks.evaluation.programs.tagged import MISSED, NONE, OURS, PUBLISHED, TAGGED
from benchmarks.evaluation.result import Result, Value
from benchmarks.evaluation.xtc import beside
from benchmarks.policer import sharing
from benchmarks.xco import gcc_lab
from benchmarks.xco.dumbbell import Row
from benchmarks.xco.runs import options

SEEN = {"wire_bps": 90e6, "drops": 0, "timeouts": 0, "cpu_idle": 0.5}
RUN = Run("x", Cell("all ways", "", 1.0), 0)


def programs() -> list[Program]:
    """Return every program that an experiment calls."""
    benches = [one.bench for one in catalogue.EXPERIMENTS]
    owners = [getattr(bench, "__self__", None) for bench in benches]
    return [owner for owner in owners if isinstance(owner, Program)]


def found(values: Any) -> dict[tuple[str, str, str], float]:
    return {(one.way, one.point, one.metric): one.value for one in values}


def test_most_experiments_call_programs_that_exist() -> None:
    assert len(programs()) >= 12
    for one in programs():
        assert hasattr(import_module(f"benchmarks.{one.module}"), "main")
        assert one.command(quick=True)[-1] == "--json"


@pytest.mark.parametrize("text", [xco.ARGUMENTS, xco.QUICK_ARGUMENTS])
def test_the_options_of_the_xco_benchmarks_are_theirs(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.xco.runs.require", lambda _parser: None)
    chosen = options("", 2.5, "100Mbps", shlex.split(text))
    assert chosen.short
    assert set(chosen.ways) <= {"uncoordinated", "rate", "timeslice"}


def test_the_options_of_the_lab_of_sdn_gcc_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gcc_lab, "require", lambda _parser: None)
    for one in programs():
        if one.module == "xco.gcc_lab":
            for words in (one.arguments, one.quick_arguments):
                chosen = gcc_lab.options(shlex.split(words))
                assert set(chosen.ways) <= gcc.WAYS.keys()
                assert chosen.senders == [3]


def test_a_program_that_fails_shows_its_errors(tmp_path: Path) -> None:
    del tmp_path
    failing = Program("xtc.laws", "--no-such-option", "--no-such-option", lambda _: ())
    with failing.bench(None, True) as measure, pytest.raises(RuntimeError, match="no-such-option"):
        measure(RUN)


def test_a_program_is_called_and_its_output_read(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = json.dumps({"rows": [1.5]})
    monkeypatch.setattr(
        Program, "command", lambda _self, **_: [sys.executable, "-c", f"print({printed!r})"]
    )
    one = Program("any", "", "", lambda rows: [Value("w", "p", "m", rows["rows"][0])])
    with one.bench(None, False) as measure:
        assert measure(RUN) == [Value("w", "p", "m", 1.5)]


def test_what_was_not_measured_is_left_out() -> None:
    assert list(kept([("w", "p", "m", None), ("w", "p", "n", 0.0)])) == [Value("w", "p", "n", 0.0)]
    assert program.WAY


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("xco-reads", {"targets": 8, "goodput_bps": 30e6}, {xco.GOODPUT: 30.0}),
        ("xco-incast", {"servers": 8, "goodput_bps": 30e6}, {xco.GOODPUT: 30.0}),
        (
            "xco-mix",
            {"udp_senders": 2, "tcp_bps": 30e6, "udp_bps": 60e6, "unequal": 0.1},
            {xco.GOODPUT: 90.0, xco.UNEQUAL: 10.0},
        ),
        (
            "xco-short",
            {"sequences": 400, "long_bps": 43e6, "short_bps": 10e6},
            {xco.LONG: 43.0, xco.GOODPUT: 53.0},
        ),
        ("xco-ping", {"pinger": "busy", "max_ms": 1.5}, {xco.LONGEST: 1.5}),
        ("xco-conservation", {"goodput_bps": 1472 / 1514 * 80e6}, {xco.USED: 80.0}),
        ("xco-migration", {"senders": 1, "kind": "UDP", "seconds": None}, {xco.USED: 90.0}),
        (
            "xco-responsiveness",
            {"silence_p50_ms": 4.0, "first_p50_ms": 1.0},
            {xco.SILENCE: 4.0, xco.FIRST: 1.0},
        ),
    ],
)
def test_rows_of_xco_become_values(
    name: str, row: dict[str, Any], expected: dict[str, float]
) -> None:
    (experiment,) = catalogue.chosen(name)
    (owner,) = [one for one in programs() if f"xco-{one.module.removeprefix('xco.')}" == name]
    rows = [row | {"way": "timeslice", "seen": SEEN}]
    values = list(owner.values({"bottleneck_bps": 100_000_000, "rows": rows}))
    assert {one.metric: one.value for one in values} == pytest.approx(expected)
    assert {one.way for one in values} == {xco.SLICES}
    assert {one.metric for one in values} <= {metric.name for metric in experiment.metrics}


def test_rows_of_the_lab_of_sdn_gcc_become_values() -> None:
    row = {
        "case": {"beside": 3, "others": "udp"},
        "way": "gcc-published",
        "figures": {"of_ideal": 0.9, "jain": 0.99},
    }
    assert found(gcc.values({"rows": [row]}))[PUBLISHED, "3 udp", TAGGED] == 90.0


def test_every_figure_that_is_simulated_has_the_papers_number() -> None:
    for one in (simulated.SDN_GCC, simulated.HYGENICC):
        numbers = one.published()
        for case, given, paper in one.tasks(quick=False):
            assert paper is not None
            point = simulated.point_of(simulated.figure_of(case), given["competitors"])
            assert any(
                at == point and v == pytest.approx(paper * 100) for (_, at, _), v in numbers.items()
            )


def test_a_quick_simulation_is_a_part_of_the_whole() -> None:
    whole = {case for case, _, _ in simulated.SDN_GCC.tasks(quick=False)}
    quick = {case for case, _, _ in simulated.SDN_GCC.tasks(quick=True)}
    assert quick < whole
    assert "figure 4a" not in whole


def test_a_simulated_row_becomes_a_value() -> None:
    row = Row("figure 4b", "gcc", "fair", "udp", 4, 400.0, 0.97, 0.97, 0.99, 0.99, 0.0, 0.1)
    values = found(simulated.values_of(row))
    assert values[OURS, "figure 4b, next to udp", TAGGED] == 97.0
    assert values[OURS, "figure 4b, next to udp", MISSED] == pytest.approx(3.0)


def test_the_routers_beside_each_other_become_values() -> None:
    reported = {
        "aggregate_of_uncontrolled": dict.fromkeys(sharing.WAYS, 0.68),
        "throughput_of_setpoint": {way: {"tcp": 0.9, "udp": 1.0} for way in sharing.WAYS[1:]},
    }
    values = found(beside.values(reported))
    assert values[OURS, beside.POINT, beside.AGGREGATE] == pytest.approx(68.0)
    assert values[OURS, beside.POINT, beside.TCP] == 90.0
    assert (NONE, beside.POINT, beside.TCP) not in values


def test_a_point_of_zovn_without_completed_queries_has_no_times() -> None:
    row = {"mode": "bridge", "workers": 8, "size_bytes": 2000, "queries": 0, "dropped": 7}
    nothing = {"mean_ms": None, "p99_ms": None}
    values = found(zovn.values([row | nothing | {"tail_probes": True}]))
    assert list(values.values()) == [7.0]


def test_points_of_zovn_tell_whether_tcp_sends_tail_loss_probes() -> None:
    row = {"mode": "zovn", "workers": 8, "size_bytes": 2000, "queries": 1, "dropped": 0}
    both = [row | {"mean_ms": 1.0, "p99_ms": 2.0, "tail_probes": one} for one in (True, False)]
    points = dict.fromkeys(value.point for value in zovn.values(both))
    assert list(points) == ["8 workers, 2 KB", "8 workers, 2 KB, no tail loss probes"]


def test_what_an_overloaded_receiver_lost_and_got_becomes_values() -> None:
    row = {"way": "lossy", "senders": 8, "bytes": 64, "lost_percent": 95.0}
    row |= {"used": {"median": 0.98}, "fairness": {"median": 0.75}}
    values = found(zovn.overload({"rows": [row]}))
    assert {key[:2] for key in values} == {(zovn.LOSSY, "8 senders, 64 bytes")}
    assert list(values.values()) == [95.0, 98.0, 0.75]


def test_zovn_is_compared_with_itself_with_drops_at_its_best_point() -> None:
    def mean(way: str, point: str, value: float) -> Result:
        return Result("zOVN", f"zovn-fct: {point}", way, zovn.MEAN, value, None, None, None)

    means = [mean(zovn.LOSSY, "a", 30.0), mean(OURS, "a", 3.0), mean(zovn.LOSSY, "b", 4.0)]
    (best,) = zovn.derived([*means, mean(OURS, "b", 2.0)])
    assert (best.value, best.paper_value) == (10.0, 19.1)
    assert list(zovn.derived(means[:1])) == [], "nothing to compare with"
