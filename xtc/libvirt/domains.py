"""What is known of domains: plain data that the threads publish and the loop reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.units import Seconds
from xtc.errors import ActuatorError
from xtc.libvirt.api import Parameters


@dataclass(frozen=True, slots=True)
class DomainView:
    """One domain as it was when it was last looked at."""

    uuid: str
    name: str
    domid: int
    """The number of this run of it; -1 where it does not run."""
    visited: bool = False
    """Whether more than the list of domains was asked for in this run of it."""
    described: bool = False
    """Whether its XML and metadata were read since something called for it."""
    scheduler: str = ""
    """Xen's; other hypervisors have no choice."""
    vcpus: int = 1
    interfaces: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    parameters: Parameters = field(default_factory=dict)
    """Of its scheduler, read back at `seen_at`."""
    used: Seconds | None = None
    """CPU time of all of it since it started."""
    used_by_vcpus: tuple[Seconds, ...] = ()
    """CPU time of each vCPU that is online, by number; empty where the driver does not tell."""
    seen_at: Seconds = Seconds(0.0)
    mark: Mapping[str, int] | None = None
    """The original that its metadata tells, None where it tells none."""
    problem: ActuatorError | None = None
    """Why it could not be looked at, or cannot be capped."""

    @property
    def active(self) -> bool:
        """Whether it runs."""
        return self.domid >= 0


@dataclass(frozen=True, slots=True)
class HostView:
    """Everything that is known of one connection's host."""

    driver: str = ""
    connected: bool = False
    surveyed: bool = False
    """Whether it is known which domains there are."""
    problem: ActuatorError | None = None
    """Why there is no connection."""
    domains: Mapping[str, DomainView] = field(default_factory=dict)
    """By UUID."""

    def find(self, domain: str) -> DomainView | None:
        """Return a domain by UUID or name."""
        found = self.domains.get(domain.lower())
        if found is not None:
            return found
        return next((view for view in self.domains.values() if view.name == domain), None)


@dataclass(frozen=True, slots=True)
class Order:
    """Parameters to be written to one run of a domain; the latest order replaces one not begun."""

    number: int
    uuid: str
    domid: int
    parameters: Mapping[str, int]
    flags: int
    mark: Mapping[str, int] | None
    """The original to be marked in its metadata before the cap; None removes the mark after it."""
    expected: Mapping[str, int] | None = None
    """What must stand there still, or nothing is written; None is whatever stands there."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an order."""

    order: Order
    error: ActuatorError | None
    took: Seconds


@dataclass(frozen=True, slots=True)
class Visit:
    """One domain's turn: what is to be done there."""

    known: DomainView
    order: Order | None = None
    describe: bool = False
    """Read its XML and metadata anew."""


def afresh(error: ActuatorError) -> ActuatorError:
    """Return an error to be raised again: what is raised often must not gather tracebacks."""
    return error.with_traceback(None)
