"""The report: one page that loads nothing, with every chapter and both columns."""

import re

import pytest

from benchmarks.evaluation.catalogue import EXPERIMENTS, PAPERS
from benchmarks.evaluation.chapter import comparison, number
from benchmarks.evaluation.machine import Machine, commit_of, cpu_of, this_machine
from benchmarks.evaluation.reasons import REASONS, UNKNOWN
from benchmarks.evaluation.report import Evaluation, page
from benchmarks.evaluation.result import Result
from benchmarks.evaluation.xtc.hold import EXPERIMENT as HOLD
from benchmarks.evaluation.xtc.hold import RTT

POINT = "xtc-hold: UDP, setpoint 20 kp/s"
MACHINE = Machine("A <CPU>", 2, "6.1", "abc")


def measured(way: str, value: float, paper: float | None = 55.0) -> Result:
    return Result("XTC", POINT, way, RTT, value, value - 1, value + 1, paper)


@pytest.fixture(scope="module")
def shown() -> str:
    results = {HOLD.name: [measured("ours", 5.0), measured("fixed cap", 60.0, None)]}
    missing = {"xtc-other": "3 of 5 runs are missing"}
    return page(
        Evaluation({MACHINE: ["xtc-hold", "xtc-six"]}, True, None, EXPERIMENTS, results, missing)
    )


def test_the_page_has_its_head_and_every_chapter(shown: str) -> None:
    assert "<th>xtc-hold, xtc-six</th><td>A &lt;CPU&gt;, 2 cores" in shown
    assert all(f"<h2>{paper}</h2>" in shown for paper in PAPERS)
    assert "3 of 5 runs are missing" in shown
    assert "A quick run" in shown


def test_the_page_loads_nothing(shown: str) -> None:
    addresses = re.findall(r'(?:src|href)="([^"]*)"', shown)
    assert all(address.startswith("#") for address in addresses)
    assert "<script" not in shown
    assert "@import" not in shown


def test_plots_are_inline(shown: str) -> None:
    assert shown.count("<svg") == 1
    assert "<?xml" not in shown


def test_values_are_better_or_worse_than_the_paper() -> None:
    better = comparison([HOLD], {HOLD.name: [measured("ours", 5.0)]})
    worse = comparison([HOLD], {HOLD.name: [measured("ours", 80.0)]})
    assert better.index("<li>Nothing") > better.index("Worse than")
    assert worse.index("<li>Nothing") < worse.index("Worse than")
    assert RTT in worse


def test_the_papers_own_laws_are_not_compared() -> None:
    found = comparison([HOLD], {HOLD.name: [measured("paper's PI", 5.0)]})
    assert found.count("<li>Nothing") == 2


def test_reasons_are_for_metrics_that_exist() -> None:
    known = {(one.name, metric.name) for one in EXPERIMENTS for metric in one.metrics}
    assert set(REASONS) <= known
    assert UNKNOWN


def test_numbers_have_three_digits() -> None:
    texts = [number(value) for value in (0.01234, 5.678, 98.76, 1234.5, None)]
    assert texts == ["0.0123", "5.68", "98.8", "1234", ""]


def test_the_machine_is_described() -> None:
    assert cpu_of("processor\t: 0\nmodel name\t: EPYC 9\n") == "EPYC 9"
    assert cpu_of("") == ""
    assert commit_of("abc", " M file") == "abc, with changes"
    assert commit_of("", "") == "unknown"
    assert this_machine().cores >= 1
