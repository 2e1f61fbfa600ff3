"""The running policer: all hosts in one loop, leadership, the store, and the brake.

Everything here runs in one asyncio loop; threads query the store. An unavailable store stops no
round: the last read contracts stay in force, events wait, and the page shows the problem.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count

import structlog

from policer.contracts.contract import Contract
from policer.contracts.host import Host, way_to
from policer.contracts.promised import ANYWHERE
from policer.decide.state import Policy
from policer.errors import StoreError
from policer.fleet.inbox import Inbox
from policer.fleet.live import Fleet, Leadership
from policer.history.retention import Retention
from policer.link import Keys
from policer.recording.writer import HistoryWriter
from policer.service.braking import Braking
from policer.service.following import Following
from policer.service.host_loop import HostLoop, Shared
from policer.service.leadership import LeaderElection
from policer.service.overriding import Overriding
from policer.service.store_call import StoreCall
from policer.service.writer import Writer
from policer.store import Entered, PunishmentRow, Store
from policer.store.database.records import now

LOOK_EVERY_S = 1.0
"""Interval at which the store is checked for changes by operators."""
INBOX_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of the service from its configuration."""

    name: str
    """Name of this policer, among several."""
    policy: Policy = field(default_factory=Policy)
    ttl_s: float = 15.0
    """Length of a lease: how long caps remain after a policer dies."""
    retention: Retention = field(default_factory=Retention)
    """How long history is kept."""


class Service:
    """Holds every host to its contracts; call `run` once."""

    def __init__(
        self,
        store: Store,
        fleet: Fleet,
        settings: ServiceSettings,
        keys: Keys | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        wall: Callable[[], datetime] = now,
    ) -> None:
        self._store, self._fleet, self._settings, self._keys = store, fleet, settings, keys
        self._clock = clock
        self._lead = LeaderElection(store.leadership(settings.name), fleet, settings.name, clock)
        self.writer = Writer(store, clock)
        self.history_writer = HistoryWriter(
            store, lambda: fleet.leadership.leading, settings.retention
        )
        self.inbox = Inbox()
        self.rounds: list[Callable[[float], None]] = []
        """Called with the duration of each round in seconds; used by the metrics."""
        self._asking = StoreCall(clock)
        self._unread = ""
        """The store's error while it cannot be read."""
        self._braking = Braking(fleet, clock, self.writer.note)
        self._overriding = Overriding(store, fleet, clock, time.time, self._lead.raise_above)
        self._loops: dict[str, tuple[HostLoop, asyncio.Task[None]]] = {}
        self._entered = Entered()
        """Operators' entries as read last."""
        self._all_changed = False
        """Whether terms of any host may have changed, and not all hosts have theirs yet."""
        self._ruled = 0
        """Epoch in which the punishments were inherited."""
        self._beat = clock()
        self._log = structlog.get_logger("policer.service")
        self._following = Following(
            fleet,
            self.writer,
            clock=clock,
            wall=wall,
            loop_of=self._loop_of,
            ruled=lambda: self._ruled,
        )
        sequence = count(1)
        self._shared = Shared(
            fleet=fleet,
            writer=self.writer,
            clock=clock,
            next_sequence=lambda: next(sequence),
            policy=self._policy,
            convicted=self._convicted,
            recorded=self.history_writer.heard,
            played=self._played,
            ruled=lambda: self._ruled,
            heard=self._following.heard,
            overtaken=self._lead.raise_above,
            wall=time.time,
            ttl_s=settings.ttl_s,
        )

    def take(self, settings: ServiceSettings) -> None:
        """Apply new settings; the name and the length of leases stay."""
        self._settings = replace(settings, name=self._settings.name)
        self.history_writer.retention = settings.retention

    def heartbeat_age(self) -> float:
        """Return the seconds since the loop last ran; a store that hangs does not count."""
        return self._clock() - self._beat

    @property
    def store_problem(self) -> str:
        """The store's problem while it is unavailable: its error, or that it does not answer."""
        silent = self._asking.problem or self._overriding.problem
        return silent or self._unread or self.writer.problem

    async def run(self) -> None:
        """Run until cancelled; leases that were given expire by themselves."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._lead.run(), name="lead")
                group.create_task(self.writer.run(), name="writer")
                group.create_task(self.history_writer.run(), name="history")
                group.create_task(self._read_mail(), name="inbox")
                group.create_task(self._follow_store(), name="store")
                group.create_task(self._overriding.run(), name="overrides")
                group.create_task(self._follow_time(), name="time")
        finally:
            await self._end_all()
            await self._hand_over()

    async def _hand_over(self) -> None:
        """Give up the lead last, so that the next leader can read all decisions."""
        try:
            await asyncio.to_thread(self.writer.flush)
            await asyncio.to_thread(self.history_writer.close)
        finally:
            await self._lead.release()

    async def _follow_store(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _follow_time(self) -> None:
        """Begin and end contracts on time, even without the store."""
        while True:
            try:
                self._following.look(tuple(self._loops))
            except Exception:  # noqa: BLE001  the one firewall of this loop
                # A contract that triggers a bug must not end the service.
                self._log.exception("contracts_not_followed_in_time")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self) -> None:
        """Take over changes in the store, and the punishments after winning the lead."""
        leadership = self._fleet.leadership
        # Only the leader counts: a stale count of an earlier lead would be shown.
        self._braking.count()
        if leadership.leading:
            self._braking.look()
        else:
            self._braking.follow()
        try:
            entered = await self._asking.ask(self._store.changes.since, self._entered)
            if entered is not self._entered:
                await self._take_in(entered)
                self._entered = entered
            if leadership.leading and leadership.epoch != self._ruled:
                await self._take_over(leadership)
        except StoreError as error:
            if not self._unread:
                self._log.error("store_unreadable", problem=str(error))
            self._unread = str(error)
        else:
            self._unread = ""

    async def _take_in(self, entered: Entered) -> None:
        """Apply operators' changes: start and stop hosts, and update contracts."""
        await self._overriding.read()  # first: no order is sent before the overrides are known
        hosts, changed = entered.hosts, entered.changed(self._entered)
        followed = _newly_followed(entered, self._entered)
        homes = await self._asking.ask(self._store.homes.of, followed)
        for name in sorted(changed & self._loops.keys()):
            if _moved(self._loops[name][0], hosts):
                await self._end(name)
                if name not in hosts:
                    self.writer.forget(name)
                    self.history_writer.end(name)
                    self._following.forget(name)
        homes = {router: home for router, home in homes.items() if home in hosts}
        # The store may fail below; the next call must then know of it.
        self._all_changed |= self._following.take(entered.contracts, entered.classes, homes)
        if self._all_changed:
            changed = frozenset(hosts)
        new = sorted(changed & hosts.keys() - self._loops.keys())
        await self._begin_all([hosts[name] for name in new])
        for name in changed & hosts.keys():
            self._following.enter(name, hosts[name])
        self._all_changed = False

    async def _begin_all(self, hosts: Sequence[Host]) -> None:
        """Start receiving hosts; a host with new addresses keeps its punished routers."""
        leads = self._leads()
        punished = await self._asking.ask(self.writer.punished) if hosts and leads else {}
        for host in hosts:
            loop = HostLoop(host, self._keys, self._shared)
            if leads:
                loop.inherit(_of_host(punished, host.name))
            task = asyncio.create_task(loop.run(), name=f"host {host.name}")
            self._loops[host.name] = loop, task

    async def _end(self, name: str) -> None:
        """Stop receiving a host; its orders end with their leases."""
        _, task = self._loops.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        rest = {other: live for other, live in self._fleet.hosts.items() if other != name}
        self._fleet.put_all(rest)

    async def _end_all(self) -> None:
        for name in list(self._loops):
            await self._end(name)

    async def _take_over(self, leadership: Leadership) -> None:
        """Continue from the previous leader; raises StoreError if that cannot be read."""
        led_last = 0 < leadership.since <= self._ruled
        self.writer.lead(leadership.since, leadership.epoch)
        self.history_writer.lead(leadership.since, leadership.epoch)
        homes = await self._asking.ask(self._store.homes.all)
        rows = await self._asking.ask(self.writer.punished)
        punished = self._following.take_over(homes, rows, leadership.epoch)
        for name, (loop, _) in self._loops.items():
            loop.inherit(_of_host(punished, name), led_last=led_last)
        self._braking.count()  # a follower has counted no guilty routers
        if not led_last:
            for pardon in self.inbox.take_all():
                self._log.warning("pardon_superseded", host=pardon.host, vr=pardon.vr)
            # The previous leader may have failed with its brake on.
            for name in self._loops:
                guilty = sum(row.guilty for row in _of_host(punished, name).values())
                self._convicted(name, guilty)
        self._ruled = leadership.epoch

    def _loop_of(self, host: str) -> HostLoop | None:
        return self._loops[host][0] if host in self._loops else None

    def _leads(self) -> bool:
        """Whether this policer leads and has taken over the punishments."""
        leadership = self._fleet.leadership
        return leadership.leading and leadership.epoch == self._ruled

    async def _read_mail(self) -> None:
        """Carry out operators' REST requests without waiting for the store: the heartbeat."""
        while True:
            self._beat = self._clock()
            self._overriding.show()
            # Until the punishments are known, pardons wait: otherwise they would be undone.
            for pardon in self.inbox.take_all() if self._leads() else ():
                host, vr = self._following.now_at(pardon.host, pardon.vr)
                if host in self._loops:
                    self._loops[host][0].pardon(vr, pardon.actor)
            await asyncio.sleep(INBOX_EVERY_S)

    def _policy(self, host: str) -> Policy:
        return replace(self._settings.policy, may_climb=not self._braking.stops(host))

    def _convicted(self, host: str, routers: int) -> None:
        self._braking.convicted(host, routers)

    def _played(self, seconds: float) -> None:
        for listener in self.rounds:
            listener(seconds)


def _moved(loop: HostLoop, hosts: Mapping[str, Host]) -> bool:
    """Whether a loop must end: its host was removed, or its daemon's address changed."""
    host = hosts.get(loop.host.name)
    return host is None or way_to(host) != way_to(loop.host)


def _newly_followed(now: Entered, before: Entered) -> set[str]:
    """Return the routers that contracts follow now, and did not before."""
    nothing: Mapping[str, Contract] = {}
    known = before.contracts.get(ANYWHERE, nothing)
    return now.contracts.get(ANYWHERE, nothing).keys() - known.keys()


def _of_host(
    punished: Mapping[tuple[str, str], PunishmentRow], name: str
) -> dict[str, PunishmentRow]:
    return {vr: row for (host, vr), row in punished.items() if host == name}
