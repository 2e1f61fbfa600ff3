"""The typed errors of training; each carries its data and says what to do.

TrainingError
├── RecordingError   a file of samples that cannot be used: file, line, column
├── SampleError      an impossible sample
├── UnfitError       samples that cannot support a fit: says what to measure
│   └── TransferError    a known curve that cannot be scaled to them: which cap disagrees
├── DesignError      a specification without matching gains
├── OptionError      an unusable value of an option
├── ExportError      files of a report that cannot be written
├── FleetFileError   a list of hosts that cannot be used: file, field
├── FleetPathError   a folder or file of a fleet's results that cannot be used
└── FleetStopped     a fleet that was stopped; running it again resumes
"""


class TrainingError(Exception):
    """The root: everything that training raises on purpose."""


class SampleError(TrainingError, ValueError):
    """An impossible sample: which field, what is wrong, and how to fix it."""

    def __init__(self, field: str, problem: str, fix: str) -> None:
        self.field, self.problem, self.fix = field, problem, fix
        super().__init__(f"{field}: {problem} ({fix})")


class RecordingError(TrainingError):
    """A file of samples that cannot be used: where, what is wrong, and how to fix it."""

    def __init__(self, path: str, line: int, column: str, problem: str, fix: str) -> None:
        self.path, self.line, self.column = path, line, column
        self.problem, self.fix = problem, fix
        where = f"{path}, line {line}, {column}" if line else f"{path}: {column}"
        super().__init__(f"{where}: {problem} ({fix})")


class UnfitError(TrainingError):
    """Samples that cannot support a fit: what they lack, and what to measure."""

    def __init__(self, lacks: str, problem: str, measure: str) -> None:
        self.lacks, self.problem, self.measure = lacks, problem, measure
        super().__init__(f"{problem}: {measure}")


class TransferError(UnfitError):
    """A known curve that cannot be scaled to a new host; ``cap`` (CPUs) is the cause."""

    def __init__(self, lacks: str, problem: str, measure: str, *, cap: float | None = None) -> None:
        self.cap = cap
        super().__init__(lacks, problem, measure)


class DesignError(TrainingError, ValueError):
    """A specification that no gains meet: which figure and value, what is wrong, and the fix."""

    def __init__(self, field: str, problem: str, fix: str, *, value: str = "") -> None:
        self.field, self.problem, self.fix, self.value = field, problem, fix, value
        super().__init__(
            f"{field}: {value} {problem} ({fix})" if value else f"{field}: {problem} ({fix})"
        )

    def typed(self, option: str, value: str) -> "DesignError":
        """Return the same error in an operator's terms: the option, and what was typed."""
        return DesignError(option, self.problem, self.fix, value=value)


class OptionError(TrainingError, ValueError):
    """An unusable value of an option: which one, what is wrong, and how to fix it."""

    def __init__(self, option: str, problem: str, fix: str) -> None:
        self.option, self.problem, self.fix = option, problem, fix
        super().__init__(f"{option}: {problem} ({fix})")


class ExportError(TrainingError):
    """Files of a report that cannot be written: where, why, and how to fix it."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        self.fix = "give --data a folder that this user may write"
        super().__init__(f"--data: {path}: {problem} ({self.fix})")


class FleetFileError(TrainingError, ValueError):
    """A list of hosts that cannot be used: file, field, what is wrong, and the fix."""

    def __init__(self, path: str, field: str, problem: str, fix: str) -> None:
        self.path, self.field, self.problem, self.fix = path, field, problem, fix
        super().__init__(f"{path}: {field}: {problem} ({fix})")


class FleetPathError(TrainingError):
    """A folder or file of a fleet's results that cannot be used: where, why, and the fix."""

    def __init__(self, path: str, problem: str, fix: str) -> None:
        self.path, self.problem, self.fix = path, problem, fix
        super().__init__(f"{path}: {problem} ({fix})")


class FleetStopped(TrainingError):  # noqa: N818  the operator asked for it: no error
    """The operator stopped the fleet's sweeps; their recordings stay on the hosts."""

    def __init__(self) -> None:
        super().__init__("stopped; run the same command again: each sweep goes on with its file")
