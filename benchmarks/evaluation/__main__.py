"""Runs the papers' experiments and writes one report of all of them; as root.

    python -m benchmarks.evaluation                  # two hours, on an otherwise idle machine
    python -m benchmarks.evaluation --quick          # ten minutes: shows that everything runs
    python -m benchmarks.evaluation --resume         # skips the runs that have raw files
    python -m benchmarks.evaluation --only xtc-hold  # this one, or all with names that begin so
    python -m benchmarks.evaluation --report         # no run: the report of the raw files

Raw values: build/evaluation/raw (quick: raw-quick). Results: build/evaluation/report.html and
results.json, from all raw values that there are.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.evaluation import calibration as calibrations
from benchmarks.evaluation.archive import Archive, dumps, load, results_of
from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.catalogue import EXPERIMENTS, chosen
from benchmarks.evaluation.execute import execute
from benchmarks.evaluation.machine import this_machine
from benchmarks.evaluation.plan import Experiment, missing, planned_s, runs_of
from benchmarks.evaluation.progress import clock
from benchmarks.evaluation.raw import Raw, machines, read_all
from benchmarks.evaluation.report import Evaluation, as_json, write
from benchmarks.evaluation.xtc import calibrate
from benchmarks.rig import lab_missing

OUTPUT: Final = Path("build/evaluation")


def say(line: str) -> None:
    """Print progress."""
    print(line, file=sys.stderr, flush=True)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one short repetition of few points")
    parser.add_argument("--resume", action="store_true", help="skip runs that have raw files")
    parser.add_argument("--report", action="store_true", help="make no run, only the report")
    parser.add_argument("--only", help="experiments with names that begin so, e.g. xtc-hold")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--list", action="store_true", help="print the plan and make no run")
    parser.add_argument(
        "--archive",
        type=Path,
        help="a file for all raw values; it keeps those of experiments without any now",
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"folder ({OUTPUT})")
    return parser.parse_args(arguments)


def raw_folder(output: Path, *, quick: bool) -> Path:
    """Return the folder of raw values; quick ones never mix with others."""
    return output / ("raw-quick" if quick else "raw")


def plan(experiments: Sequence[Experiment], *, quick: bool) -> str:
    """Return the plan in words."""
    lines = []
    for one in experiments:
        runs = list(one.runs(quick=quick))
        lines.append(f"{one.name:16} {len(runs):4} runs {clock(planned_s(runs))}  {one.title}")
    return "\n".join([*lines, f"all: {clock(planned_s(runs_of(experiments, quick=quick)))}"])


def forget(experiments: Sequence[Experiment], raw: Path) -> None:
    """Remove the raw values of experiments; the calibration only with all of them.

    Values of experiments that remain were measured with it.
    """
    for one in experiments:
        shutil.rmtree(raw / one.name, ignore_errors=True)
    if tuple(experiments) == chosen(None):
        (raw / "calibration.json").unlink(missing_ok=True)


def calibrated(raw: Path, *, quick: bool) -> Calibration:
    """Return the calibration of these raw values, measured if there is none for this CPU."""
    path = raw / "calibration.json"
    known = calibrations.load(path)
    if known is None or known.cpu != this_machine().cpu:
        say("calibration: throughput without cap, and at several caps")
        known = calibrate.measure(quick=quick)
        calibrations.save(known, path)
    return known


def with_calibration(
    wanted: Sequence[Experiment], raw: Path, *, quick: bool
) -> tuple[Sequence[Experiment], Calibration | None]:
    """Return the experiments that can be run, and the calibration if any of them needs it.

    The firewall of the calibration: experiments without it run, even if it fails.
    """
    if not any(one.calibrated for one in wanted):
        return wanted, None
    try:
        return wanted, calibrated(raw, quick=quick)
    except Exception as error:  # noqa: BLE001  the firewall of the calibration
        say(f"calibration failed: {type(error).__name__}: {error}")
        return tuple(one for one in wanted if not one.calibrated), None


def incomplete(raw: Path, *, quick: bool) -> dict[str, str]:
    """Return the experiments without all their runs."""
    found = {}
    for one in EXPERIMENTS:
        runs = list(one.runs(quick=quick))
        if left := missing(runs, raw):
            maker = f"; {one.made_by} makes them" if one.made_by else ""
            found[one.name] = f"{len(left)} of {len(runs)} runs are missing{maker}"
    return found


def evaluate(raw: Path, *, quick: bool) -> Evaluation:
    """Return the evaluation of the raw values that there are."""
    raws = read_all(raw, runs_of(EXPERIMENTS, quick=quick))
    calibration = calibrations.load(raw / "calibration.json")
    return Evaluation(
        machines=machines(raws),
        quick=quick,
        calibration=calibration,
        experiments=EXPERIMENTS,
        results=results_of(calibration, raws),
        incomplete=incomplete(raw, quick=quick),
    )


def archived(raw: Path, before: Archive, *, quick: bool) -> Archive:
    """Return an archive of these raw values, and of other experiments what was there before."""
    found: list[Raw] = []
    for one in EXPERIMENTS:
        kept = [each for each in before.raws if each.run.experiment == one.name]
        found += read_all(raw, one.runs(quick=quick)) or kept
    calibration = calibrations.load(raw / "calibration.json") or before.calibration
    return Archive(calibration, found)


def main() -> int:
    """Run, report; 1 where an experiment did not run to its end."""
    given = options()
    try:
        wanted = () if given.report else chosen(given.only)
    except ValueError as error:
        sys.exit(str(error))
    if given.list:
        print(plan(wanted, quick=given.quick))
        return 0
    if wanted and (problems := lab_missing()):
        sys.exit("real packets need: " + "; ".join(problems))
    raw = raw_folder(given.output, quick=given.quick)
    if not given.resume:
        forget(wanted, raw)
    able, calibration = with_calibration(wanted, raw, quick=given.quick)
    failed = execute(able, calibration, raw, quick=given.quick, say=say)
    evaluation = evaluate(raw, quick=given.quick)
    if given.archive:
        before = load(given.archive) if given.archive.exists() else Archive(None, [])
        given.archive.write_text(dumps(archived(raw, before, quick=given.quick)))
    report, _ = write(evaluation, given.output)
    if given.json:
        print(as_json(one for found in evaluation.results.values() for one in found), end="")
    say(f"report: {report}")
    return 1 if failed or able != wanted else 0


if __name__ == "__main__":
    sys.exit(main())
