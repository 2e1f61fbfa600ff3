"""The typed errors of the models; each carries its data and a fix.

ModelError
├── InvalidModelError   numbers that describe no host
├── OutOfRange          a throughput or a cap outside of a model's range
└── ModelFileError      a model file that cannot be used
"""


class ModelError(Exception):
    """The root: everything that the models raise on purpose."""


class InvalidModelError(ModelError, ValueError):
    """Numbers that describe no host: which one, what is wrong, and the fix."""

    def __init__(self, field: str, problem: str, fix: str) -> None:
        self.field, self.problem, self.fix = field, problem, fix
        super().__init__(f"{field}: {problem} ({fix})")


class OutOfRange(ModelError, ValueError):  # noqa: N818  reads as what it tells, as xtc's leaves do
    """A query outside of the model's range; ``minimum`` and ``maximum`` are its bounds."""

    def __init__(self, quantity: str, value: float, minimum: float, maximum: float) -> None:
        self.quantity, self.value = quantity, value
        self.minimum, self.maximum = minimum, maximum
        super().__init__(f"{quantity}: {value:g} is not within {minimum:g} to {maximum:g}")


class ModelFileError(ModelError):
    """A model file that cannot be used: file, field, what is wrong, and the fix."""

    def __init__(self, path: str, field: str, problem: str, fix: str) -> None:
        self.path, self.field, self.problem, self.fix = path, field, problem, fix
        super().__init__(f"{path}: {field}: {problem} ({fix})")
