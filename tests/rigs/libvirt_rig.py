"""A manager over fake hypervisors with real threads, and a plant that answers to their caps."""

import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from fake_guest import FakeLibvirtError, Guest
from fake_libvirt import LIMIT_S, FakeHost
from manager_rig import PERIOD, ManagerRig, planned
from virt_rig import blocked, idle_threads, quiet, until

from common.clock import MonotonicClock
from common.units import CapFraction, Seconds
from xtc.config.plan import RouterPlan
from xtc.daemon.build import opener
from xtc.libvirt.api import Api
from xtc.libvirt.budget import Budget
from xtc.libvirt.drivers import way_of
from xtc.libvirt.hypervisors import Hypervisors
from xtc.libvirt.mailbox import Mailbox
from xtc.libvirt.metadata import URI, original_of
from xtc.measure.meter import Snapshot, rates
from xtc.spec import LibvirtOriginal, LibvirtSpec
from xtc.state.journal import Entry

LEAD = Seconds(0.01)
"""How long before a tick hypervisors are asked, where they answer quickly."""


def plan(name: str, uri: str, setpoint: float | None = None) -> RouterPlan:
    """Return the plan of a domain with one interface, NAME.0, which the plant counts."""
    return planned(name, LibvirtSpec(name, uri), setpoint)


class LibvirtRig(ManagerRig):
    """Fake hypervisors by URI, and plants that run at the caps that those hold."""

    def __init__(
        self,
        directory: Path,
        hosts: Mapping[str, FakeHost],
        plans: Mapping[str, RouterPlan],
        *,
        patience: float = LIMIT_S,
    ) -> None:
        super().__init__(directory, plans)
        self.hosts = dict(hosts)
        self.patience = Seconds(patience)
        """How long releases wait in a period; tests that are not about it wait it out."""
        self.lead = LEAD
        self.partly: tuple[str, ...] = ()
        """Hypervisors of which some domains hang: the rest of their work is waited for."""
        self.longest = 0.0
        """The most wall time that a tick took."""
        self.boards: list[Mailbox] = []
        self._uris = {name: _uri(plan) for name, plan in self.plans.items()}
        for name in self.plans:
            if name not in self.host(name).guests:
                self.host(name).add(name)
        self.start()

    # A daemon's life.

    def start(self) -> None:
        """Start a daemon's manager on the state directory, as the daemon does."""
        self.hypervisors = Hypervisors(self.clock, self.load)
        self.open_manager(opener(None, self.hypervisors))
        self.hypervisors.use((p.spec for p in self.plans.values()), also=self.manager.places)
        for session in self.hypervisors._sessions.values():  # threads take real time
            session.patience = Budget(MonotonicClock(), self.patience)
        self.boards += [session._mailbox for session in self.hypervisors._sessions.values()]
        self.hypervisors.settle(Seconds(LIMIT_S))
        self.troubles = self.manager.start()

    def crash(self) -> None:
        """Drop the manager as kill -9 would: nothing is said, nothing put back."""
        super().crash()
        self.hypervisors.close()

    def end(self) -> None:
        """Let go of every thread."""
        for host in self.hosts.values():
            host.thaw()
        self.crash()
        until(self.boards[-1], lambda: idle_threads() == 0)

    def load(self) -> Api:
        """Return the entry to the fakes."""
        return Api(lambda uri: self.hosts[str(uri)].open(uri), FakeLibvirtError)

    # Time.

    def tick(self, periods: int = 1, *, hung: tuple[str, ...] = ()) -> None:
        """Let periods pass; a hypervisor that hangs is not waited for."""
        for _ in range(periods):
            self.clock.sleep(Seconds(PERIOD - self.lead))
            self._read(self.clock.now())
            self.hypervisors.ask()
            self.answers(hung)
            self.clock.sleep(self.lead)
            begun = time.monotonic()
            self._tick(self.clock.now())
            self.longest = max(self.longest, time.monotonic() - begun)
            self.answers(hung)

    def answers(self, hung: tuple[str, ...] = ()) -> None:
        """Wait until every hypervisor has done all that there was to do."""
        for uri, session in self.hypervisors._sessions.items():
            if uri in self.partly:
                until(session._mailbox, partial(blocked, session, self.hosts[str(uri)]))
            elif uri not in hung:
                quiet(session)

    def _tick(self, now: Seconds) -> None:
        changed = self.hypervisors.supervise()
        if changed:
            self.manager.retry()
        self.manager.release_marked(self.hypervisors.is_marked, changed=changed)
        after = self._read(now)
        before, self.before = self.before, after
        found = {} if before is None else self.collector.aggregate(rates(before, after))
        self.manager.tick(found, now)

    def _read(self, now: Seconds) -> Snapshot:
        """Let the plant run at the caps that the hypervisors hold."""
        for name, router in self.plant.routers.items():
            router.cap = self.cap(name)
        snapshot = self.plant.read(now)
        for name, router in self.plant.routers.items():
            self.guest(name).cpu_ns = int(router.used * 1e9)
        return snapshot

    def be_impatient(self) -> None:
        """Let no release wait at all."""
        for session in self.hypervisors._sessions.values():
            session.patience.most = Seconds(0.0)
            session.patience.refill()

    # What there is.

    def host(self, name: str) -> FakeHost:
        """Return the hypervisor of a router."""
        return self.hosts[self._uris[name]]

    def guest(self, name: str) -> Guest:
        """Return the domain of a router."""
        return self.host(name).guests[name]

    def cap(self, name: str) -> CapFraction | None:
        """Return the cap that the hypervisor really holds."""
        guest = self.guest(name)
        if not guest.parameters:
            return None
        return way_of(name, self.host(name).driver, "vcpu").cap(guest.parameters, guest.vcpus)

    def mark(self, name: str) -> dict[str, int] | None:
        """Return the original that its metadata tells."""
        text = self.guest(name).metadata.get(URI)
        return None if text is None else original_of(text)

    def entry(self, name: str) -> dict[str, int] | None:
        """Return the original that the journal holds."""
        entry: Entry | None = self.journal.ledger.entries.get(name)
        if entry is None:
            return None
        assert isinstance(entry.original, LibvirtOriginal)
        return entry.original.parameters

    def calls_of_this_thread(self) -> list[str]:
        """Return the calls of hypervisors that the ticking thread made itself."""
        me = threading.get_ident()
        every = [call for host in self.hosts.values() for call in host.calls]
        return [call.name for call in every if call.thread == me]


def _uri(plan: RouterPlan) -> str:
    assert isinstance(plan.spec, LibvirtSpec)
    return str(plan.spec.uri)
