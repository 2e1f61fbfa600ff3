"""The tree of typed errors; each carries its data and says what to do.

XcoError
├── UnitError              a quantity that cannot be read
├── ConfigError            a file or other input with a wrong key or value
│   └── TopologyError      a topology that cannot be coordinated
│       └── TreeError      its switches' present state, not its file; retry may help
├── CoreError              the compiled core is not built, or not the expected version
├── WireError              a datagram that is not obeyed
│   ├── Malformed          not a message of this protocol
│   ├── Forged             its authenticator does not match
│   └── Stale              of a lower epoch, or overtaken, or a duplicate
├── GateError              a gate that could not be made, opened, closed or removed
│   ├── Denied             a privilege is lacking
│   ├── Gone               the interface no longer exists
│   └── Unsupported        this kernel does not support it
├── PortError              a switch port whose counters cannot be read now
│   ├── PortGone           the port, its queue or its interface does not exist
│   ├── PortUncounted      it exists, but does not count what is needed
│   ├── SwitchAway         its switch cannot be reached, or does not answer in time
│   ├── SwitchGarbled      its switch answers what the protocol does not allow
│   ├── SwitchRefused      its switch answers with an error
│   └── SwitchUntrusted    its switch and the agent do not trust each other's certificates
└── ControllerError        the controller, its loop or a part's metrics cannot start or continue
    └── NoAnswerError nothing runs where the command line looked for it (xco/cli/command.py)
"""


class XcoError(Exception):
    """The root: every error that xco raises on purpose."""


class UnitError(XcoError, ValueError):
    """A quantity that cannot be read."""

    def __init__(self, field: str, got: str, expected: str) -> None:
        self.field, self.got, self.expected = field, got, expected
        super().__init__(f"{field}: {got!r} is not {expected}")


class ConfigError(XcoError):
    """A configuration that cannot be used: file and key, what is wrong, and how to fix it."""

    def __init__(self, file: str, key: str, problem: str, fix: str = "") -> None:
        self.file, self.key, self.problem, self.fix = file, key, problem, fix
        where = ": ".join(part for part in (file, key) if part)
        super().__init__(f"{where}: {problem}" + (f" ({fix})" if fix else ""))


class TopologyError(ConfigError):
    """A topology that cannot be coordinated; `key` is the table and key as in its file."""


class TreeError(TopologyError):
    """The switches' present state is unreadable or cannot be coordinated; the file may be right."""


class CoreError(XcoError):
    """The compiled core is not built, or not the expected version."""

    def __init__(self, what: str, problem: str, fix: str = "") -> None:
        self.what, self.problem, self.fix = what, problem, fix
        super().__init__(f"{what}: {problem}" + (f" ({fix})" if fix else ""))


class WireError(XcoError):
    """A datagram that is not obeyed: names the field, and what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


class Malformed(WireError):  # noqa: N818  the tree reads better without a suffix on every leaf
    """Not a message of this protocol, or not of this version."""


class Forged(WireError):  # noqa: N818
    """Its authenticator does not match: another key, or altered in transit."""


class Stale(WireError):  # noqa: N818
    """Of a lower epoch, or overtaken by a later message, or a duplicate."""


class GateError(XcoError):
    """A gate that could not be made, opened, closed or removed: names it, and how to fix it."""

    def __init__(self, target: str, problem: str, fix: str = "") -> None:
        self.target, self.problem, self.fix = target, problem, fix
        super().__init__(f"{target}: {problem}" + (f" ({fix})" if fix else ""))


class Denied(GateError):  # noqa: N818
    """A privilege is lacking."""


class Gone(GateError):  # noqa: N818
    """The interface no longer exists."""


class Unsupported(GateError):  # noqa: N818
    """This kernel does not support it."""


class PortError(XcoError):
    """A switch port whose counters cannot be read now: names port or switch, and how to fix it."""

    def __init__(self, port: str, problem: str, fix: str = "") -> None:
        self.port, self.problem, self.fix = port, problem, fix
        super().__init__(f"{port}: {problem}" + (f" ({fix})" if fix else ""))


class PortGone(PortError):  # noqa: N818
    """The port, its queue or its interface does not exist."""


class PortUncounted(PortError):  # noqa: N818
    """The port exists, but does not count what is needed."""


class SwitchAway(PortError):  # noqa: N818
    """The port's switch cannot be reached, or does not answer in time."""


class SwitchGarbled(PortError):  # noqa: N818
    """The port's switch answers what the protocol does not allow."""


class SwitchRefused(PortError):  # noqa: N818
    """The port's switch answers with an error."""


class SwitchUntrusted(PortError):  # noqa: N818
    """The port's switch does not prove who it is, or does not accept who the agent is."""


class ControllerError(XcoError):
    """The controller, its loop or a part's metrics cannot start or continue."""

    def __init__(self, what: str, problem: str, fix: str = "") -> None:
        self.what, self.problem, self.fix = what, problem, fix
        super().__init__(f"{what}: {problem}" + (f" ({fix})" if fix else ""))
