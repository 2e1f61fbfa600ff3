"""What all commands of xco share: exit codes and common options."""

from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from common.command import EXIT_FAILED, EXIT_UNREACHABLE, EXIT_USAGE, Codes
from xco.errors import (
    ControllerError,
    CoreError,
    GateError,
    PortError,
    TreeError,
    WireError,
    XcoError,
)


class NoAnswerError(ControllerError):
    """None of the requested parts (controller, coordinator) runs on this machine."""


CODES: Codes = MappingProxyType(
    {
        XcoError: EXIT_USAGE,
        CoreError: EXIT_FAILED,
        WireError: EXIT_FAILED,
        GateError: EXIT_FAILED,
        PortError: EXIT_FAILED,
        ControllerError: EXIT_FAILED,
        TreeError: EXIT_FAILED,
        NoAnswerError: EXIT_UNREACHABLE,
    }
)
"""The exit code of each kind of error; the most specific class counts, as with `except`."""

ConfigPath = Annotated[
    Path, typer.Option("--config", "-c", envvar="XCO_CONFIG", help="The settings.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
