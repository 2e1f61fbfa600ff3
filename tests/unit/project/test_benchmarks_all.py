"""The list of all benchmarks: it names what the figures name, and runs go on where one stopped."""

import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import all as every
from benchmarks.all import BENCHMARKS, Benchmark, Outcome, command, earlier, main

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r"-m benchmarks\.((?:xtc|xco|policer|training|zovn)\.\w+(?:\.\w+)*)")
OF_OLDER_TREES = {"xco.gates_compared"}


def test_every_benchmark_that_the_documents_show_is_run() -> None:
    pages = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in NAMED.findall(page)}
    assert named - OF_OLDER_TREES <= {each.module for each in BENCHMARKS}


def test_every_benchmark_is_a_program() -> None:
    for each in BENCHMARKS:
        path = ROOT / "benchmarks" / (each.module.replace(".", "/") + ".py")
        assert "main" in path.read_text(), each.module


def test_commands_differ_so_that_each_is_run_and_resumed_by_itself() -> None:
    full = [command(each, quick=False) for each in BENCHMARKS]
    assert len(full) == len(set(full))


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One benchmark that does not exist, and one that prints its help, in a folder of their own."""
    failing, working = Benchmark("missing"), Benchmark("xtc.laws", "--help", "--help")
    monkeypatch.setattr(every, "BENCHMARKS", (failing, working))
    monkeypatch.setattr(every, "OUTPUT", tmp_path)
    return tmp_path


def test_a_failed_benchmark_does_not_stop_the_others(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["all", "--quick", "--json"])
    assert main() == 1
    results = [each["result"] for each in json.loads(capsys.readouterr().out)]
    assert results == ["failed", "ok"]
    assert "No module named benchmarks.missing" in (two / "missing.txt").read_text()
    assert "usage:" in (two / "xtc.laws_--help.txt").read_text()


def test_resume_runs_what_has_not_succeeded(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = Outcome("-m benchmarks.xtc.laws --help", 12.0, "ok")
    (two / "full.json").write_text(json.dumps([asdict(replace(done, result="failed"))]))
    assert earlier(two / "full.json") == {}
    monkeypatch.setattr(sys, "argv", ["all", "--resume"])
    (two / "full.json").write_text(json.dumps([asdict(done)]))
    assert main() == 1
    assert earlier(two / "full.json") == {done.command: done}, "not run again"


def test_a_missed_goal_is_not_a_failure(two: Path) -> None:
    ends = "raise SystemExit(1)", "1/0", "raise SystemExit(2)", "pass"
    judged = [every.run(f"-c '{code}'", judges=True).result for code in ends]
    assert judged == ["goal missed", "failed", "failed", "ok"]
    assert every.run("-c 'raise SystemExit(1)'", judges=False).result == "failed"
    assert two.exists()
