"""The plan of an evaluation: which runs there are, in which order, and how long they take.

The order is repetition by repetition, and within a repetition of an experiment all ways of a point
follow each other. A slow change of the machine's speed therefore affects all ways alike.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.result import Direction, Result, Value

REPETITIONS: Final = 5
QUICK_REPETITIONS: Final = 1
"""Without intervals: a quick evaluation shows that everything runs."""
WHOLE_S: Final = 7200.0
QUICK_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One way at one point."""

    way: str
    point: str
    seconds: float
    """Planned, with everything before and after the measurement."""


@dataclass(frozen=True, slots=True)
class Run:
    """One repetition of a cell."""

    experiment: str
    cell: Cell
    repetition: int
    method: str = ""
    """What its values depend on besides the cell, such as the options of a program."""

    @property
    def words(self) -> str:
        """Description for people."""
        parts = (self.cell.point, self.cell.way, f"repetition {self.repetition + 1}")
        return f"{self.experiment}: " + ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity."""

    name: str
    better: Direction | None = None
    """None: neither, as for a rate that should equal its setpoint."""


Measure = Callable[[Run], Sequence[Value]]
Bench = Callable[[Calibration | None, bool], AbstractContextManager[Measure]]
"""Opens what the runs of an experiment share; the flag asks for the shortest runs."""


def elsewhere(calibration: Calibration | None, quick: bool) -> AbstractContextManager[Measure]:
    """Open nothing, for an experiment with runs that another command makes.

    Raises:
        RuntimeError: always.
    """
    del calibration, quick
    raise RuntimeError("another command makes these runs")


def nothing(results: Sequence[Result]) -> Iterable[Result]:
    """Return no further results."""
    del results
    return ()


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper."""

    name: str
    paper: str
    title: str
    figures: str
    """The paper's figures and tables that it repeats."""
    metrics: tuple[Metric, ...]
    cells: tuple[Cell, ...]
    quick_cells: tuple[Cell, ...]
    bench: Bench
    published: dict[tuple[str, str, str], float]
    """The paper's values by way, point and metric."""
    calibrated: bool = False
    """Whether it needs the calibration of this machine."""
    derive: Callable[[Sequence[Result]], Iterable[Result]] = nothing
    """Returns more results that follow from those of its runs; none by default."""
    repetitions: int = REPETITIONS
    """Of the whole run; 1 for a simulation, which always gives the same."""
    made_by: str = ""
    """The command that makes its runs, where this program does not."""
    method: str = ""
    """What the values of all its runs depend on; a run of another method counts as missing."""

    def runs(self, *, quick: bool) -> Iterator[Run]:
        """Yield its runs in their order."""
        repetitions = QUICK_REPETITIONS if quick else self.repetitions
        for repetition in range(repetitions):
            for cell in self.quick_cells if quick else self.cells:
                yield Run(self.name, cell, repetition, self.method)


def runs_of(experiments: Iterable[Experiment], *, quick: bool) -> list[Run]:
    """Return all runs in their order."""
    return [run for one in experiments for run in one.runs(quick=quick)]


def planned_s(runs: Iterable[Run]) -> float:
    """Return how long runs take according to the plan, in seconds."""
    return sum(run.cell.seconds for run in runs)


def raw_file(folder: Path, run: Run) -> Path:
    """Return the file for the raw values of a run; different runs have different files."""
    words = f"{run.cell.point} {run.cell.way}"
    readable = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60]
    key = hashlib.sha256(f"{words} {run.method}".encode()).hexdigest()[:6]
    return folder / run.experiment / f"{readable}-{key}-{run.repetition + 1}.json"


def missing(runs: Iterable[Run], folder: Path) -> list[Run]:
    """Return the runs without a file of raw values."""
    return [run for run in runs if not raw_file(folder, run).exists()]
