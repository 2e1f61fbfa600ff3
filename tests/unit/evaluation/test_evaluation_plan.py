"""The plan of the evaluation: its time, its order, what is left, and every experiment's cells."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.__main__ import forget, options, plan, raw_folder
from benchmarks.evaluation.catalogue import EXPERIMENTS, OWN, chosen
from benchmarks.evaluation.plan import (
    QUICK_S,
    REPETITIONS,
    WHOLE_S,
    Cell,
    Experiment,
    Run,
    missing,
    planned_s,
    raw_file,
    runs_of,
)
from benchmarks.evaluation.progress import Progress, clock
from benchmarks.evaluation.xtc import calibrate, cap_map

every = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)


def test_the_whole_evaluation_takes_two_hours_and_the_quick_one_ten_minutes() -> None:
    for quick, limit in ((False, WHOLE_S), (True, QUICK_S)):
        runs = planned_s(runs_of(OWN, quick=quick))
        assert runs + calibrate.planned_s(quick=quick) <= limit


def test_measurements_have_at_least_five_repetitions() -> None:
    assert REPETITIONS >= 5
    simulated = {one.name for one in EXPERIMENTS if one.repetitions < REPETITIONS}
    assert all("simulated" in name for name in simulated)


def test_names_are_unique() -> None:
    names = [one.name for one in EXPERIMENTS]
    assert len(names) == len(set(names))


@every
def test_the_cells_of_an_experiment_are_unique_and_have_a_time(experiment: Experiment) -> None:
    for cells in (experiment.cells, experiment.quick_cells):
        assert cells or experiment is cap_map.EXPERIMENT
        assert len({(one.way, one.point) for one in cells}) == len(cells)
        assert all(one.seconds > 0 for one in cells)


@every
def test_a_value_of_the_paper_belongs_to_a_metric(experiment: Experiment) -> None:
    metrics = {one.name for one in experiment.metrics}
    assert {metric for _, _, metric in experiment.published} <= metrics


@every
def test_ways_alternate_within_a_repetition(experiment: Experiment) -> None:
    runs = list(experiment.runs(quick=False))
    repetitions = [run.repetition for run in runs]
    assert repetitions == sorted(repetitions)
    cells = [run.cell for run in runs if run.repetition == 0]
    assert tuple(cells) == experiment.cells


def test_runs_with_a_raw_file_are_not_missing(tmp_path: Path) -> None:
    runs = runs_of(EXPERIMENTS, quick=True)
    assert missing(runs, tmp_path) == runs
    path = raw_file(tmp_path, runs[0])
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert missing(runs, tmp_path) == runs[1:]


def test_every_run_has_its_own_raw_file() -> None:
    runs = runs_of(EXPERIMENTS, quick=False)
    assert len({raw_file(Path(), run) for run in runs}) == len(runs)


def test_an_experiment_is_chosen_by_the_begin_of_its_name() -> None:
    assert chosen(None) == OWN
    assert [one.name for one in chosen("xtc-hold")] == ["xtc-hold"]
    with pytest.raises(ValueError, match="xtc-hold"):
        chosen("nothing")


def test_the_plan_names_every_experiment() -> None:
    text = plan(EXPERIMENTS, quick=False)
    assert all(one.name in text for one in EXPERIMENTS)


def test_quick_values_never_mix_with_others() -> None:
    output = options([]).output
    assert raw_folder(output, quick=True) != raw_folder(output, quick=False)


def test_a_run_by_another_method_is_missing(tmp_path: Path) -> None:
    before, now = (Run("one", Cell("a", "p", 1.0), 0, method) for method in ("", "longer"))
    path = raw_file(tmp_path, before)
    path.parent.mkdir(parents=True)
    path.touch()
    assert missing([before, now], tmp_path) == [now]


def test_the_time_left_follows_from_how_long_runs_took() -> None:
    begun = Progress(100.0)
    assert begun.left_s == 100.0
    slow = begun.after(20.0, 40.0)
    assert slow.left_s == 160.0
    assert slow.words == " 20%, 0:02:40 left"
    assert Progress(0.0).share == 1.0


@given(st.lists(st.floats(0.1, 100), min_size=1), st.floats(0.1, 10))
def test_no_time_is_left_at_the_end(seconds: list[float], slower: float) -> None:
    progress = Progress(sum(seconds))
    for one in seconds:
        progress = progress.after(one, one * slower)
    assert progress.left_s == pytest.approx(0.0, abs=1e-6 * slower * sum(seconds))


def test_a_duration_is_shown_as_a_clock_does() -> None:
    assert clock(3725.4) == "1:02:05"


def test_only_a_whole_evaluation_forgets_the_calibration(tmp_path: Path) -> None:
    known = tmp_path / "calibration.json"
    known.write_text("{}")
    for one in EXPERIMENTS[:2]:
        (tmp_path / one.name).mkdir()
    forget(EXPERIMENTS[:1], tmp_path)
    assert known.exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [EXPERIMENTS[1].name]
    forget(OWN, tmp_path)
    assert not list(tmp_path.iterdir())
