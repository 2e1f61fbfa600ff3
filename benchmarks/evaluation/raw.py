"""Raw values of runs as JSON files, and the results that follow from them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.evaluation.intervals import interval
from benchmarks.evaluation.machine import Machine
from benchmarks.evaluation.plan import Cell, Experiment, Run, raw_file
from benchmarks.evaluation.result import Result, Value


@dataclass(frozen=True, slots=True)
class Raw:
    """What a run found."""

    run: Run
    took_s: float
    values: tuple[Value, ...]
    machine: Machine


def to_json(raw: Raw) -> dict[str, object]:
    """Return the JSON object of a run."""
    return {
        "experiment": raw.run.experiment,
        "way": raw.run.cell.way,
        "point": raw.run.cell.point,
        "repetition": raw.run.repetition,
        "method": raw.run.method,
        "took_s": round(raw.took_s, 2),
        "machine": asdict(raw.machine),
        "values": [asdict(value) for value in raw.values],
    }


def of_json(found: Mapping[str, Any]) -> Raw:
    """Return the run of a JSON object; its planned duration is unknown."""
    cell = Cell(found["way"], found["point"], 0.0)
    run = Run(found["experiment"], cell, found["repetition"], found["method"])
    values = tuple(Value(**value) for value in found["values"])
    return Raw(run, found["took_s"], values, Machine(**found["machine"]))


def write(folder: Path, raw: Raw) -> Path:
    """Write the file of a run; a file is complete or does not exist."""
    path = raw_file(folder, raw.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(to_json(raw), indent=1) + "\n")
    unfinished.replace(path)
    return path


def read(folder: Path, run: Run) -> Raw | None:
    """Return what a run found; None: it has not been made."""
    path = raw_file(folder, run)
    if not path.exists():
        return None
    return replace(of_json(json.loads(path.read_text())), run=run)


def read_all(folder: Path, runs: Iterable[Run]) -> list[Raw]:
    """Return what was found by those runs that have been made."""
    return [raw for run in runs if (raw := read(folder, run)) is not None]


def machines(raws: Iterable[Raw]) -> dict[Machine, list[str]]:
    """Return the machines of runs, each with the names of its experiments."""
    found: dict[Machine, dict[str, None]] = {}
    for raw in raws:
        found.setdefault(raw.machine, {})[raw.run.experiment] = None
    return {machine: list(names) for machine, names in found.items()}


def results(experiment: Experiment, raws: Sequence[Raw]) -> list[Result]:
    """Return the results of an experiment's runs, and those that follow from them."""
    found = list(_means(experiment, raws))
    return [*found, *experiment.derive(found)]


def _means(experiment: Experiment, raws: Sequence[Raw]) -> Iterator[Result]:
    """Yield the means of repetitions, in the order of the first repetition."""
    values = [value for raw in raws for value in raw.values]
    groups: dict[tuple[str, str, str], list[float]] = {}
    for value in values:
        groups.setdefault((value.point, value.way, value.metric), []).append(value.value)
    for (point, way, metric), found in groups.items():
        middle = interval(found)
        yield Result(
            paper=experiment.paper,
            experiment=f"{experiment.name}: {point}" if point else experiment.name,
            way=way,
            metric=metric,
            value=middle.mean,
            low=middle.low,
            high=middle.high,
            paper_value=experiment.published.get((way, point, metric)),
        )
