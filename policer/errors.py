"""The policer's typed errors; each carries its data and tells what to do.

PolicerError
├── Invalid            the input contradicts itself or exceeds what exists; names fields
├── Unknown            host, router, contract, token or event does not exist
├── Taken              the name is already in use
├── Stale              the entry was changed since it was read (ETag)
│   └── PlanStale      the fleet was changed since the plan was made
├── KeyReused          the idempotency key was used with another request
├── Unauthenticated    no token, or an unknown one
├── Forbidden          the token has no permission for this
├── NotGranted         an issuer's token to which the settings grant nothing
├── OutOfReach         a limited token, for an operation that takes one without limits
├── IssuerAway         the keys of an issuer of tokens are unavailable
├── NotLeading         another policer leads and sends the orders
├── SettingsError      a configuration that cannot be used
│   └── SettingsErrors several mistakes of one
├── ListenError        the policer's own address cannot be listened on now
├── FileMistakes       all mistakes of a fleet file, with their lines
├── MissingExtra       a package of the extra `policer` is not installed
├── Unanswered         no policer answers the command line
├── Rejected           the policer refused a request of the command line
├── StoreError         the database
│   ├── StoreBusy      locked for longer than the timeout
│   ├── StoreGone      cannot be reached or read
│   └── StoreOutdated  of another version than this program's
└── LinkError          a daemon
    ├── LinkTimeout    did not answer in time
    └── LinkRefused    refused the request, with a code
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """Problem of one field, and its fix."""

    field: str
    problem: str
    fix: str


class PolicerError(Exception):
    """The root: all errors that the policer raises deliberately."""


class Invalid(PolicerError):  # noqa: N818  the tree reads better without a suffix on every leaf
    """The input contradicts itself or exceeds what exists."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.field}: {p.problem} ({p.fix})" for p in self.problems))


class Unknown(PolicerError):  # noqa: N818
    """The entry does not exist."""

    def __init__(self, kind: str, name: str, fix: str = "") -> None:
        self.kind, self.name, self.fix = kind, name, fix
        super().__init__(f"no {kind} {name}" + (f" ({fix})" if fix else ""))


class Taken(PolicerError):  # noqa: N818
    """The name is already in use."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{kind} {name} already exists (change it with PUT and If-Match)")


class Stale(PolicerError):  # noqa: N818
    """The entry was changed since it was read."""

    def __init__(self, kind: str, name: str, version: int) -> None:
        self.kind, self.name, self.version = kind, name, version
        super().__init__(f"{kind} {name} is at version {version} now (read it again)")


class PlanStale(Stale):
    """Something that a plan depends on was changed since it was made."""

    def __init__(self, plan: str, version: int) -> None:
        super().__init__("plan", plan, version)
        problem = "what it rests on has changed since it was made"
        self.args = (f"plan {plan}: {problem} (plan again)",)


class KeyReused(PolicerError):  # noqa: N818
    """The idempotency key was used with another request."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"idempotency key {key} came with another request (choose a new one)")


class Unauthenticated(PolicerError):  # noqa: N818
    """There is no token, or it is unknown."""


class Forbidden(PolicerError):  # noqa: N818
    """The token has no permission for this."""

    def __init__(self, needed: str) -> None:
        self.needed = needed
        super().__init__(f"this takes a token with the scope {needed}")


class NotGranted(PolicerError):  # noqa: N818
    """The settings grant nothing to the bearer of an issuer's token."""

    def __init__(self, claim: str) -> None:
        self.claim = claim
        super().__init__(f"nothing is granted to what {claim} in this token has")


class OutOfReach(PolicerError):  # noqa: N818
    """A token that is limited to some hosts, routers or tenants may not do this."""

    def __init__(self) -> None:
        super().__init__("this takes a token without limits of hosts, routers and tenants")


class IssuerAway(PolicerError):  # noqa: N818
    """An issuer's tokens cannot be verified, since its keys are unavailable."""

    def __init__(self, issuer: str, problem: str) -> None:
        self.issuer, self.problem = issuer, problem
        fix = "the policer's own tokens work on"
        super().__init__(f"the keys of {issuer} cannot be had: {problem} ({fix})")


class NotLeading(PolicerError):  # noqa: N818
    """Another policer leads."""


class SettingsError(PolicerError):
    """A configuration that cannot be used."""

    def __init__(self, where: str, problem: str, fix: str = "") -> None:
        self.where, self.problem, self.fix = where, problem, fix
        super().__init__(f"{where}: {problem}" + (f" ({fix})" if fix else ""))


class SettingsErrors(SettingsError):  # noqa: N818
    """Several mistakes of the settings, each on its own line; the fields are those of the first."""

    def __init__(self, mistakes: Sequence[SettingsError]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(mistakes[0].where, mistakes[0].problem, mistakes[0].fix)
        self.args = ("\n".join(map(str, mistakes)),)


class ListenError(PolicerError):
    """The policer's own address cannot be listened on, perhaps not yet: retry later."""

    def __init__(self, listen: str, problem: str) -> None:
        self.listen, self.problem = listen, problem
        fix = "name a free address of this machine"
        super().__init__(f"server.listen: {listen}: {problem} ({fix})")


class FileMistakes(PolicerError):  # noqa: N818
    """All mistakes of a fleet file, each on its own line."""

    def __init__(self, mistakes: Iterable[SettingsError]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class MissingExtra(PolicerError):  # noqa: N818
    """A package of the extra `policer` is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package
        fix = "install it: apt install xtc-policer, or pip install 'xtc[policer]'"
        super().__init__(f"{package} is not installed, which the policer needs ({fix})")


class Unanswered(PolicerError):  # noqa: N818
    """No policer answers."""

    def __init__(self, url: str, problem: str) -> None:
        self.url, self.problem = url, problem
        super().__init__(f"{url}: {problem} (is it running? name another with --url)")


class Rejected(PolicerError):  # noqa: N818
    """The policer refused: HTTP status, and its message for each field."""

    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


class StoreError(PolicerError):
    """The database failed."""


class StoreBusy(StoreError):  # noqa: N818
    """Locked for longer than the timeout."""


class StoreGone(StoreError):  # noqa: N818
    """It cannot be reached or read."""


class StoreOutdated(StoreError):  # noqa: N818
    """Of another version than this program's."""


class LinkError(PolicerError):
    """Communication with a daemon failed."""


class LinkTimeout(LinkError):  # noqa: N818
    """It did not answer in time."""


class LinkRefused(LinkError):  # noqa: N818
    """It refused the request."""

    def __init__(self, code: str, field: str, problem: str, fix: str = "") -> None:
        self.code, self.field, self.problem, self.fix = code, field, problem, fix
        super().__init__(f"{field}: {problem}" + (f" ({fix})" if fix else ""))
