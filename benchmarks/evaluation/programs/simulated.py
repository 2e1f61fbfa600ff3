"""The figures of SDN-GCC and HyGenICC in our simulation, next to the papers' own simulations."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import product
from typing import Any, Final

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.plan import Measure
from benchmarks.evaluation.programs.tagged import NONE, OURS, PUBLISHED, published, tagged
from benchmarks.evaluation.result import Value
from benchmarks.xco.dumbbell import FIGURES, IDEAL_MBPS, Row, run, tasks

HYGENICC_FIGURES: Final = ("4a",)
PHASE_S: Final = 1.25
QUICK_PHASE_S: Final = 0.3
QUICK_SENDERS: Final = 4
Task = tuple[str, dict[str, Any], float | None]


class Simulation:
    """The figures of one paper."""

    def __init__(self, figures: Iterable[str]) -> None:
        """Take the figures."""
        self.figures = tuple(figures)

    @property
    def method(self) -> str:
        """What all values depend on."""
        return f"phases of {PHASE_S} s; quick: {QUICK_PHASE_S} s"

    def tasks(self, *, quick: bool) -> list[Task]:
        """Return what is simulated; a quick run leaves out figures with many senders."""
        return [
            task
            for task in tasks(QUICK_PHASE_S if quick else PHASE_S)
            if figure_of(task[0]) in self.figures
            and not (quick and task[1].get("senders", QUICK_SENDERS) > QUICK_SENDERS)
        ]

    @contextmanager
    def bench(self, calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
        """Return a measure that simulates all figures."""
        del calibration
        with ProcessPoolExecutor() as pool:
            yield lambda _run: [
                value for row in pool.map(run, self.tasks(quick=quick)) for value in values_of(row)
            ]

    def published(self) -> dict[tuple[str, str, str], float]:
        """Return the paper's figures for all ways that are simulated."""
        found: dict[tuple[str, str, str], float] = {}
        for name, options, numbers in FIGURES:
            ideal = IDEAL_MBPS[options.get("senders", 4)]
            ways = (PUBLISHED, OURS) if "strategy" in options else (NONE,)
            for (kind, mbps), way in product(numbers.items(), ways):
                if name in self.figures:
                    found |= published(way, point_of(name, kind), mbps / ideal)
        return found


def figure_of(case: str) -> str:
    """Return the number of the paper's figure; empty if it is none."""
    return case.removeprefix("figure ") if case.startswith("figure ") else ""


def point_of(figure: str, competitors: str) -> str:
    """Return the name of a point."""
    return f"figure {figure}, next to {competitors}"


def values_of(row: Row) -> Iterator[Value]:
    """Yield the values of a simulated row."""
    way = PUBLISHED if row.law == "published" else OURS
    if row.strategy == "uncoordinated":
        way = NONE
    yield from tagged(way, point_of(figure_of(row.case), row.competitors), row.of_ideal)


SDN_GCC: Final = Simulation(name for name, _, _ in FIGURES if name not in HYGENICC_FIGURES)
HYGENICC: Final = Simulation(HYGENICC_FIGURES)
