"""Experiments 1 and 2 of the XTC paper on its own scheduler: real Xen, emulated.

`make evaluation-xen` calls this. It writes raw files for the report of benchmarks.evaluation, and
judges nothing: a run only has to have samples. All samples are in build/xen.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from system.xen.boot import Findings, Xen, opened
from system.xen.console import teller
from system.xen.job import Job
from system.xen.samples import write_csv

from benchmarks.evaluation.__main__ import OUTPUT, forget, raw_folder
from benchmarks.evaluation.calibration import Calibration, load, model, save
from benchmarks.evaluation.machine import this_machine
from benchmarks.evaluation.plan import Run, missing
from benchmarks.evaluation.raw import Raw, write
from benchmarks.evaluation.xtc import xen as plan

pytestmark = [pytest.mark.xen_evaluation, pytest.mark.timeout(7200)]

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "build/xen"
QUICK, RESUME = (bool(os.environ.get(name)) for name in ("QUICK", "RESUME"))
SCHEDULER = "credit"
ROUTER = "gold"
CALIBRATION_S, RUNS_S = 600, 3600
"""After which dom0 ends a boot; what is missing then is made with RESUME=1."""


def test_every_run_has_samples(request: pytest.FixtureRequest) -> None:
    raw = raw_folder(PROJECT / OUTPUT, quick=QUICK)
    if not RESUME:
        forget([plan.EXPERIMENT], raw)
    runs = missing(plan.EXPERIMENT.runs(quick=QUICK), raw)
    if not runs:
        return
    with opened(PROJECT, FOLDER, teller(request.config)) as xen:
        known = calibrated(xen, raw / "xen-calibration.json")
        found = boot(xen, "evaluation", runs, RUNS_S, model(known, plan.PERIOD_S))
    unseen = [run.words for run in runs if not written(raw, run, found, known)]
    reasons = [f"{words}: {why(found, words)}" for words in unseen[:5]]
    assert not unseen, "\n".join([f"{len(unseen)} of {len(runs)} runs have no samples", *reasons])


def why(found: Findings, words: str) -> str:
    """Return in one line why a run has no samples."""
    return (found.failure(words) or "no throughput was counted").splitlines()[0]


def calibrated(xen: Xen, path: Path) -> Calibration:
    """Return the calibration of the emulated host, from a boot of its own: dom0 has no numpy."""
    known = load(path) if RESUME else None
    if known is None:
        steps = boot(xen, "calibration", [], CALIBRATION_S).report["caps"]["steps"]
        known = plan.calibration(steps)
        save(known, path)
    return known


def boot(xen: Xen, name: str, runs: Sequence[Run], limit_s: int, model_file: str = "") -> Findings:
    """Boot Xen, have dom0 make runs after its map of caps, and leave all samples in a file."""
    files = {"task.json": json.dumps(plan.task(runs)), "model.toml": model_file}
    found = xen.boot(name, SCHEDULER, Job(("laws.py",), limit_s, files))
    write_csv(found.samples, FOLDER / f"samples-{name}.csv")
    for first in ("prepare", "caps"):
        found.of(first)
    return found


def written(raw: Path, run: Run, found: Findings, known: Calibration) -> bool:
    """Write the raw file of a run; return whether it has samples."""
    report = found.report.get(run.words, {})
    if "seen" not in report:
        return False
    window = found.window(run.words, ROUTER)
    pps = [one["throughput_pps"] for one in window if one["throughput_pps"] is not None]
    if pps:
        write(
            raw, Raw(run, report["took_s"], tuple(plan.measured(run, pps, known)), this_machine())
        )
    return bool(pps)
