"""Lines that the pure cores' own tests reach are noted as coverage.py notes them, and counted."""

import subprocess
import sys
from pathlib import Path

import pytest
from coverage import Coverage

from scripts import coverage
from scripts.reached import Reached

ROOT = Path(__file__).parents[3]
SOURCE = '''"""A module."""

from __future__ import annotations

import functools
from enum import Enum


class Kind(Enum):
    """A kind."""

    ONE = 1
    TWO = 2

    @property
    def other(self) -> Kind:
        """The other one."""
        return Kind.TWO if self is Kind.ONE else Kind.ONE


@functools.cache
def chosen(
    number: int,
) -> str:
    """Return a word."""
    if number == 0:
        return "none"
    elif number == 1:
        word = "one"
    else:
        word = (
            "many"
        )
    for each in range(number):
        if each > 5:
            break
    else:
        word += "!"
    while False:
        word = ""
    try:
        1 / number
    except ZeroDivisionError:
        return ""
    finally:
        word = word.strip()
    match number:
        case 1:
            return word
        case 3:
            return word * 2
    with open("/dev/null") as file:
        file.read()

    def inner():
        nonlocal word
        word = "inner"
        yield word

    return lambda: list(inner())


async def never() -> None:
    await never()
'''
RUN = "made = chosen(1), chosen(7), Kind.ONE.other\n"
CORE = """
def reached():
    return 1

def reached_by_another():
    return 2

def reached_by_none():
    return 3
"""
OWN = """
from core import reached

def test_it(): assert reached() == 1
"""
OTHER = """
import core

def test_it(): assert core.reached_by_another() == 2
"""
CONFTEST = """
from pathlib import Path
import scripts.coverage

scripts.coverage.ROOT = Path(__file__).parent
scripts.coverage.modules = lambda _: {"core.py": ["test_own.py"]}
pytest_plugins = ["support.measured"]
"""


def test_the_same_lines_are_noted_as_by_tracing(tmp_path: Path) -> None:
    (tmp_path / "sample_core.py").write_text(SOURCE + RUN)
    file = str(tmp_path / "sample_core.py")
    traced = Coverage(data_file=None, config_file=False, include=[file])
    with traced.collect():
        exec(compile(SOURCE + RUN, file, "exec", dont_inherit=True), {"__name__": "sample"})
    _, statements, _, missing, _ = traced.analysis2(file)
    finder = Reached(tmp_path, ["sample_core.py"])
    finder.install()
    try:
        __import__("sample_core")
    finally:
        sys.meta_path.remove(finder)
        del sys.modules["sample_core"]
    noted = set(finder.lines[file]) & set(statements)
    assert noted == set(statements) - set(missing)
    assert missing


def test_what_is_forgotten_does_not_count_but_loading_does(tmp_path: Path) -> None:
    (tmp_path / "another_core.py").write_text(CORE)
    finder = Reached(tmp_path, ["another_core.py"])
    finder.install()
    try:
        core = __import__("another_core")
    finally:
        sys.meta_path.remove(finder)
        del sys.modules["another_core"]
    core.reached()
    finder.forget()
    core.reached_by_another()
    finder.count()
    assert list(finder.lines.values()) == [[2, 5, 6, 8]]


@pytest.mark.parametrize("processes", ["0", "2"])
def test_lines_count_where_the_own_tests_reach_them(
    tmp_path: Path, processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"core": CORE, "test_own": OWN, "test_other": OTHER, "conftest": CONFTEST}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    options = [f"--rootdir={tmp_path}", "-p", "no:cacheprovider", "-p", "xdist"]
    options += ["-n", processes, "--dist", "loadfile"]
    path = f"{ROOT}:{ROOT / 'tests'}"
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        env={
            "PYTHONPATH": path,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            coverage.FOLDER: str(tmp_path),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    monkeypatch.setattr(coverage, "ROOT", tmp_path)
    monkeypatch.setattr(coverage, "modules", lambda _: {"core.py": ["test_own.py"]})
    monkeypatch.chdir(tmp_path)
    (row,) = [line for line in coverage.report(tmp_path).splitlines() if line.startswith("core.py")]
    assert row.split() == ["core.py", "6", "2", "67%"]


def test_the_command_runs_each_own_test_and_measures_each_core() -> None:
    assert {str(file) for file in coverage.own_tests()} <= set(coverage.command())
    assert "xtc/control/law.py" in coverage.files()
