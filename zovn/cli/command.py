"""What all commands of zovn share: exit codes and common options."""

from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from common.command import EXIT_FAILED, EXIT_UNREACHABLE, EXIT_USAGE, Codes
from common.errors import XtcError
from zovn.errors import CheckError, SwitchAway, ZovnError
from zovn.switch.config import DEFAULT_CONTROL

CODES: Codes = MappingProxyType(
    {
        XtcError: EXIT_USAGE,
        ZovnError: EXIT_FAILED,
        CheckError: EXIT_USAGE,
        SwitchAway: EXIT_UNREACHABLE,
    }
)
"""The exit code of each kind of error; the most specific class counts, as with `except`."""

CONTROL = Path(DEFAULT_CONTROL)

Control = Annotated[
    Path, typer.Option("--control", envvar="ZOVN_CONTROL", help="Control socket of the switch.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
