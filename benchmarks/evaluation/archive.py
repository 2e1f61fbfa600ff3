"""A file with all raw values of an evaluation, for documents, the notebook and other machines."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.evaluation import calibration as calibrations
from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.catalogue import EXPERIMENTS
from benchmarks.evaluation.raw import Raw, of_json, results, to_json
from benchmarks.evaluation.result import Result
from benchmarks.evaluation.xtc import cap_map


@dataclass(frozen=True)
class Archive:
    """The runs of an evaluation, and what they depend on."""

    calibration: Calibration | None
    """None: no experiment needed it."""
    raws: Sequence[Raw]

    def results(self) -> Mapping[str, Sequence[Result]]:
        """Return the results by the name of the experiment."""
        return results_of(self.calibration, self.raws)


def results_of(calibration: Calibration | None, raws: Sequence[Raw]) -> dict[str, Sequence[Result]]:
    """Return the results of all runs, and the map of caps, by the name of the experiment."""
    found: dict[str, Sequence[Result]] = {
        one.name: results(one, [raw for raw in raws if raw.run.experiment == one.name])
        for one in EXPERIMENTS
    }
    return found | {cap_map.EXPERIMENT.name: list(cap_map.results(calibration))}


def dumps(archive: Archive) -> str:
    """Return the text of an archive: one line for each run."""
    calibration = archive.calibration
    head = {"calibration": None if calibration is None else asdict(calibration)}
    lines = [json.dumps(head), *(json.dumps(to_json(raw)) for raw in archive.raws)]
    return "\n".join(lines) + "\n"


def loads(text: str) -> Archive:
    """Read the text of an archive."""
    head, *runs = map(json.loads, text.splitlines())
    calibration = head["calibration"]
    return Archive(
        calibration=None if calibration is None else calibrations.of_json(calibration),
        raws=[of_json(run) for run in runs],
    )


def load(path: Path) -> Archive:
    """Read the file of an archive."""
    return loads(path.read_text())
