"""An experiment that is a benchmark: a program with `--json`, one call of which is a run."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.plan import Cell, Measure
from benchmarks.evaluation.result import Value

WAY: Final = "all ways"
LONGEST_S: Final = 600.0
"""Several times what any of them takes; one that hangs must not end the evaluation."""
TAIL: Final = 2000
"""Characters of a failed program's errors that are shown."""


@dataclass(frozen=True)
class Program:
    """A benchmark with `--json`."""

    module: str
    """Below `benchmarks`."""
    arguments: str
    quick_arguments: str
    values: Callable[[Any], Iterable[Value]]
    """Returns the values of what it printed."""

    @property
    def method(self) -> str:
        """Its options, on which all values depend."""
        return f"{self.arguments}; quick: {self.quick_arguments}"

    def cells(self, seconds: float) -> tuple[Cell, ...]:
        """Return its one cell."""
        return (Cell(WAY, "", seconds),)

    def command(self, *, quick: bool) -> list[str]:
        """Return the command line."""
        words = (self.quick_arguments if quick else self.arguments).split()
        return [sys.executable, "-m", f"benchmarks.{self.module}", *words, "--json"]

    @contextmanager
    def bench(self, calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
        """Return a measure that calls the program."""
        del calibration
        yield lambda _run: list(self.values(self._call(quick=quick)))

    def _call(self, *, quick: bool) -> Any:
        done = subprocess.run(
            self.command(quick=quick),
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
        if done.returncode:
            raise RuntimeError(
                f"benchmarks.{self.module} ended with {done.returncode}:\n{done.stderr[-TAIL:]}"
            )
        return json.loads(done.stdout)


def kept(values: Iterable[tuple[str, str, str, float | None]]) -> Iterator[Value]:
    """Yield way, point, metric and value as values; what was not measured (None) is left out."""
    for way, point, metric, value in values:
        if value is not None:
            yield Value(way, point, metric, value)
