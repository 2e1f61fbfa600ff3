"""The exit codes of the commands of xtc and xtc-train, by kind of error."""

from types import MappingProxyType

from common import command
from common.command import EXIT_FAILED, EXIT_UNREACHABLE, EXIT_USAGE, Codes
from models import ModelError
from xtc.errors import ActuatorError, JournalError, Refused, TakenOver, Unreachable

EXIT_TAKEN_OVER = 4
"""The daemon ended because its state directory was taken over."""

CODES: Codes = MappingProxyType(
    {
        **command.CODES,
        ModelError: EXIT_USAGE,
        Refused: EXIT_FAILED,
        JournalError: EXIT_FAILED,
        TakenOver: EXIT_TAKEN_OVER,
        ActuatorError: EXIT_FAILED,
        Unreachable: EXIT_UNREACHABLE,
    }
)
"""The exit code of each kind of error; the most specific class counts, as with `except`."""
