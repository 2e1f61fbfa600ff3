"""What all commands of xco share: --version, exit codes, error output, the log."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import structlog
import typer
from typer.core import TyperGroup

from xco import __version__
from xco.errors import ControllerError, CoreError, GateError, TreeError, WireError, XcoError

EXIT_FAILED = 1
"""The request was refused, or the command failed."""
EXIT_USAGE = 2
"""The command line, the configuration or an input file is wrong."""
EXIT_UNREACHABLE = 3
"""No controller or coordinator answers."""


class NobodyAnswersError(ControllerError):
    """None of the requested parts (controller, coordinator) runs on this machine."""


CODES: Mapping[type[Exception], int] = MappingProxyType(
    {
        XcoError: EXIT_USAGE,
        CoreError: EXIT_FAILED,
        WireError: EXIT_FAILED,
        GateError: EXIT_FAILED,
        ControllerError: EXIT_FAILED,
        TreeError: EXIT_FAILED,
        NobodyAnswersError: EXIT_UNREACHABLE,
    }
)
"""The exit code of each kind of error; the nearest base class counts, as with `except`."""

ConfigPath = Annotated[
    Path, typer.Option("--config", "-c", envvar="XCO_CONFIG", help="The settings.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def command_line(group: type[TyperGroup], *, about: str, epilog: str) -> typer.Typer:
    """Return a command line without commands that answers --version and logs only errors."""
    app = typer.Typer(
        cls=group,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=about,
        epilog=epilog,
    )

    def show(wanted: bool) -> None:
        if wanted:
            typer.echo(f"xco {__version__}")
            raise typer.Exit

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=show, is_eager=True, help="Show the version.")
        ] = False,
    ) -> None:
        """Handle the options before a command; only `run` logs below the error level."""
        del version  # its callback has handled it
        set_up_logging("error")

    return app


def set_up_logging(level: str) -> None:
    """Log to standard error: aligned words on a terminal, JSON for the journal."""
    terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )


@contextmanager
def spoken() -> Iterator[None]:
    """Turn typed errors into one line on standard error and an exit code.

    Standard output stays empty, also with --json: a program that reads it checks the exit code.

    Raises:
        SystemExit: with the error's exit code.
    """
    try:
        yield
    except tuple(CODES) as error:
        typer.echo(f"xco: {error}", err=True)
        sys.exit(exit_code(error))


def exit_code(error: Exception) -> int:
    """Return the exit code of the nearest class that has one.

    Raises:
        LookupError: no class has one.
    """
    for kind in type(error).__mro__:
        if kind in CODES:
            return CODES[kind]
    raise LookupError(type(error))
