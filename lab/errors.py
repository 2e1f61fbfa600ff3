"""What can go wrong in the lab, as one small tree of typed errors.

LabError
├── MissingRequirementError   this machine cannot hold a lab: what is missing, as sentences
├── BadRequestError           a name, kind, rate or share that makes no sense
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
    """A request that names the field, what it got and what would do."""

    def __init__(self, field: str, got: object, expected: str) -> None:
        self.field, self.got, self.expected = field, got, expected
        super().__init__(f"{field}: {got!r} is not {expected}")


class ProgramError(LabError):
    """A lab program died or hung: which one, and its last words."""

    def __init__(self, program: str, problem: str, stderr: str = "") -> None:
        self.program, self.problem, self.stderr = program, problem, stderr
        super().__init__(
            f"{program}: {problem}" + (f": {stderr.strip()}" if stderr.strip() else "")
        )
