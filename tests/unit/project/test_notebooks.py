"""The notebooks are text that Jupyter opens as it is, and keep to few lines of code a cell."""

import subprocess
import sys
from pathlib import Path

import jupytext
import pytest

from training.fit.fit import fit
from training.fit.verdict import verdict_on
from training.recording.recording import read_csv

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
LONGEST_CELL = 30
"""Lines of code; what needs more belongs into a package."""
HEADER = 16
"""Lines at the top of a notebook that are Jupyter's."""

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@each_notebook
def test_a_notebook_comes_back_from_jupyter_as_it_was(path: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened.ipynb"
    jupytext.write(jupytext.read(path), opened)
    notebook = jupytext.read(opened)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert notebook.metadata["jupytext"]["formats"] == "ipynb,py:percent"
    assert jupytext.writes(notebook, fmt="py:percent") == path.read_text()


@each_notebook
def test_a_notebook_is_text_and_few_lines_of_code(path: Path) -> None:
    cells = jupytext.read(path).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    assert {cell.cell_type for cell in cells} == {"markdown", "code"}
    code = [cell.source.splitlines() for cell in cells if cell.cell_type == "code"]
    assert [lines[:3] for lines in code if sum(map(bool, lines)) > LONGEST_CELL] == []
    assert len(cells) - len(code) >= 5


@each_notebook
def test_a_cell_with_a_figure_ends_by_showing_it(path: Path) -> None:
    """Jupyter shows figures at a cell's end by itself; plain Python only when asked."""
    drawn = [c.source for c in jupytext.read(path).cells if "plt.subplots(" in c.source]
    assert drawn
    assert [source for source in drawn if source.count("plt.show()") != 1] == []


@each_notebook
def test_nothing_but_the_header_looks_like_dead_code(path: Path) -> None:
    """The header is YAML in comments, so ruff's rule is off in the notebooks; it is kept here."""
    ruff = [sys.executable, "-m", "ruff", "check", "--ignore-noqa", "--select", "ERA001"]
    found = subprocess.run(
        [*ruff, "--output-format", "concise", "--no-cache", path.name],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    lines = [int(line.split(":")[1]) for line in found.stdout.splitlines() if "ERA001" in line]
    assert lines, found.stderr
    assert [line for line in lines if line > HEADER] == []


def test_the_folder_lists_its_notebooks_and_keeps_no_output() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert [path.name for path in NOTEBOOKS if f"]({path.name})" not in readme] == []
    assert "*.ipynb" in (FOLDER / ".gitignore").read_text().splitlines()


def test_the_recorded_sweep_supports_what_the_notebooks_say_of_it() -> None:
    recording = read_csv(FOLDER / "data" / "lab-user-space.csv")
    found = fit(recording)
    assert recording.metadata.offered_pps is not None
    assert found.shapes.chosen.r_squared >= 0.99
    assert not verdict_on(found).usable
    assert "the host's speed changed" in verdict_on(found).words
    assert recording.samples[-1].at <= 300
    assert (FOLDER / "data" / "README.md").read_text().count(recording.metadata.cpu)
