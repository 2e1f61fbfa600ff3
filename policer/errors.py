"""The one tree of the policer's typed errors; each carries its data and says what to do.

PolicerError
├── Invalid            what was given contradicts itself or exceeds what there is; names fields
├── Unknown            there is no such host, router, contract, token or event
├── Taken              there is one of that name already
├── Stale              it was changed since it was read (ETag)
├── KeyReused          an idempotency key that came with another request before
├── Unauthenticated    no token, or none that is known
├── Forbidden          a token that may not do this
├── NotGranted         an issuer's token that the settings grant nothing to
├── OutOfReach         a limited token, and what takes one without limits
├── IssuerAway         who signs tokens cannot be asked for its keys
├── NotLeading         another policer leads; orders are its to give
├── SettingsError      a configuration that cannot be used
├── MissingExtra       a package that the extra `policer` installs is not there
├── Unanswered         no policer answers the command line
├── Rejected           the policer would not do what the command line asked
├── StoreError         the database
│   ├── StoreBusy      locked for longer than one waits
│   ├── StoreGone      cannot be reached or read
│   └── StoreOutdated  of another version than this program's
└── LinkError          a daemon
    ├── LinkTimeout    did not answer in time
    └── LinkRefused    refused the request, with a code
"""

from collections.abc import Iterable
from typing import NamedTuple


class Problem(NamedTuple):
    """What is wrong with one field, and what to do."""

    field: str
    problem: str
    fix: str


class PolicerError(Exception):
    """The root: everything that the policer raises on purpose."""


class Invalid(PolicerError):  # noqa: N818  the tree reads better without a suffix on every leaf
    """What was given contradicts itself or exceeds what there is."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.field}: {p.problem} ({p.fix})" for p in self.problems))


class Unknown(PolicerError):  # noqa: N818
    """There is no such thing."""

    def __init__(self, kind: str, name: str, fix: str = "") -> None:
        self.kind, self.name, self.fix = kind, name, fix
        super().__init__(f"no {kind} {name}" + (f" ({fix})" if fix else ""))


class Taken(PolicerError):  # noqa: N818
    """There is one of that name already."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{kind} {name} is there already (change it with PUT and If-Match)")


class Stale(PolicerError):  # noqa: N818
    """It was changed since it was read."""

    def __init__(self, kind: str, name: str, version: int) -> None:
        self.kind, self.name, self.version = kind, name, version
        super().__init__(f"{kind} {name} is at version {version} now (read it again)")


class KeyReused(PolicerError):  # noqa: N818
    """An idempotency key that came with another request before."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"idempotency key {key} came with another request (choose a new one)")


class Unauthenticated(PolicerError):  # noqa: N818
    """No token, or none that is known."""


class Forbidden(PolicerError):  # noqa: N818
    """A token that may not do this."""

    def __init__(self, needed: str) -> None:
        self.needed = needed
        super().__init__(f"this takes a token with the scope {needed}")


class NotGranted(PolicerError):  # noqa: N818
    """An issuer's token whose bearer has nothing that the settings grant anything to."""

    def __init__(self, claim: str) -> None:
        self.claim = claim
        super().__init__(f"nothing is granted to what {claim} in this token has")


class OutOfReach(PolicerError):  # noqa: N818
    """A token that is limited to some hosts, routers or tenants may not do this at all."""

    def __init__(self) -> None:
        super().__init__("this takes a token without limits of hosts, routers and tenants")


class IssuerAway(PolicerError):  # noqa: N818
    """Tokens of an issuer cannot be verified, since its keys cannot be had."""

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


class MissingExtra(PolicerError):  # noqa: N818
    """A package that the extra `policer` installs is not there."""

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
    """The policer would not do it: an HTTP status, and what it says of each field."""

    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


class StoreError(PolicerError):
    """The database cannot do it."""


class StoreBusy(StoreError):  # noqa: N818
    """Locked for longer than one waits."""


class StoreGone(StoreError):  # noqa: N818
    """It cannot be reached or read."""


class StoreOutdated(StoreError):  # noqa: N818
    """Of another version than this program's."""


class LinkError(PolicerError):
    """A daemon could not be told."""


class LinkTimeout(LinkError):  # noqa: N818
    """It did not answer in time."""


class LinkRefused(LinkError):  # noqa: N818
    """It refused the request."""

    def __init__(self, code: str, field: str, problem: str, fix: str = "") -> None:
        self.code, self.field, self.problem, self.fix = code, field, problem, fix
        super().__init__(f"{field}: {problem}" + (f" ({fix})" if fix else ""))
