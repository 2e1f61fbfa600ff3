"""Execution of a plan: it makes what is missing, and continues where an experiment fails."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.execute import execute
from benchmarks.evaluation.plan import Bench, Cell, Experiment, Measure, Metric, Run
from benchmarks.evaluation.raw import read_all
from benchmarks.evaluation.result import Value
from lab.errors import ProgramError
from xtc.errors import Refused

CELLS = (Cell("a", "", 1.0), Cell("b", "", 1.0))


def experiment(name: str, measure: Callable[[Run], list[Value]]) -> Experiment:
    @contextmanager
    def bench(calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
        assert calibration is None
        assert quick
        yield measure

    opened: Bench = bench
    return Experiment(name, "P", "t", "f", (Metric("m"),), CELLS, CELLS, opened, {})


ERROR = ProgramError("flood", "it ended", "")


def counting(
    made: list[str], failing: str = "", error: Exception = ERROR
) -> Callable[[Run], list[Value]]:
    def measure(run: Run) -> list[Value]:
        made.append(run.cell.way)
        if run.cell.way == failing:
            raise error
        return [Value(run.cell.way, "", "m", 1.0)]

    return measure


def test_all_runs_are_made_once_and_then_no_more(tmp_path: Path) -> None:
    made: list[str] = []
    one = experiment("one", counting(made))
    said: list[str] = []
    for _ in range(2):
        assert execute([one], None, tmp_path, quick=True, say=said.append) == []
    assert made == ["a", "b"]
    assert len(read_all(tmp_path, one.runs(quick=True))) == 2
    assert said[0].startswith("  0%, 0:00:02 left: one: a")


@pytest.mark.parametrize("error", [ERROR, KeyError("way"), Refused("closed", "vr", "no", "wait")])
def test_an_experiment_that_fails_does_not_stop_the_others(
    tmp_path: Path, error: Exception
) -> None:
    made: list[str] = []
    failing = experiment("failing", counting(made, "b", error))
    other = experiment("other", counting(made))
    said: list[str] = []
    failed = execute([failing, other], None, tmp_path, quick=True, say=said.append)
    assert failed == ["failing"]
    assert made == ["a", "b", "a", "b"]
    assert any(f"failing failed: {type(error).__name__}" in line for line in said)
    assert said[-1].startswith(" 67%"), "the plan is shorter by what failed"


def test_what_failed_is_made_again_by_the_next_execution(tmp_path: Path) -> None:
    first: list[str] = []
    broken = experiment("one", counting(first, failing="b"))
    execute([broken], None, tmp_path, quick=True, say=first.append)
    second: list[str] = []
    assert (
        execute([experiment("one", counting(second))], None, tmp_path, quick=True, say=first.append)
        == []
    )
    assert second == ["b"]
