"""The notebooks run in a real kernel, cell by cell, and say what their text promises."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode, v4

from benchmarks.training.coverage_host import Case
from benchmarks.training.truth import trial
from scripts.notebooks import executed
from training.recording.recording import write_csv

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "notebooks"
pytestmark = pytest.mark.timeout(600)
SAID = {
    "identification": (
        "refused: ",
        "steady samples alone give b/(1 - a)",
        "90.10",
        "69.7 to 110.5",
        "0.9828            0.9899",
        "1.38998",
        "73.09",
        "lag 0.000, delay 0 samples",
    ),
    "design": (
        "-1.747    11.311    -1.747 and 11.311",
        "1.452    14.419    1.452 and 14.419",
        "radius 0.449, angle 0.995",
        "PI as printed          Kp -1.747e-03  Ki 1.131e-02  settles in 5 s, overshoot 8.4%",
        "settles in 11 s",
        "settles in 2 s, overshoot 9.2%",
        "bears 4.43 times the gain, phase margin 58.3 degrees",
        "bears 2.00 times the gain, phase margin 60.0 degrees",
        "0.56 to 1.79 times",
        "gain times  1.2: PI settles in 4 s, dead-beat in 3 s",
        "gain times 1.79: PI settles in 7 s, dead-beat in 17 s",
        "this host gains 1.67 times",
    ),
    "truth": (
        "of 40 intervals hold the truth",
        "the fit's mixed model: 9",
        "of all intervals hold the truth",
        "lag: true 0.6, fitted 0.",
        "curves are wrong by more than 5 % somewhere",
    ),
    "validation": (
        "held from",
        "fixed cap",
        "predicted",
        "kp/s, simulated: cap",
        "the model is of another host, or this one has changed",
    ),
    "evaluation": (
        "502 runs; ",
        "cap  20.0 %:   28.8 kp/s, by Eq. 1",
        "50 kp/s, fixed cap",
        "ours, burst of 0.4 s    19.6 of 20 kp/s",
    ),
    "sizes": (
        "1 vCPUs: top 24",
        "a packet costs as much as",
        "half 64, half 1400   mean  732.0 bytes, top 34",
        "at 1000 bytes: +23% of the truth",
        "% less than a straight line says; by chance: ",
    ),
}
"""What stands in the output; figures that the text beside it names, above all."""


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep what a kernel writes, and its sockets, out of the user's home."""
    with TemporaryDirectory(prefix="nb") as folder:  # a socket's path must be short
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
            monkeypatch.setenv(name, folder)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        for name in ("MPLBACKEND", "XTC_CSV", "XTC_MODEL", "XTC_LAB"):
            monkeypatch.delenv(name, raising=False)
        yield Path(folder)


def printed(notebook: NotebookNode) -> str:
    """Return what the cells print, and see to it that each figure is shown once."""
    text = ""
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        text += "".join(o.text for o in outputs if o.output_type == "stream")
        assert [o.text for o in outputs if o.get("name") == "stderr"] == []
        figures = sum("image/png" in o.get("data", {}) for o in outputs)
        assert figures == cell.source.count("plt.subplots("), cell.source
    return text


@pytest.mark.usefixtures("training_lab_alone")
@pytest.mark.parametrize("name", SAID)
def test_a_notebook_runs_and_says_what_it_promises(name: str, kernel: Path) -> None:
    output = printed(executed(jupytext.read(FOLDER / f"{name}.py"), kernel))
    assert [words for words in SAID[name] if words not in output] == []


def test_without_a_lab_the_validation_says_so_and_uses_the_recorded_sweep(kernel: Path) -> None:
    notebook = jupytext.read(FOLDER / "validation.py")
    notebook.cells.insert(0, v4.new_code_cell("import os; os.geteuid = lambda: 1"))
    output = printed(executed(notebook, kernel))
    assert "no lab here (Root privileges are missing" in output
    assert "predicted: cap" in output
    assert "fact" not in output


@pytest.mark.parametrize("name", ["identification", "design", "validation"])
def test_an_operators_own_recording_is_what_the_notebook_is_about(
    name: str, kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = trial(Case(lag=0.6), 1).recording
    write_csv(recording, tmp_path / "own.csv")
    monkeypatch.setenv("XTC_CSV", str(tmp_path / "own.csv"))
    output = printed(executed(jupytext.read(FOLDER / f"{name}.py"), kernel))
    own = {
        "identification": "lag 0.6",
        "design": "this host gains 0.6",
        "validation": "no lab here (the model is not of the lab's router)",
    }
    assert own[name] in output


def test_a_model_alone_can_be_validated(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XTC_MODEL", "paper")
    output = printed(executed(jupytext.read(FOLDER / "validation.py"), kernel))
    assert "paper: top 98.0 kp/s, lag 0.091, noise of a sample 0.0%" in output
    assert "25 % slower, 58.8 kp/s, simulated" in output


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SAID)


def test_a_cell_that_fails_fails_the_notebook(kernel: Path) -> None:
    cells = [v4.new_code_cell("print('fine')"), v4.new_code_cell("1 / 0")]
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        executed(v4.new_notebook(cells=cells), kernel)
