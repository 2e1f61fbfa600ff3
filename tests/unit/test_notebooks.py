"""The notebooks run as they are, say what their text promises, and keep to the percent format."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from training.data import read_csv
from training.fit import fit

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
LONGEST_CELL = 30
"""Lines of code; what needs more belongs into a package."""
SAID = {
    "identification": (
        "refused: ",
        "steady samples alone give b/(1 - a)",
        "90.10",
        "80.4 to 99.8",
        "0.9828            0.9899",
        "1.38998",
        "73.09",
    ),
    "design": (
        "-1.747    11.311    -1.747 and 11.311",
        "1.452    14.419    1.452 and 14.419",
        "radius 0.449",
        "bears 4.43 times the gain, phase margin 58.3 degrees",
        "bears 2.00 times the gain, phase margin 60.0 degrees",
        "0.56 to 1.79 times",
    ),
    "validation": ("held from", "fixed cap", "foretold"),
}


def cells(path: Path) -> list[tuple[str, list[str]]]:
    """Return the head and the lines of each cell."""
    found: list[tuple[str, list[str]]] = []
    for line in path.read_text().splitlines():
        if line.startswith("# %%"):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return found


def ran(*arguments: str) -> str:
    """Run Python in the notebooks' folder; return what it prints."""
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=FOLDER,
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", SAID)
def test_a_notebook_runs_and_says_what_it_promises(name: str) -> None:
    output = ran(f"{name}.py")
    assert [words for words in SAID[name] if words not in output] == []


def test_without_a_lab_the_validation_says_so_and_uses_the_recorded_sweep() -> None:
    unprivileged = "import os, runpy; os.geteuid = lambda: 1; runpy.run_path('validation.py')"
    output = ran("-c", unprivileged)
    assert "no lab here (Root privileges are missing" in output
    assert "foretold: cap" in output
    assert "fact" not in output


def test_every_notebook_is_run_and_listed() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(SAID)
    readme = (FOLDER / "README.md").read_text()
    assert [path.name for path in NOTEBOOKS if f"]({path.name})" not in readme] == []
    assert list(FOLDER.rglob("*.ipynb")) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_text_and_few_lines_of_code(path: Path) -> None:
    found = cells(path)
    assert found[0][0].endswith("[markdown]")
    for head, lines in found:
        if head.endswith("[markdown]"):
            assert all(line.startswith("#") or not line for line in lines), head
        else:
            assert sum(bool(line) for line in lines) <= LONGEST_CELL, lines[:3]
    texts = sum(head.endswith("[markdown]") for head, _ in found)
    assert texts >= 5


def test_the_recorded_sweep_supports_what_the_notebooks_say_of_it() -> None:
    recording = read_csv(FOLDER / "data" / "lab-user-space.csv")
    found = fit(recording)
    assert recording.metadata.offered_pps is not None
    assert found.shapes.chosen.r_squared >= 0.99
    assert found.held_out_error is not None
    assert found.held_out_error <= 0.05
    assert recording.samples[-1].at <= 300
    assert (FOLDER / "data" / "README.md").read_text().count(recording.metadata.cpu)
