"""One host's loop without sockets: a test says what the daemon tells and answers, and the time."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import cast

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.decide.state import Policy
from policer.errors import LinkError, LinkRefused
from policer.fleet.live import Fleet, HostLive, Leadership
from policer.link import Link
from policer.service.host_loop import HostLoop, Shared
from policer.service.writer import Writer
from policer.store import PunishmentRow, Store
from xtc.wire import Activate, Limit, Refusal, Report, Telemetry

CAPACITY = 100e3
WALL = 1_790_000_000
"""The time of day, seconds since 1970."""
Message = Activate | Limit


class Daemon:
    """Stands where the link is: what was asked of the daemon, and how it answers."""

    def __init__(self) -> None:
        self.dropped = self.bad = 0
        self.asked: list[Message] = []
        self.refuse: Callable[[Message], Refusal | None] = lambda _: None
        self.unread: Callable[[Sequence[Message]], None] = lambda _: None
        """Raises LinkRefused for a message that it cannot read."""
        self.unheard = 0
        """Messages that it could not read."""
        self.away = False

    async def run(self) -> None:
        """Hear nothing by itself."""
        await asyncio.Event().wait()

    async def send(self, changes: Sequence[Message]) -> tuple[Refusal | None, ...]:
        """Answer as a daemon does."""
        if self.away:
            raise LinkError("it did not answer")
        try:
            self.unread(changes)
        except LinkRefused:
            self.unheard += 1
            raise
        self.asked.extend(changes)
        return tuple(map(self.refuse, changes))


class HostRig:
    """A policer that leads in epoch 5, and one of its hosts."""

    def __init__(self, contracts: dict[str, Contract], policy: Policy | None = None) -> None:
        self.now = 1000.0
        self.ruled = 5
        self.ticks: Iterator[int] = count(1000)
        self.fleet = Fleet()
        self.fleet.leadership = Leadership(leading=True, epoch=5, since=5)
        self.writer = Writer(cast("Store", None), lambda: self.now)
        self.daemon = Daemon()
        self.raised: list[int] = []
        """Epochs that it was to be raised above."""
        self.highest_epoch: int | None = None
        """What the daemon says that it has obeyed."""
        numbers = count(1)
        shared = Shared(
            fleet=self.fleet,
            writer=self.writer,
            clock=lambda: self.now,
            next_sequence=lambda: next(numbers),
            policy=lambda _: policy or Policy(),
            convicted=lambda *_: None,
            recorded=lambda _live, _sight: None,
            played=lambda _: None,
            ruled=lambda: self.ruled,
            heard=lambda *_: None,
            overtaken=self.raised.append,
            wall=lambda: float(WALL),
            ttl_s=15.0,
        )
        host = Host("h0", "ipc:///nowhere/a", "ipc:///nowhere/b", CAPACITY)
        self.loop = HostLoop(host, None, shared)
        self.loop._link = cast("Link", self.daemon)
        self.loop.enter(host, contracts)
        self.loop.inherit({})

    @property
    def live(self) -> HostLive:
        """The host as everybody sees it."""
        return self.fleet.hosts["h0"]

    def hear(self, *reports: Report, seconds: float = 1.0) -> None:
        """Let so many seconds pass, and a tick come."""
        self.now += seconds
        epoch = self.highest_epoch
        self.loop._hear("h0", Telemetry(self.now, next(self.ticks), reports, highest_epoch=epoch))

    async def round(self, *reports: Report, seconds: float = 1.0) -> None:
        """Hear a tick, and let the loop do with it what it does."""
        self.hear(*reports, seconds=seconds)
        await self.loop._turn()

    def follow(self) -> None:
        """Lose the lead."""
        self.fleet.leadership = replace(self.fleet.leadership, leading=False)

    def lead(self, epoch: int) -> None:
        """Have the lead, with the punishments taken over."""
        self.ruled = epoch
        self.fleet.leadership = Leadership(leading=True, epoch=epoch, since=epoch)

    def kinds(self) -> list[str]:
        """Return what was noted."""
        return [event.kind for event in self.writer._events]

    def written(self) -> dict[str, PunishmentRow | None]:
        """Return what the store is to be told of each router."""
        return {vr: decided.row for (_, vr), decided in self.writer._punished.items()}
