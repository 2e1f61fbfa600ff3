"""Takes over what an earlier daemon or another configuration left: caps, shields and leases."""

from collections.abc import Mapping
from functools import partial

from common.units import Seconds
from xtc.actuator.places import takes_over
from xtc.config.plan import RouterPlan
from xtc.errors import Refused
from xtc.lease import Lease
from xtc.manager.cap import CapController
from xtc.manager.host import Host, release
from xtc.manager.ifindex import renamed
from xtc.manager.lifecycle import Lifecycle
from xtc.manager.records import Records
from xtc.manager.router import ManagedRouter
from xtc.state.journal import Entry


class Adoption:
    """Begins with a configuration, at the start and when it is loaded again."""

    def __init__(self, host: Host, records: Records, lifecycle: Lifecycle) -> None:
        self._host, self._records, self._lifecycle = host, records, lifecycle

    def start(self, now: Seconds) -> list[str]:
        """Adopt or release what an earlier daemon left; return what could not be released."""
        host, left = self._host, self._records.journal.ledger
        lift_limit, lift_shield = host.limits.lifts.lift, host.shields.lifts.lift
        troubles = [self._adopt(name, entry) for name, entry in left.entries.items()]
        troubles += [lift_limit(interfaces) for interfaces in left.limits.values()]
        now_called = renamed(left.numbers)
        troubles += [lift_limit(now_called), lift_shield(now_called)]
        troubles += [self._adopt_shield(name, each) for name, each in left.shields.items()]
        for managed in host.routers.values():
            lease = left.leases.get(managed.plan.name)
            if lease is not None:
                host.work_on(managed, "start", partial(_renew, managed, lease, now))
            host.work_on(managed, "start", partial(self._hold_configured, managed, now))
        idle = (m for m in host.routers.values() if m.instance is None)
        troubles += [host.work_on(m, "release", partial(release, m)) or "" for m in idle]
        return [trouble for trouble in troubles if trouble]

    def _adopt(self, name: str, entry: Entry) -> str:
        """Take over a cap of an earlier daemon with its place, or release it; return why not."""
        host, owner = self._host, self._owner(entry)
        if owner is not None:
            host.routers[owner] = ManagedRouter(host.routers[owner].plan, host.open, entry.original)
            return ""
        return host.orphans.release(
            name, CapController(entry.spec, host.open, original=entry.original)
        )

    def _adopt_shield(self, name: str, interfaces: tuple[str, ...]) -> str:
        """Take over an earlier daemon's shield until the first tick decides on it, or lift it."""
        if name not in self._host.routers:
            return self._host.shields.lifts.lift(interfaces)
        self._host.routers[name].shielded.claimed = interfaces
        return ""

    def _owner(self, entry: Entry) -> str | None:
        """Return the router at the place of an entry; an equal notation comes first."""
        host = self._host
        plans = {name: managed.plan.spec for name, managed in host.routers.items()}
        for name, spec in plans.items():
            if spec == entry.spec:
                return name
        for name, spec in plans.items():
            is_owner = partial(takes_over, spec, entry.spec, entry.original, host.place)
            if host.work_on(host.routers[name], "start", is_owner):
                return name
        return None

    def _hold_configured(self, managed: ManagedRouter, now: Seconds) -> None:
        """Hold a router as configured, unless it was released on request."""
        setpoint = managed.plan.setpoint
        if managed.instance is not None or managed.by_hand or setpoint is None:
            return
        last = managed.last_lease()
        if last is None:
            lease = Lease.of(setpoint, epoch=self._records.epoch, configured=True)
        else:
            lease = last.configured_as(setpoint)  # earlier orders must not be repeated
        managed.activate(lease, now)

    def reconfigure(
        self, plans: Mapping[str, RouterPlan], now: Seconds, *, max_release_share: float
    ) -> None:
        """Adopt another configuration; routers that are no longer in it are released.

        Raises:
            Refused: it would release more routers than the configuration allows at once.
        """
        host = self._host
        dropped = {
            name: managed
            for name, managed in host.routers.items()
            if name not in plans or plans[name].spec != managed.plan.spec
        }
        lost = self._check_lost(dropped, max_release_share)
        leases = {name: dropped[name].last_lease() for name in lost}
        self._lifecycle.end(dropped.values())
        for name, managed in dropped.items():
            host.orphans.release(name, managed.controller)
        host.routers = {
            name: self._carried_over(name, plan, leases.get(name), now)
            for name, plan in plans.items()
        }
        for managed in host.routers.values():
            host.work_on(managed, "reload", partial(self._hold_configured, managed, now))

    def _check_lost(
        self, dropped: Mapping[str, ManagedRouter], max_release_share: float
    ) -> list[str]:
        """Return the active routers that are dropped; raises Refused where these are too many."""
        active = [n for n, managed in self._host.routers.items() if managed.instance is not None]
        lost = [name for name in active if name in dropped]
        if len(lost) > max(1.0, max_release_share * len(active)):
            raise Refused(
                "mass_release",
                "router",
                f"{len(lost)} of {len(active)} active routers are missing: {', '.join(lost[:5])}",
                "release them one by one first, or raise daemon.max_release_share",
            )
        return lost

    def _carried_over(
        self, name: str, plan: RouterPlan, lease: Lease | None, now: Seconds
    ) -> ManagedRouter:
        """Return a router under another configuration; the lease is of a router that moved."""
        host = self._host
        old = host.routers.get(name)
        if old is None or old.plan.spec != plan.spec:
            new = ManagedRouter(plan, host.open, host.orphans.taken_over(plan.spec, host.place))
            if old is not None:
                host.work_on(new, "reload", partial(new.succeed, old, lease, now))
            return new
        host.work_on(old, "reload", partial(old.replan, plan))
        return old


def _renew(managed: ManagedRouter, lease: Lease, now: Seconds) -> None:
    """Continue a lease of an earlier daemon; the configuration's own may have changed."""
    if lease.expired(now):
        return
    if not lease.configured:
        managed.activate(lease, now)
    elif managed.plan.setpoint is not None:
        managed.activate(lease.configured_as(managed.plan.setpoint), now)
