"""Phases of `make test`: every file is in one of them, and outcomes are added up."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import phases
from scripts.phases import Outcome

ROOT = Path(__file__).parents[3]
FOLDERS = ("integration", "property", "unit")
COUNTS = dict.fromkeys(phases.COUNTS, 0) | {"passed": 2}
REST = {"failures": [], "not_judged": [], "longest_stall_s": 0.1, "seconds": 1.0}

OUTCOMES = """
import pytest
from support.inconclusive import inconclusive

def test_judged(): pass
def test_not_judged(): inconclusive("too busy")
def test_skipped(): pytest.skip("lacking")
"""


def outcome(name: str, code: int = 0, **counts: Any) -> Outcome:
    return Outcome(name, code, COUNTS | REST | counts)


def test_each_file_is_in_one_phase() -> None:
    rates, others = (set(phase.places) for phase in phases.phases())
    assert not rates & others
    tests = ROOT / "tests"
    files = {str(file) for name in FOLDERS for file in (tests / name).rglob("test_*.py")}
    assert rates | others == files | {str(tests / "system")}


def test_every_name_of_a_rate_test_finds_a_file() -> None:
    for name in phases.RATES:
        assert list(phases.INTEGRATION.rglob(f"test_{name}.py")), name


def test_every_name_of_a_slow_test_finds_one_file() -> None:
    _, others = (phase.places for phase in phases.phases())
    for name in (*phases.SLOW_BESIDE, *phases.SLOW_ALONE):
        assert sum(place.endswith(f"/test_{name}.py") for place in others) == 1, name


def test_what_is_slow_begins_and_what_waits_is_spread_over_what_computes() -> None:
    files = [Path(f"test_{name}.py") for name in "abcdef"]
    assert phases.ordered("fb", files) == [files[place] for place in (5, 1, 0, 2, 3, 4)]
    few, many = files[:2], files[2:]
    assert phases.woven(few, many) == [files[place] for place in (0, 2, 3, 1, 4, 5)]


def test_a_failed_phase_is_named_with_its_tests() -> None:
    said = phases.lines(outcome("rates", 1, failed=1, failures=["a::b"], not_judged=["c: busy"]))
    assert said[0].startswith("rates: failed (exit code 1): 2 passed, 1 failed in 1 s")
    assert said[1:] == ["  FAILED a::b", "  INCONCLUSIVE c: busy"]


def test_a_phase_that_ended_early_is_named() -> None:
    assert phases.lines(Outcome("rates", 4)) == ["rates: pytest ended early with exit code 4"]


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 0), 0), ((1, 0), 1), ((-9, 0), 1), ((0, -9), 1), ((-9, -9), 1)]
)
def test_a_phase_that_failed_or_was_killed_fails_the_run(
    codes: tuple[int, int], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = iter(codes)
    monkeypatch.setattr(phases, "run", lambda phase, _: outcome(phase.name, next(ended)))
    monkeypatch.setattr(sys, "argv", ["phases"])
    assert phases.main() == code


def test_the_closing_line_adds_all_phases_up() -> None:
    both = [outcome("a", 1, failed=1, error=2, skipped=1), outcome("b", inconclusive=3)]
    assert phases.total(both) == "4 passed, 3 failed, 4 skipped"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-q"], 1),
        (["-v", "--inconclusive-budget", "1"], 0),
        (
            [
                "-p",
                "xdist",
                "-n",
                "1",
                "--junitxml=junit.xml",
                "--inconclusive-budget",
                "1",
                "--fail-on-skip",
            ],
            1,
        ),
    ],
)
def test_a_run_fails_over_its_budget_and_where_skips_are_not_allowed(
    tmp_path: Path, options: list[str], code: int
) -> None:
    (tmp_path / "test_outcomes.py").write_text(OUTCOMES)
    (tmp_path / "conftest.py").write_text(
        'pytest_plugins = ["support.inconclusive", "support.skips", "support.summary"]\n'
    )
    summary = tmp_path / "summary.json"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(
        [*command, f"--rootdir={tmp_path}", "--summary", str(summary), *options],
        env={"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stdout
    counts = json.loads(summary.read_text())
    found = [counts[name] for name in ("passed", "failed", "skipped", "inconclusive")]
    assert found == [1, 0, 1, 1]
    assert counts["not_judged"] == ["test_outcomes.py::test_not_judged: too busy"]
