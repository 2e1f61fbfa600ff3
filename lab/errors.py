"""The typed errors of the lab.

LabError
├── MissingRequirementError   this machine cannot hold a lab: what is missing, as sentences
├── BadRequestError           a name, kind, rate or share that is invalid
└── ProgramError              a lab program died, or did not become ready
"""

from collections.abc import Sequence


class LabError(Exception):
    """The root: everything that the lab raises on purpose."""


class MissingRequirementError(LabError):
    """This machine cannot hold a lab."""

    def __init__(self, missing: Sequence[str]) -> None:
        self.missing = tuple(missing)
        super().__init__("the lab cannot run here: " + "; ".join(self.missing))


class BadRequestError(LabError, ValueError):
    """An invalid request; it has the field, the value and what is accepted."""

    def __init__(self, field: str, got: object, expected: str) -> None:
        self.field, self.got, self.expected = field, got, expected
        super().__init__(f"{field}: {got!r} is not {expected}")


class ProgramError(LabError):
    """A lab program died or hung: its name, and its last output."""

    def __init__(self, program: str, problem: str, stderr: str = "") -> None:
        self.program, self.problem, self.stderr = program, problem, stderr
        super().__init__(
            f"{program}: {problem}" + (f": {stderr.strip()}" if stderr.strip() else "")
        )
