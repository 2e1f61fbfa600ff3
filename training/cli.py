"""xtc-train: the command line of sweeping, fitting, designing, reporting and validating."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

from lab.errors import BadRequestError, LabError
from models import ModelError
from training.cli_fit import design, fit, report
from training.cli_sweep import sweep
from training.cli_validate import validate
from training.errors import TrainingError, UnfitError
from training.watch import MeasureError, Stopped
from xtc import __version__
from xtc.daemon import set_up_logging
from xtc.errors import ActuatorError, JournalError, Refused, XtcError

EXIT_FAILED = 1
"""It could not be measured, or what was measured supports no fit."""
EXIT_USAGE = 2
"""What was typed, configured or given as a file is wrong."""
FAILURES = (
    *(UnfitError, MeasureError, Stopped),
    *(Refused, JournalError, ActuatorError),
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure what a host does at each CPU cap, fit its model, and design its loop.",
    epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, configuration or file.",
)
for command in (sweep, fit, design, report, validate):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"xtc-train {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""
    del version  # its callback has done the work
    set_up_logging(json=False, level="error")


@contextmanager
def _spoken() -> Iterator[None]:
    """Turn typed errors into one line on standard error and an exit code."""
    try:
        yield
    except FAILURES as error:
        _leave(error, EXIT_FAILED)
    except (TrainingError, XtcError, ModelError, BadRequestError) as error:
        _leave(error, EXIT_USAGE)
    except LabError as error:
        _leave(error, EXIT_FAILED)
    except BrokenPipeError:
        sys.exit(0)


def _leave(error: Exception, code: int) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"xtc-train: {error}", markup=False)
    sys.exit(code)


def main() -> None:
    """Run the command line."""
    with _spoken():
        app()


if __name__ == "__main__":
    main()
