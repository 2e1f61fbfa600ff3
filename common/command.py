"""Common parts of the command lines: --version, exit codes, and output of errors."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated

import typer
from typer.core import TyperGroup

from common import __version__
from common.errors import XtcError
from common.logs import set_up_logging
from common.printable import say

EXIT_FAILED = 1
"""The request was refused, or part of the work could not be done."""
EXIT_USAGE = 2
"""The command line, configuration or a file is wrong."""
EXIT_UNREACHABLE = 3
"""No daemon answers."""

Codes = Mapping[type[Exception], int]
CODES: Codes = MappingProxyType({XtcError: EXIT_USAGE})
"""The exit code of each kind of error; the most specific class counts, as with `except`."""


def command_line(
    program: str, *, about: str, epilog: str, group: type[TyperGroup] | None = None
) -> typer.Typer:
    """Return a command line without commands that handles --version and logs only errors.

    Args:
        program: its name.
        about: the first paragraph of its help.
        epilog: the last one.
        group: the class of its list of commands; None is typer's own.
    """
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
            typer.echo(f"{program} {__version__}")
            raise typer.Exit

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=show, is_eager=True, help="Show the version.")
        ] = False,
    ) -> None:
        """Handle the options before a command; only the daemon logs successes."""
        del version  # its callback has done the work
        set_up_logging(json=False, level="error")

    return app


@contextmanager
def report_errors(program: str, codes: Codes = CODES) -> Iterator[None]:
    """Turn typed errors into lines on standard error, one per mistake, and an exit code.

    Standard output stays empty, even with --json: its reader checks the exit code.

    Raises:
        SystemExit: an error of one of the kinds given, with the code of the most specific one.
    """
    try:
        yield
    except tuple(codes) as error:
        for line in str(error).split("\n"):
            say(f"{program}: {line}", err=True)
        sys.exit(exit_code(error, codes))


def exit_code(error: Exception, codes: Codes = CODES) -> int:
    """Return the exit code of the most specific class that has one.

    Raises:
        LookupError: none has.
    """
    for kind in type(error).__mro__:
        if kind in codes:
            return codes[kind]
    raise LookupError(type(error))
