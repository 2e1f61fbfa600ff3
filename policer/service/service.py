"""The policer at work: all hosts in one loop, who leads, what the store says, and the brake.

Everything here runs in one asyncio loop; the store is asked in threads. A store that is away stops
no round: contracts stay as they were read, events wait, and the page says so.
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
from policer.recording.writer import Keeper
from policer.service.braking import Braking
from policer.service.following import Following
from policer.service.host_loop import HostLoop, Shared
from policer.service.leadership import Lead
from policer.service.overriding import Overriding
from policer.service.store_call import Asking
from policer.service.writer import Writer
from policer.store import Entered, PunishmentRow, Store
from policer.store.database.records import now

LOOK_EVERY_S = 1.0
"""How often the store is asked for what operators changed."""
INBOX_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What the service is told by its configuration."""

    name: str
    """Of this policer, among several."""
    policy: Policy = field(default_factory=Policy)
    ttl_s: float = 15.0
    """Length of a lease: what a policer that dies may hold on to."""
    retention: Retention = field(default_factory=Retention)
    """How long history is kept."""


class Service:
    """Keeps every host at its contracts; `run` is to be called once."""

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
        self._lead = Lead(store.leadership(settings.name), fleet, settings.name, clock)
        self.writer = Writer(store, clock)
        self.keeper = Keeper(store, lambda: fleet.leadership.leading, settings.retention)
        self.inbox = Inbox()
        self.rounds: list[Callable[[float], None]] = []
        """Told the seconds that each round took; metrics listen here."""
        self._asking = Asking(clock)
        self._unread = ""
        """What the store said when it could not be read."""
        self._braking = Braking(fleet, clock, self.writer.note)
        self._overriding = Overriding(store, fleet, clock, time.time, self._lead.raise_above)
        self._loops: dict[str, tuple[HostLoop, asyncio.Task[None]]] = {}
        self._entered = Entered()
        """What operators entered, as it was read last."""
        self._ruled = 0
        """The epoch in which punishments were inherited."""
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
            recorded=self.keeper.heard,
            played=self._played,
            ruled=lambda: self._ruled,
            heard=self._following.heard,
            overtaken=self._lead.raise_above,
            wall=time.time,
            ttl_s=settings.ttl_s,
        )

    def take(self, settings: ServiceSettings) -> None:
        """Go by other settings from now on; the name and the length of leases stay."""
        self._settings = replace(settings, name=self._settings.name)
        self.keeper.retention = settings.retention

    def heartbeat_age(self) -> float:
        """Return the seconds since the loop last went round; a store that hangs does not count."""
        return self._clock() - self._beat

    @property
    def store_problem(self) -> str:
        """Why the store is of no use, while it is not: what it said, or that it says nothing."""
        silent = self._asking.problem or self._overriding.problem
        return silent or self._unread or self.writer.problem

    async def run(self) -> None:
        """Work until cancelled; leases that were given end by themselves."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._lead.run(), name="lead")
                group.create_task(self.writer.run(), name="writer")
                group.create_task(self.keeper.run(), name="history")
                group.create_task(self._read_mail(), name="inbox")
                group.create_task(self._follow_store(), name="store")
                group.create_task(self._overriding.run(), name="overrides")
                group.create_task(self._follow_time(), name="time")
        finally:
            await self._end_all()
            await self._hand_over()

    async def _hand_over(self) -> None:
        """Let the next leader read all that was decided: the lead is given up last."""
        try:
            await asyncio.to_thread(self.writer.flush)
            await asyncio.to_thread(self.keeper.close)
        finally:
            await self._lead.release()

    async def _follow_store(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _follow_time(self) -> None:
        """Have contracts begin and end, whatever the store does."""
        while True:
            try:
                self._following.look(tuple(self._loops))
            except Exception:  # noqa: BLE001  the one firewall of this loop
                # A contract that trips a bug must not end the service.
                self._log.exception("contracts were not followed in time")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self) -> None:
        """Take over what changed in the store, and who is punished when the lead was won."""
        leadership = self._fleet.leadership
        # The count is the leader's alone; it would be shown as it was when the lead was lost.
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
                self._log.error("the store cannot be read", problem=str(error))
            self._unread = str(error)
        else:
            self._unread = ""

    async def _take_in(self, entered: Entered) -> None:
        """Go by what operators changed: hosts begin and end, and others have other contracts."""
        await self._overriding.read()  # first: no order goes out before this is known
        hosts, changed = entered.hosts, entered.changed(self._entered)
        followed = _newly_followed(entered, self._entered)
        homes = await self._asking.ask(self._store.homes.of, followed)
        for name in sorted(changed & self._loops.keys()):
            if _moved(self._loops[name][0], hosts):
                await self._end(name)
                if name not in hosts:
                    self.writer.forget(name)
                    self.keeper.end(name)
                    self._following.forget(name)
        homes = {router: home for router, home in homes.items() if home in hosts}
        if self._following.take(entered.contracts, entered.classes, homes):
            changed = frozenset(hosts)
        new = sorted(changed & hosts.keys() - self._loops.keys())
        await self._begin_all([hosts[name] for name in new])
        for name in changed & hosts.keys():
            self._following.enter(name, hosts[name])

    async def _begin_all(self, hosts: Sequence[Host]) -> None:
        """Begin to hear hosts; one that is reached another way has the same routers punished."""
        leads = self._leads()
        punished = await self._asking.ask(self.writer.punished) if hosts and leads else {}
        for host in hosts:
            loop = HostLoop(host, self._keys, self._shared)
            if leads:
                loop.inherit(_of_host(punished, host.name))
            task = asyncio.create_task(loop.run(), name=f"host {host.name}")
            self._loops[host.name] = loop, task

    async def _end(self, name: str) -> None:
        """Hear a host no more; what it was told ends with its leases."""
        _, task = self._loops.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        rest = {other: live for other, live in self._fleet.hosts.items() if other != name}
        self._fleet.put_all(rest)

    async def _end_all(self) -> None:
        for name in list(self._loops):
            await self._end(name)

    async def _take_over(self, leadership: Leadership) -> None:
        """Go on where the leader before was; raises StoreError where that cannot be read."""
        led_last = 0 < leadership.since <= self._ruled
        self.writer.lead(leadership.since, leadership.epoch)
        self.keeper.lead(leadership.since, leadership.epoch)
        homes = await self._asking.ask(self._store.homes.all)
        rows = await self._asking.ask(self.writer.punished)
        punished = self._following.take_over(homes, rows, leadership.epoch)
        for name, (loop, _) in self._loops.items():
            loop.inherit(_of_host(punished, name), led_last=led_last)
        self._braking.count()  # a follower has seen no culprits
        if not led_last:
            for pardon in self.inbox.take_all():
                self._log.warning("a pardon was overtaken", host=pardon.host, vr=pardon.vr)
            # The leader before may have been lost with its brake on.
            for name in self._loops:
                guilty = sum(row.guilty for row in _of_host(punished, name).values())
                self._convicted(name, guilty)
        self._ruled = leadership.epoch

    def _loop_of(self, host: str) -> HostLoop | None:
        return self._loops[host][0] if host in self._loops else None

    def _leads(self) -> bool:
        """Whether this policer leads, and has taken over who is punished."""
        leadership = self._fleet.leadership
        return leadership.leading and leadership.epoch == self._ruled

    async def _read_mail(self) -> None:
        """Do what operators asked for through REST; never waits for the store, and so beats."""
        while True:
            self._beat = self._clock()
            self._overriding.show()
            # While it is not known who is punished, pardons wait: they would be undone.
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
    """Whether a loop must end: its host is gone, or its daemon is reached another way."""
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
