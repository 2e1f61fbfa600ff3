"""xtc-train: the command line of sweeping, fitting, designing, reporting, validating and fleets."""

import os

from common.command import EXIT_FAILED, EXIT_USAGE, Codes, command_line, report_errors
from lab.errors import BadRequestError, LabError
from training.cli.compare import compare
from training.cli.fit import design, fit, report
from training.cli.fleet import fleet
from training.cli.mix import mix
from training.cli.sweep import sweep
from training.cli.transfer import transfer
from training.cli.validate import validate
from training.errors import FleetStopped, TrainingError, UnfitError
from training.sweep.watch import MeasureError, Stopped
from xtc.exit_codes import CODES

TRAINING_CODES: Codes = {
    **CODES,
    TrainingError: EXIT_USAGE,
    UnfitError: EXIT_FAILED,
    MeasureError: EXIT_FAILED,
    Stopped: EXIT_FAILED,
    FleetStopped: EXIT_FAILED,
    LabError: EXIT_FAILED,
    BadRequestError: EXIT_USAGE,
}
"""1: the router could not be measured, or the measurements support no fit."""

app = command_line(
    "xtc-train",
    about="Measure what a host does at each CPU cap, fit its model, and design its loop.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, configuration or file.",
)
for command in (sweep, fit, design, report, validate, compare, transfer, mix, fleet):
    app.command()(command)


def main() -> None:
    """Run the command line on one CPU: the measured host needs the others."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with report_errors("xtc-train", TRAINING_CODES):
        app()


if __name__ == "__main__":
    main()
