"""All configured connections to libvirt, and the actuators of their domains."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from common.clock import Clock
from common.units import Seconds
from xtc.errors import Gone, Permanent, Transient
from xtc.libvirt.actuator import LibvirtActuator
from xtc.libvirt.api import Api, real_api
from xtc.libvirt.domains import DomainView, HostView, afresh
from xtc.libvirt.session import RELEASE_PATIENCE_S, Session
from xtc.measure.collector import Binding
from xtc.spec import ActuatorSpec, LibvirtOriginal, LibvirtSpec

LEAST_LEAD_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """State of one connection, for metrics."""

    uri: str
    up: bool
    given_up: int


class Hypervisors:
    """Holds one session for each URI; starts and ends them as routers come and go."""

    def __init__(
        self,
        clock: Clock,
        load: Callable[[], Api] = real_api,
        patience: Seconds = RELEASE_PATIENCE_S,
    ) -> None:
        self._clock, self._load, self._patience = clock, load, patience
        self._sessions: dict[str | None, Session] = {}
        self._specs: tuple[LibvirtSpec, ...] = ()
        self._bindings: dict[LibvirtSpec, Binding] = {}
        self._uuids: dict[LibvirtSpec, str] = {}
        self._seen: tuple[object, ...] = ()

    def use(self, specs: Iterable[ActuatorSpec], also: Iterable[ActuatorSpec] = ()) -> None:
        """Follow only the domains of routers, and of leftovers of earlier ones."""
        self._specs = tuple(spec for spec in specs if isinstance(spec, LibvirtSpec))
        wanted: dict[str | None, set[str]] = {}
        for spec in {*self._specs, *(s for s in also if isinstance(s, LibvirtSpec))}:
            wanted.setdefault(spec.uri, set()).update((spec.domain, spec.domain.lower()))
        for uri in self._sessions.keys() - wanted.keys():
            self._sessions.pop(uri).close()
        for uri, domains in wanted.items():
            self._follow(uri, domains)

    def _follow(self, uri: str | None, domains: set[str]) -> None:
        session = self._sessions.get(uri)
        if session is None:
            session = self._sessions[uri] = Session(self._load, uri, self._clock, self._patience)
            session.start()
        session.want(lambda view: view.name in domains or view.uuid in domains)

    def open(self, spec: LibvirtSpec, original: LibvirtOriginal | None) -> LibvirtActuator:
        """Return the actuator of a domain, in its current run.

        Raises:
            Gone: there is no such domain, it does not run, or it is not the original's domain.
            Transient: there is no connection, or the domain is not known yet.
            Permanent: it cannot be capped, or belongs to another router.
        """
        view = self._known(spec)
        if original is not None and original.uuid != view.uuid:
            raise Gone(spec.domain, "another domain has this name now")
        if original is not None and original.domid != view.domid:
            raise Gone(spec.domain, "it was restarted, and its cap ended with the previous run")
        if view.problem is not None:
            raise afresh(view.problem)
        self._check_alone(spec, view)
        return LibvirtActuator(spec, self._sessions[spec.uri], view, original)

    def _known(self, spec: LibvirtSpec) -> DomainView:
        session = self._sessions.get(spec.uri)
        host = None if session is None else session.view
        if host is None or not host.surveyed:
            problem = None if host is None else host.problem
            raise afresh(problem or Transient(spec.domain, "libvirt has not answered yet"))
        view = host.find(spec.domain)
        if view is None:
            raise Gone(spec.domain, "there is no such domain (`xtc discover` lists them)")
        if not view.active:
            raise Gone(spec.domain, "the domain does not run")
        if not view.visited:
            raise Transient(spec.domain, "libvirt has not reported this domain yet")
        return view

    def _check_alone(self, spec: LibvirtSpec, view: DomainView) -> None:
        for other in self._specs:
            same = other.domain == view.name or other.domain.lower() == view.uuid
            if same and other != spec and other.uri == spec.uri:
                raise Permanent(spec.domain, f"is {other.domain} too", "one router, one domain")

    def binding(self, spec: LibvirtSpec) -> Binding:
        """Return how to recognise a domain's interfaces; a stopped domain has none.

        While libvirt does not answer, the last known ones count.
        """
        session = self._sessions.get(spec.uri)
        host = HostView() if session is None else session.view
        if host.surveyed:
            self._bindings[spec] = _binding(host, host.find(spec.domain))
        return self._bindings.get(spec, Binding())

    def uuid_of(self, spec: LibvirtSpec) -> str | None:
        """Return a domain's UUID, None if its hypervisor has not reported it."""
        session = self._sessions.get(spec.uri)
        view = None if session is None else session.view.find(spec.domain)
        return None if view is None else view.uuid

    def running_uuid(self, spec: LibvirtSpec) -> str:
        """Return the UUID of a domain that runs here; empty if it does not, or is unknown.

        While libvirt does not answer, the last known one counts, as for its interfaces.
        """
        session = self._sessions.get(spec.uri)
        host = HostView() if session is None else session.view
        if host.surveyed:
            view = host.find(spec.domain)
            self._uuids[spec] = view.uuid if view is not None and view.active else ""
        return self._uuids.get(spec, "")

    def is_marked(self, spec: ActuatorSpec) -> bool:
        """Whether a running domain has the mark of an xtc, from this or a previous host."""
        if not isinstance(spec, LibvirtSpec) or spec.uri not in self._sessions:
            return False
        view = self._sessions[spec.uri].view.find(spec.domain)
        return view is not None and view.active and view.mark is not None

    @property
    def lead(self) -> Seconds:
        """How long before a tick to poll, so that answers are available and fresh."""
        slowest = max((s.answer_time for s in self._sessions.values()), default=0.0)
        return Seconds(1.5 * slowest + LEAST_LEAD_S)

    def ask(self) -> None:
        """Poll every domain for the next tick."""
        for session in self._sessions.values():
            session.ask()

    def supervise(self) -> bool:
        """Begin a period: give up hung calls; return whether domains came or went."""
        for session in self._sessions.values():
            session.patience.refill()
            session.supervise()
        seen = tuple((uri, s.version) for uri, s in self._sessions.items())
        changed, self._seen = seen != self._seen, seen
        return changed

    def settle(self, patience: Seconds) -> None:
        """Wait until the wanted domains are known, or failed; up to a limit for all together."""
        until = self._clock.now() + patience
        for session in self._sessions.values():
            session.settle(Seconds(max(0.0, until - self._clock.now())))

    def states(self) -> tuple[ConnectionState, ...]:
        """Return the state of each connection."""
        return tuple(
            ConnectionState(uri or "default", session.view.surveyed, session.given_up)
            for uri, session in self._sessions.items()
        )

    def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            session.close()
        self._sessions = {}


def _binding(host: HostView, view: DomainView | None) -> Binding:
    if view is None or not view.active:
        return Binding()
    return Binding(view.interfaces, view.domid if host.driver == "Xen" else None)
