"""The report: one self-contained page with a chapter for each paper, and results.json."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from benchmarks.evaluation import chapter
from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.machine import Machine
from benchmarks.evaluation.plan import Experiment
from benchmarks.evaluation.result import Result

PAGE: Final = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Evaluation:
    """All that a report shows."""

    machines: Mapping[Machine, Sequence[str]]
    """Each with the names of the experiments that it made."""
    quick: bool
    calibration: Calibration | None
    experiments: Sequence[Experiment]
    results: Mapping[str, Sequence[Result]]
    """By the name of the experiment."""
    incomplete: Mapping[str, str]
    """Experiments without all their runs, and why."""


def page(evaluation: Evaluation) -> str:
    """Return the page."""
    papers = dict.fromkeys(one.paper for one in evaluation.experiments)
    chapters = "\n".join(_chapter(paper, evaluation) for paper in papers)
    return Template(PAGE.read_text()).substitute(
        head=_head(evaluation), warning=_warning(evaluation), chapters=chapters
    )


def as_json(results: Iterable[Result]) -> str:
    """Return the results as a JSON list."""
    return json.dumps([one.to_json() for one in results], indent=1) + "\n"


def write(evaluation: Evaluation, folder: Path) -> tuple[Path, Path]:
    """Write both files and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    report, data = folder / "report.html", folder / "results.json"
    report.write_text(page(evaluation))
    data.write_text(as_json(one for found in evaluation.results.values() for one in found))
    return report, data


def _head(evaluation: Evaluation) -> str:
    facts = {", ".join(names): one.words for one, names in evaluation.machines.items()}
    calibration = evaluation.calibration
    if calibration is not None:
        eq = calibration.equation
        facts["scale of rates"] = f"{calibration.scale:.3f} packets/s here for each of XTC's paper"
        facts["Eq. 1 of the machine"] = (
            f"a = {eq.a:.4f}, b = {eq.b:.2f} kp/s per decade, R² = {eq.r_squared:.3f}"
        )
    rows = (f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts.items())
    return f"<table>{''.join(rows)}</table>"


def _warning(evaluation: Evaluation) -> str:
    lines = [f"{name}: {why}" for name, why in evaluation.incomplete.items()]
    if evaluation.quick:
        lines.insert(0, "A quick run: one short repetition, no intervals. Its values mean little.")
    if not lines:
        return ""
    return f'<p class="warning">{"<br>".join(escape(line) for line in lines)}</p>'


def _chapter(paper: str, evaluation: Evaluation) -> str:
    mine = [one for one in evaluation.experiments if one.paper == paper]
    return chapter.chapter(paper, mine, evaluation.results)
