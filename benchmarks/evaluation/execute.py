"""Executes the runs of a plan that are still missing, and writes their raw values."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.machine import Machine, this_machine
from benchmarks.evaluation.plan import Experiment, Run, missing, planned_s
from benchmarks.evaluation.progress import Progress
from benchmarks.evaluation.raw import Raw, write


@dataclass
class Execution:
    """One execution of a plan; it continues with the next experiment where one fails."""

    calibration: Calibration | None
    folder: Path
    quick: bool
    say: Callable[[str], object]
    progress: Progress
    machine: Machine

    def make(self, experiment: Experiment, runs: Sequence[Run]) -> bool:
        """Make runs of an experiment; return whether all of them ended.

        The firewall of one experiment: whatever fails in it, the others run.
        """
        made = 0
        try:
            with experiment.bench(self.calibration, self.quick) as measure:
                for run in runs:
                    self.say(f"{self.progress.words}: {run.words}")
                    begin = time.monotonic()
                    values = tuple(measure(run))
                    took = time.monotonic() - begin
                    write(self.folder, Raw(run, took, values, self.machine))
                    self.progress = self.progress.after(run.cell.seconds, took)
                    made += 1
        except Exception as error:  # noqa: BLE001  the firewall of an experiment
            self.say(f"{experiment.name} failed: {type(error).__name__}: {error}")
            self.progress = self.progress.without(planned_s(runs[made:]))
            return False
        return True


def execute(
    experiments: Sequence[Experiment],
    calibration: Calibration | None,
    folder: Path,
    *,
    quick: bool,
    say: Callable[[str], object],
) -> list[str]:
    """Make all runs that have no raw file; return the experiments that failed."""
    todo = {one.name: missing(one.runs(quick=quick), folder) for one in experiments}
    progress = Progress(planned_s(run for runs in todo.values() for run in runs))
    execution = Execution(calibration, folder, quick, say, progress, this_machine())
    return [
        one.name
        for one in experiments
        if todo[one.name] and not execution.make(one, todo[one.name])
    ]
