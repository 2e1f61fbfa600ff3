"""Write the tables of a report as CSV files, and all of them together as one JSON file."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from training.errors import ExportError
from training.fit.interval import Interval
from training.recording.recording import UNCAPPED
from training.report.contents import Contents

JSON: Final = "report.json"
FILES: Final = {
    "points.csv": "mean throughput of each cap with its 95 % interval",
    "samples.csv": "all samples, as measured and with what is left of earlier caps taken off",
    "step_responses.csv": "each change of cap, as a share of the way to its new level",
    "held_out.csv": "caps held out of the fit: predicted and measured",
    "residuals.csv": "Eq. 1's estimate of each sample and what was measured",
    "expectations.csv": "each law at five setpoints: median and range of the simulated runs",
    JSON: "all of these, the host and the verdict",
}
"""The files, and their contents."""

Cell: TypeAlias = str | float | None
Table: TypeAlias = tuple[Sequence[str], Iterable[Sequence[Cell]]]


def export(contents: Contents, folder: Path) -> list[Path]:
    """Write all files into a folder, and create it if it is missing.

    Files of the same names are replaced.

    Raises:
        ExportError: the folder or a file in it cannot be written.
    """
    texts = {name: _csv(*table) for name, table in _tables(contents).items()}
    texts[JSON] = _json(contents)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        where = str(error.filename or folder)
        raise ExportError(where, error.strerror or str(error)) from error
    return [folder / name for name in texts]


def _json(contents: Contents) -> str:
    data = msgspec.to_builtins(contents) | {
        "verdict": {"usable": contents.verdict.usable, "reasons": contents.verdict.reasons}
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def _csv(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _tables(contents: Contents) -> dict[str, Table]:
    return {
        "points.csv": _points(contents),
        "samples.csv": _samples(contents),
        "step_responses.csv": _responses(contents),
        "held_out.csv": _held_out(contents),
        "residuals.csv": _residuals(contents),
        "expectations.csv": _expectations(contents),
    }


def _points(contents: Contents) -> Table:
    head = "cap throughput_pps low_pps high_pps curve_pps samples scatter binding"
    return head.split(), (
        (
            *(p.cap, *_ends(p.throughput_pps), p.smoothed_pps),
            *(p.samples, p.scatter, _flag(p.binding)),
        )
        for p in contents.points
    )


def _samples(contents: Contents) -> Table:
    head = "at_s cap phase visit measured_pps corrected_pps own outlier"
    return head.split(), (
        (
            *(s.at, _cap(s.cap), s.phase, s.visit),
            *(s.measured_pps, s.corrected_pps, s.own, _flag(s.outlier)),
        )
        for s in contents.samples
    )


def _responses(contents: Contents) -> Table:
    head = (
        "at_s visit cap_before cap_after before_pps after_pps samples_since share fitted low high"
    )
    found = contents.responses
    return head.split(), (
        (
            *(step.at, step.visit, _cap(step.cap_before), _cap(step.cap_after)),
            *(step.before_pps, step.after_pps, point.samples, point.share),
            *_ends(found.way(point.samples)),
        )
        for step in found.steps
        for point in step.points
    )


def _held_out(contents: Contents) -> Table:
    head = ("cap", "predicted_pps", "measured_pps", "error")
    return head, ((h.cap, h.predicted_pps, h.measured_pps, h.error) for h in contents.held_out)


def _residuals(contents: Contents) -> Table:
    head = ("cap", "visit", "estimated_kpps", "actual_kpps")
    return head, ((r.cap, r.visit, r.estimated, r.actual) for r in contents.residuals)


def _expectations(contents: Contents) -> Table:
    names = ("settling_samples", "mean_error", "relative_rmse")
    ends = [f"{name}_{end}" for name in names for end in ("median", "low", "high")]
    return ("law", "setpoint_pps", "cap", "runs", *ends), (
        (
            *(one.law, one.setpoint_pps, one.cap, one.runs),
            *(
                value
                for spread in (one.settling_samples, one.mean_error, one.relative_rmse)
                for value in (spread.median, spread.low, spread.high)
            ),
        )
        for one in contents.expectations
    )


def _ends(found: Interval) -> tuple[float, float, float]:
    return found.value, found.low, found.high


def _cap(cap: float | None) -> Cell:
    """Return a cap as in the column of recordings."""
    return UNCAPPED if cap is None else cap


def _flag(value: bool) -> str:
    return str(value).lower()
