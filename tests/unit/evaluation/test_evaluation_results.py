"""Results of the evaluation: intervals, comparison with the paper, raw files, results.json."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.intervals import interval
from benchmarks.evaluation.machine import Machine
from benchmarks.evaluation.plan import Cell, Run, raw_file
from benchmarks.evaluation.raw import Raw, machines, read, results, write
from benchmarks.evaluation.report import as_json
from benchmarks.evaluation.result import Result, Value, judged
from benchmarks.evaluation.xtc import hold

FIELDS = ["paper", "experiment", "way", "metric", "value", "low", "high", "paper_value"]
MACHINE = Machine("cpu", 2, "6.18", "abc")
numbers = st.floats(-1e6, 1e6)


def result(value: float, paper: float | None, spread: float | None = None) -> Result:
    low, high = (None, None) if spread is None else (value - spread, value + spread)
    return Result("XTC", "x: p", "ours", "m", value, low, high, paper)


def test_the_interval_of_five_values_is_students() -> None:
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776 * math.sqrt(2.5 / 5)
    assert found.mean == 3.0
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), abs=1e-3)


def test_one_value_has_no_interval_and_none_is_refused() -> None:
    assert interval([7.0]) == interval([7.0]).__class__(7.0, None, None)
    with pytest.raises(ValueError, match="at least one value"):
        interval([])


@given(st.lists(numbers, min_size=2, max_size=20))
def test_an_interval_holds_its_mean(values: list[float]) -> None:
    found = interval(values)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.mean <= found.high


@given(numbers, st.floats(0, 1e3), numbers)
def test_better_one_way_is_worse_the_other(value: float, spread: float, paper: float) -> None:
    one = result(value, paper, spread)
    opposite = {"better": "worse", "worse": "better", "equal": "equal"}
    higher, lower = judged(one, "higher"), judged(one, "lower")
    assert higher is not None
    assert lower == opposite[higher]


def test_a_value_is_better_only_with_its_whole_interval() -> None:
    assert judged(result(10.0, 9.0, 0.5), "higher") == "better"
    assert judged(result(10.0, 9.0, 1.5), "higher") == "equal"
    assert judged(result(10.0, 9.0), "lower") == "worse"
    assert judged(result(10.0, None), "lower") is None


def test_a_result_has_exactly_the_fields_of_the_format() -> None:
    assert [one.name for one in fields(Result)] == FIELDS
    (found,) = json.loads(as_json([result(1.0, None)]))
    assert list(found) == FIELDS


def test_raw_values_are_read_back_and_a_missing_run_is_none(tmp_path: Path) -> None:
    run = Run("xtc-hold", Cell("ours", "UDP, setpoint 20 kp/s", 1.0), 2)
    assert read(tmp_path, run) is None
    raw = Raw(run, 1.5, (Value("ours", "UDP", "m", 0.25),), MACHINE)
    write(tmp_path, raw)
    assert read(tmp_path, run) == raw
    assert not list(tmp_path.rglob("*.part"))


def test_each_machine_has_the_experiments_that_it_made() -> None:
    other = replace(MACHINE, cpu="another")
    made = [("a", MACHINE), ("b", other), ("a", MACHINE), ("c", MACHINE), ("a", other)]
    raws = [Raw(Run(name, Cell("", "", 1.0), 0), 1.0, (), one) for name, one in made]
    assert machines(raws) == {MACHINE: ["a", "c"], other: ["b", "a"]}


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), unique=True, max_size=9))
def test_different_runs_have_different_files(named: list[tuple[str, str]]) -> None:
    runs = [Run("e", Cell(way, point, 1.0), n) for way, point in named for n in (0, 1)]
    separable = [run for run in runs if " " not in run.cell.way + run.cell.point]
    files = {raw_file(Path(), run) for run in separable}
    assert len(files) == len(separable)


def test_repetitions_of_one_metric_become_one_result() -> None:
    experiment = hold.EXPERIMENT
    cell = experiment.cells[1]
    metric = experiment.metrics[0].name
    raws = [
        Raw(Run(experiment.name, cell, n), 1.0, (Value(cell.way, cell.point, metric, v),), MACHINE)
        for n, v in enumerate((1.0, 2.0, 3.0))
    ]
    (found,) = results(experiment, raws)
    assert (found.value, found.way) == (2.0, cell.way)
    assert found.experiment == f"{experiment.name}: {cell.point}"
    assert found.low is not None
    assert found.low < 2.0
