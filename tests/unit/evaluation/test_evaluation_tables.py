"""An archive keeps all raw values, and the document's tables are those of its archive."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation.__main__ import archived
from benchmarks.evaluation.archive import Archive, dumps, load, loads
from benchmarks.evaluation.calibration import Calibration, Equation
from benchmarks.evaluation.machine import Machine
from benchmarks.evaluation.plan import Cell, Run
from benchmarks.evaluation.raw import Raw, write
from benchmarks.evaluation.reasons import reason
from benchmarks.evaluation.result import Result, Value
from benchmarks.evaluation.tables import comparison, filled, table, value_of
from benchmarks.evaluation.xtc import hold

DOCS = Path(__file__).parents[3] / "docs"
MACHINE = Machine("cpu", 2, "6.18", "abc")
CALIBRATION = Calibration(250e3, ((5.0, 16e3), (20.0, 64e3)), Equation(0.1, 63.0, 78.0, 1.4, 0.99))


def raw(way: str, repetition: int, pps: float) -> Raw:
    point = "UDP, setpoint 20 kp/s"
    values = (Value(way, point, hold.ACHIEVED, pps), Value(way, point, hold.RTT, 1.0))
    return Raw(Run("xtc-hold", Cell(way, point, 0.0), repetition), 12.5, values, MACHINE)


def result(way: str, metric: str, value: float, half: float | None, paper: float | None) -> Result:
    low, high = (None, None) if half is None else (value - half, value + half)
    experiment = "xtc-hold: UDP, setpoint 20 kp/s"
    return Result("XTC", experiment, way, metric, value, low, high, paper)


def test_an_archive_comes_back_as_it_was() -> None:
    archive = Archive(CALIBRATION, [raw("ours", 0, 19.5), raw("ours", 1, 20.5)])
    assert loads(dumps(archive)) == archive
    assert loads(dumps(Archive(None, []))) == Archive(None, [])


def test_the_results_of_an_archive_are_those_of_its_runs() -> None:
    archive = Archive(CALIBRATION, [raw("ours", 0, 19.5), raw("ours", 1, 20.5)])
    first, *_ = archive.results()["xtc-hold"]
    assert (first.way, first.metric, first.value) == ("ours", hold.ACHIEVED, 20.0)
    assert archive.results()["xtc-six"] == []


def test_the_map_of_caps_is_among_the_results_without_a_run() -> None:
    (first, second) = Archive(CALIBRATION, []).results()["xtc-map"]
    assert (first.experiment, first.value) == ("xtc-map: cap of 5 %", pytest.approx(8.0))
    assert (first.paper_value, second.paper_value) == (16.0, 65.0)
    assert Archive(None, []).results()["xtc-map"] == []


def test_a_table_has_a_row_for_each_metric_and_point_and_a_column_for_each_way() -> None:
    results = [
        result("a", hold.RTT, 1.25, 0.5, 55.0),
        result("a", hold.ACHIEVED, 19.75, None, None),
        result("b", hold.ACHIEVED, 120.4, 2.0, None),
    ]
    assert table(hold.EXPERIMENT, results).splitlines() == [
        "| metric | point | a | b | paper |",
        "| --- | --- | --- | --- | --- |",
        "| achieved, kp/s | UDP, setpoint 20 kp/s | 19.8 | 120 ± 2 | - |",
        "| mean round trip, ms | UDP, setpoint 20 kp/s | 1.25 ± 0.5 | - | 55 |",
    ]


def test_papers_values_that_differ_by_way_are_all_there() -> None:
    results = [result("a", hold.SMALLEST, 6, None, 20.0), result("b", hold.SMALLEST, 6, None, 10.0)]
    assert table(hold.EXPERIMENT, results).splitlines()[-1].endswith("| 6 | 6 | 20 or 10 |")


def test_a_way_that_was_not_measured_has_a_dash() -> None:
    assert value_of(None) == "-"


def test_only_the_places_for_tables_are_filled() -> None:
    document = "before\n<!-- table: xtc-hold -->\nstale\n<!-- end -->\nafter\n"
    found = filled(document, {"xtc-hold": [result("a", hold.RTT, 1.0, None, None)]})
    assert found.startswith("before\n<!-- table: xtc-hold -->\n\n| metric")
    assert found.endswith("|\n\n<!-- end -->\nafter\n")
    assert "stale" not in found
    assert filled(found, {"xtc-hold": []}) == document.replace("stale\n", "")


def test_what_is_better_and_worse_is_listed_by_metric_with_the_reason() -> None:
    results = [
        result("ours", hold.RTT, 8.0, 1.0, 55.0),
        result("ours", hold.SMALLEST, 40.0, None, 6.0),
        result("paper's PI", hold.RTT, 99.0, 1.0, 55.0),
    ]
    at = "UDP, setpoint 20 kp/s"
    why = reason("xtc-hold", hold.SMALLEST)
    assert comparison([hold.EXPERIMENT], {"xtc-hold": results}).splitlines()[2:] == [
        f"| better | `xtc-hold`, ours | mean round trip, ms | {at}: 8 (55) |  |",
        f"| worse | `xtc-hold`, ours | smallest setpoint held, kp/s | {at}: 40 (6) | {why} |",
    ]
    nothing = comparison([hold.EXPERIMENT], {}).splitlines()[2:]
    assert nothing == ["| better | nothing | | | |", "| worse | nothing | | | |"]


def test_a_comparison_has_its_place_in_a_document() -> None:
    found = filled("<!-- compared: XTC -->\nstale\n<!-- end -->\n", {})
    assert found.startswith("<!-- compared: XTC -->\n\n| than the paper")
    assert "stale" not in found


def test_an_archive_keeps_experiments_that_were_not_run_again(tmp_path: Path) -> None:
    old = Archive(CALIBRATION, [raw("ours", 0, 19.5), replaced(raw("all ways", 0, 1.0), "xtc-six")])
    (run,) = [one for one in hold.EXPERIMENT.runs(quick=True) if one.cell.way == "ours"][:1]
    new = replace(raw("ours", 0, 25.0), run=replace(run, cell=replace(run.cell, seconds=0.0)))
    write(tmp_path, new)
    found = archived(tmp_path, old, quick=True)
    assert found.calibration == CALIBRATION
    assert [one.run.experiment for one in found.raws] == ["xtc-hold", "xtc-six"]
    assert found.raws[0].values == new.values


def replaced(made: Raw, experiment: str) -> Raw:
    return replace(made, run=replace(made.run, experiment=experiment))


def test_a_table_of_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(KeyError):
        filled("<!-- table: nothing -->\n<!-- end -->\n", {})


def test_the_documents_tables_are_those_of_its_archive() -> None:
    document = (DOCS / "evaluation.md").read_text()
    archive = load(DOCS / "measured" / "evaluation.jsonl")
    assert filled(document, archive.results()) == document
