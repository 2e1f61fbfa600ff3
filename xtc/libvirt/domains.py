"""The state of domains: plain data that the threads publish and the loop reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.units import Seconds
from xtc.errors import ActuatorError
from xtc.libvirt.api import Parameters


@dataclass(frozen=True, slots=True)
class DomainView:
    """The last known state of one domain."""

    uuid: str
    name: str
    domid: int
    """The number of this run; -1 if it is stopped."""
    visited: bool = False
    """Whether more than its list entry was read in this run."""
    described: bool = False
    """Whether its XML and metadata were read since the last event."""
    scheduler: str = ""
    """Xen's; other hypervisors have no choice."""
    vcpus: int = 1
    interfaces: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    parameters: Parameters = field(default_factory=dict)
    """Parameters of its scheduler, read back at `seen_at`."""
    used: Seconds | None = None
    """CPU time of the whole domain since it started."""
    used_by_vcpus: tuple[Seconds, ...] = ()
    """CPU time of each vCPU that is online, by number; empty where the driver does not report
    it."""
    seen_at: Seconds = Seconds(0.0)
    mark: Mapping[str, int] | None = None
    """The original in its metadata, None if there is none."""
    problem: ActuatorError | None = None
    """Why it could not be polled, or cannot be capped."""

    @property
    def active(self) -> bool:
        """Whether it runs."""
        return self.domid >= 0


@dataclass(frozen=True, slots=True)
class HostView:
    """The known state of one connection's host."""

    driver: str = ""
    connected: bool = False
    surveyed: bool = False
    """Whether the list of domains is known."""
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
    """Parameters to write to one run of a domain; a new order replaces one that has not begun."""

    number: int
    uuid: str
    domid: int
    parameters: Mapping[str, int]
    flags: int
    mark: Mapping[str, int] | None
    """The originals of what xtc has changed, set as a mark in its metadata before the parameters;
    None removes the mark after them."""
    expected: Mapping[str, int] | None = None
    """Settings that must still be in force, otherwise nothing is written; None skips the check."""
    capture: int = 0
    """Number of the capture whose originals it relies on: orders of one capture fail together."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an order."""

    order: Order
    error: ActuatorError | None
    took: Seconds


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on a domain."""

    known: DomainView
    order: Order | None = None
    describe: bool = False
    """Read its XML and metadata again."""


def afresh(error: ActuatorError) -> ActuatorError:
    """Return an error to be raised again: an error raised often must not accumulate tracebacks."""
    return error.with_traceback(None)
