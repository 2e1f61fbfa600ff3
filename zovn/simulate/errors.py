"""Errors of the simulator.

XtcError
├── ConfigError     a scenario that cannot be simulated (common/errors.py)
└── EngineError     the compiled engine is missing, or has failed
"""

from common.errors import XtcError


class EngineError(XtcError):
    """The compiled engine is missing, or has failed: what happened, and how to fix it."""

    def __init__(self, what: str, problem: str, fix: str = "") -> None:
        self.what, self.problem, self.fix = what, problem, fix
        super().__init__(f"{what}: {problem}" + (f" ({fix})" if fix else ""))
