"""The one tree of typed errors; each carries its data and a fix.

XtcError
├── UnitError              a quantity that cannot be read
├── ConfigError            a configuration that names a wrong field or value
│   └── ConfigErrors       several of these
├── MeterError             counters of the kernel that cannot be understood
├── ActuatorError          a cap that could not be read, written or restored
│   ├── Transient          a retry at the next tick may succeed
│   │   ├── Overtaken      the cap was changed after the original was read
│   │   └── UnderWay       ordered, but not confirmed yet
│   ├── Gone               the router's cgroup, thread or domain no longer exists
│   └── Permanent          a retry cannot succeed
│       ├── Unsupported    this host cannot do it at all
│       ├── Denied         the daemon lacks a privilege
│       └── Admission      the kernel has no CPU time left to reserve
├── JournalError           originals or leases could not be made durable
│   └── TakenOver          the state directory was taken from this daemon by force
├── Busy                   another daemon holds the state directory
├── Unreachable            no daemon answers at the socket
└── Refused                a request that the manager refuses
"""

from typing import ClassVar

from common.errors import XtcError


class MeterError(XtcError):
    """A snapshot of counters that cannot be parsed; the whole of it is rejected."""

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
    """A retry at the next tick may succeed."""

    kind = "transient"


class Overtaken(Transient):
    """Another process changed the cap after it was read as the original: read it again."""


class UnderWay(Transient):
    """Ordered, but not confirmed yet."""


class Gone(ActuatorError):  # noqa: N818
    """The router's cgroup, thread or domain no longer exists."""

    kind = "gone"


class Permanent(ActuatorError):  # noqa: N818
    """A retry cannot succeed."""

    kind = "permanent"


class Unsupported(Permanent):
    """This host cannot do it at all."""

    kind = "unsupported"


class Denied(Permanent):
    """The daemon lacks a privilege."""

    kind = "denied"


class Admission(Permanent):
    """The kernel has no CPU time left to reserve."""

    kind = "admission"


class JournalError(XtcError):
    """Originals or leases could not be made durable, so no new cap may be written."""


class TakenOver(JournalError):  # noqa: N818
    """The state directory was taken from this daemon by force: it may no longer write."""


class Unreachable(XtcError):  # noqa: N818
    """No daemon answers at the socket."""


class Refused(XtcError):  # noqa: N818
    """A request that the manager refuses: a code for machines, text for people."""

    def __init__(self, code: str, field: str, problem: str, fix: str = "") -> None:
        self.code, self.field, self.problem, self.fix = code, field, problem, fix
        super().__init__(f"{field}: {problem}" + (f" ({fix})" if fix else ""))
