"""The one tree of typed errors; each carries its data and says what to do.

XtcError
├── UnitError              a quantity that cannot be read
├── ConfigError            a configuration that names a wrong field or value
│   └── ConfigErrors       several of these
├── MeterError             counters of the kernel that cannot be understood
├── ActuatorError          a cap that could not be read, written or restored
│   ├── Transient          worth another try at the next tick
│   │   ├── Overtaken      somebody changed the cap after it was read as the original
│   │   └── UnderWay       it was ordered, and is not confirmed yet
│   ├── Gone               the router's cgroup, thread or domain no longer exists
│   └── Permanent          another try gives the same answer
│       ├── Unsupported    this host cannot do it at all
│       ├── Denied         the daemon lacks a privilege
│       └── Admission      the kernel has no CPU time left to promise
├── JournalError           originals or leases could not be made durable
│   └── TakenOver          the state directory was taken from this daemon by force
├── Busy                   another daemon holds the state directory
├── Unreachable            no daemon answers at the socket
└── Refused                a request that the manager will not carry out
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar


class XtcError(Exception):
    """The root: everything that xtc raises on purpose."""


class UnitError(XtcError, ValueError):
    """A quantity that cannot be read."""

    def __init__(self, field: str, got: str, expected: str) -> None:
        self.field, self.got, self.expected = field, got, expected
        super().__init__(f"{field}: {got!r} is not {expected}")


class ConfigError(XtcError):
    """A configuration that cannot be used: where, what is wrong, and how to fix it."""

    def __init__(self, where: str, problem: str, fix: str = "", *, at: str = "") -> None:
        self.where, self.problem, self.fix, self.at = where, problem, fix, at
        place = f"{at}: {where}" if at and where else at or where
        super().__init__(f"{place}: {problem}" + (f" ({fix})" if fix else ""))

    def placed(self, at: str) -> "ConfigError":
        """Return the same mistake with the file and line at which its key stands."""
        return ConfigError(self.where, self.problem, self.fix, at=self.at or at)


class ConfigErrors(ConfigError):  # noqa: N818
    """All mistakes of a configuration, where it has several."""

    def __init__(self, mistakes: Sequence[ConfigError]) -> None:
        first = mistakes[0]
        super().__init__(first.where, first.problem, first.fix, at=first.at)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.mistakes))


def mistakes_of(error: ConfigError) -> tuple[ConfigError, ...]:
    """Return the mistakes that an error holds: itself, or each of several."""
    return error.mistakes if isinstance(error, ConfigErrors) else (error,)


class Mistakes:
    """Collects the mistakes of a configuration, so that one does not hide the next."""

    def __init__(self, found: Iterable[ConfigError] = ()) -> None:
        self.found = list(found)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the mistakes that the block raises, and go on after it."""
        try:
            yield
        except ConfigError as error:
            self.found.extend(mistakes_of(error))

    def check(self) -> None:
        """Raise what was found.

        Raises:
            ConfigError: the one mistake, or all of them as `ConfigErrors`.
        """
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            raise ConfigErrors(self.found)


class MeterError(XtcError):
    """A snapshot of a file of counters that cannot be understood; the whole of it is rejected."""

    def __init__(self, line: int, problem: str, *, file: str = "/proc/net/dev") -> None:
        self.line, self.problem = line, problem
        super().__init__(f"{file} line {line}: {problem}")


class ActuatorError(XtcError):
    """A cap that could not be read, written or restored."""

    kind: ClassVar[str] = "error"

    def __init__(self, target: str, problem: str, fix: str = "") -> None:
        self.target, self.problem, self.fix = target, problem, fix
        super().__init__(f"{target}: {problem}" + (f" ({fix})" if fix else ""))


class Transient(ActuatorError):  # noqa: N818  the tree reads better without a suffix on every leaf
    """Worth another try at the next tick."""

    kind = "transient"


class Overtaken(Transient):
    """Somebody changed the cap after it was read as the original: that is to be read anew."""


class UnderWay(Transient):
    """It was ordered, and is not confirmed yet: only time tells."""


class Gone(ActuatorError):  # noqa: N818
    """The router's cgroup, thread or domain no longer exists."""

    kind = "gone"


class Permanent(ActuatorError):  # noqa: N818
    """Another try gives the same answer."""

    kind = "permanent"


class Unsupported(Permanent):
    """This host cannot do it at all."""

    kind = "unsupported"


class Denied(Permanent):
    """The daemon lacks a privilege."""

    kind = "denied"


class Admission(Permanent):
    """The kernel has no CPU time left to promise."""

    kind = "admission"


class JournalError(XtcError):
    """Originals or leases could not be made durable, so no new cap may be written."""


class TakenOver(JournalError):  # noqa: N818
    """The state directory was taken from this daemon by force: it may write nothing any longer."""


class Busy(XtcError):  # noqa: N818
    """Another daemon holds the state directory."""


class Unreachable(XtcError):  # noqa: N818
    """No daemon answers at the socket."""


class Refused(XtcError):  # noqa: N818
    """A request that the manager will not carry out: a code for machines, words for people."""

    def __init__(self, code: str, field: str, problem: str, fix: str = "") -> None:
        self.code, self.field, self.problem, self.fix = code, field, problem, fix
        super().__init__(f"{field}: {problem}" + (f" ({fix})" if fix else ""))
