"""The tree of typed errors; each carries its data and says what to do.

ZovnError
├── CheckError     an endpoint that cannot be read
├── CoreError      the compiled core is not built, or not the expected version
│   └── EngineError the simulator's is missing, or has failed (zovn/simulate/errors.py)
├── ListenError    the exporter's address cannot be listened on now
├── SettingsError  a setting of the switch, or of a port, that cannot be used
└── SwitchError    the switch refuses a command
    └── SwitchAway no switch answers

Mistakes in a configuration are those of common/errors.py.
"""


class ZovnError(Exception):
    """The root: every error that zovn raises on purpose."""


class CheckError(ZovnError):
    """An endpoint that cannot be read: its namespace, and why."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(f"{where}: {problem}")


class CoreError(ZovnError):
    """The compiled core is not built, or not the expected version."""

    def __init__(self, what: str, problem: str, fix: str = "") -> None:
        self.what, self.problem, self.fix = what, problem, fix
        super().__init__(f"{what}: {problem}" + (f" ({fix})" if fix else ""))


class ListenError(ZovnError):
    """The exporter's address cannot be listened on, perhaps not yet: retry later."""

    def __init__(self, listen: str, problem: str) -> None:
        self.listen, self.problem = listen, problem
        super().__init__(f"--listen: {listen}: {problem} (name a free address of this machine)")


class SettingsError(ZovnError):
    """A setting that cannot be used: which one, and what is allowed."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class SwitchError(ZovnError):
    """The running switch refuses a command: names the port or command, and says why."""

    def __init__(self, problem: str, fix: str = "") -> None:
        self.problem, self.fix = problem, fix
        super().__init__(problem + (f" ({fix})" if fix else ""))


class SwitchAway(SwitchError):  # noqa: N818  the tree reads better without a suffix on every leaf
    """No switch answers at its control socket."""
