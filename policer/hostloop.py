"""One host's loop: telemetry in, a round, orders out; whatever happens here, other hosts go on."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from policer.contract import Contract
from policer.dispatch import Sent, Terms, due
from policer.errors import LinkError
from policer.evidence import Evidence
from policer.fleet import Fleet, HostLive
from policer.hosts import Host
from policer.ladder import Punishment, Step
from policer.link import Keys, Link
from policer.round import play
from policer.sight import GONE_AFTER_S, seen
from policer.state import HostState, HostView, Policy, Round, RouterState
from policer.store import Event, PunishmentRow
from policer.writer import Writer
from xtc.wire import Refusal, Telemetry

SHORTEST_S = 0.5
"""Rounds come no closer than this, however often a host speaks."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all hosts' loops share."""

    fleet: Fleet
    writer: Writer
    clock: Callable[[], float]
    next_sequence: Callable[[], int]
    policy: Callable[[], Policy]
    """The policy of this moment: the brake may be on."""
    convicted: Callable[[int], None]
    """Told how many routers took the first step of their ladders in a round."""
    played: Callable[[float], None]
    """Told how many seconds a round took."""
    ruled: Callable[[], int]
    """The epoch in which the punishments of the leader before were taken over."""
    ttl_s: float


class HostLoop:
    """Sees, decides for and tells one host."""

    def __init__(self, host: Host, keys: Keys | None, shared: Shared) -> None:
        self.host = host
        self._shared = shared
        self._link = Link(host, keys, self._hear, on_trouble=self._trouble, clock=shared.clock)
        self._deaf = ""
        """What the link said when the host could not be heard or understood."""
        self._news = asyncio.Event()
        self._sent: Mapping[str, Sent] = {}
        self._epoch = 0
        """The epoch in which `_sent` was sent."""
        self._log = structlog.get_logger("policer.host").bind(host=host.name)
        self._gone = False
        self._put(HostLive(host))

    def enter(self, host: Host, contracts: Mapping[str, Contract]) -> None:
        """Take over what the operator changed; the link's addresses stay as they are."""
        self.host = host
        self._put(replace(self._live, host=host, contracts=contracts))

    def pardon(self, vr: str, actor: str) -> None:
        """Forget what a router did, and what was done about it."""
        state = self._live.state
        kept = state.routers.get(vr)
        if kept is None:
            return
        pardoned = replace(kept, evidence=Evidence(), punishment=Punishment())
        routers = {**state.routers, vr: pardoned}
        self._put(replace(self._live, state=replace(state, routers=routers)))
        self._shared.writer.punish(self.host.name, vr, None)
        self._note("pardoned", f"by {actor}", vr, actor)

    def inherit(self, punished: Mapping[str, PunishmentRow]) -> None:
        """Go on with the punishments of the leader before."""
        now = self._shared.clock()
        routers = {vr: _inherited(row, now) for vr, row in punished.items()}
        self._put(replace(self._live, state=HostState(at=now, routers=routers)))

    async def run(self) -> None:
        """Hear and decide until cancelled."""
        link = asyncio.create_task(self._link.run(), name=f"link {self.host.name}")
        try:
            while True:
                await self._turn()
        finally:
            link.cancel()
            await asyncio.gather(link, return_exceptions=True)

    async def _turn(self) -> None:
        """Wait for telemetry, or for the silence that makes a host gone; then play a round."""
        began = self._shared.clock()
        try:
            await asyncio.wait_for(self._news.wait(), GONE_AFTER_S)
        except TimeoutError:
            self._miss()
            return
        self._news.clear()
        try:
            await self._round()
        except LinkError as error:
            self._put(replace(self._live, link_problem=str(error)))
        except Exception:  # noqa: BLE001  the one firewall of this loop
            # A host that trips a bug must not stop the others.
            self._log.exception("a round failed")
            failed = self._live.rounds_failed + 1
            self._put(replace(self._live, rounds_failed=failed))
        rest = SHORTEST_S - (self._shared.clock() - began)
        if rest > 0:
            await asyncio.sleep(rest)

    def _hear(self, _host: str, telemetry: Telemetry) -> None:
        """Take over a message; a host that was gone is back in step with its first word."""
        now = self._shared.clock()
        before = self._live.sight
        after = seen(before, telemetry, now, self.host.capacity_pps)
        if after.distrust and after.distrust != before.distrust:
            self._note("distrusted", after.distrust)
        if self._gone and after.reachable(now):
            self._gone = False
            self._note("back", "the host is heard again")
        mended = self._deaf and self._live.link_problem == self._deaf
        problem = "" if mended else self._live.link_problem
        self._deaf = ""
        unread = self._link.dropped + self._link.bad
        self._put(replace(self._live, sight=after, link_problem=problem, unread=unread))
        if after.heard_at == now:
            self._news.set()

    def _trouble(self, _host: str, error: LinkError) -> None:
        """Show what keeps the link from hearing."""
        self._deaf = str(error)
        self._note("link", self._deaf)
        self._put(replace(self._live, link_problem=self._deaf))

    def _miss(self) -> None:
        """Say once that a host is gone; its leases end by themselves."""
        if not self._gone and self._live.sight.heard_at is not None:
            self._gone = True
            self._note("gone", f"nothing was heard for {GONE_AFTER_S:g} s")
        self._put(replace(self._live, orders={}))

    async def _round(self) -> None:
        shared, live, now = self._shared, self._live, self._shared.clock()
        leadership = shared.fleet.leadership
        # Nobody goes free since a round was played before it was known who is punished.
        if not leadership.leading or leadership.epoch != shared.ruled():
            return
        if leadership.epoch != self._epoch:
            self._epoch, self._sent = leadership.epoch, {}
        view = HostView(self.host.capacity_pps, live.contracts, live.sight)
        decided = play(now, view, live.state, shared.policy())
        self._keep(live, decided)
        shared.played(shared.clock() - now)
        await self._tell(now, decided)

    def _keep(self, live: HostLive, decided: Round) -> None:
        """Show what a round decided, and have it written down."""
        for note in decided.notes:
            self._note(note.kind, note.words, note.vr)
        for vr, after in decided.state.routers.items():
            was = live.state.routers.get(vr, RouterState()).punishment
            if after.punishment != was:
                self._shared.writer.punish(self.host.name, vr, self._row(vr, after.punishment))
        self._shared.convicted(len(decided.convicted))
        self._put(replace(live, state=decided.state, orders=decided.orders))

    def _row(self, vr: str, punishment: Punishment) -> PunishmentRow | None:
        if punishment.height == 0:
            return None
        return PunishmentRow(
            host=self.host.name,
            vr=vr,
            height=punishment.height,
            guilty=punishment.guilty,
            since=datetime.now(UTC),
            step=str(punishment.step or ""),
        )

    async def _tell(self, now: float, decided: Round) -> None:
        """Send what changed; what was refused is told again after a while."""
        terms = Terms(self._epoch, self._shared.ttl_s)
        reports = self._live.sight.routers
        dispatch = due(now, decided.orders, self._sent, reports, terms, self._shared.next_sequence)
        self._sent = dispatch.sent
        if not dispatch.requests:
            return
        refused = await self._link.send(dispatch.requests)
        refusals = {
            request.vr: f"{refusal.field}: {refusal.problem}"
            for request, refusal in zip(dispatch.requests, refused, strict=True)
            if refusal is not None
        }
        self._told(refusals, refused)

    def _told(self, refusals: Mapping[str, str], refused: tuple[Refusal | None, ...]) -> None:
        before = self._live.refusals
        for vr, words in refusals.items():
            if before.get(vr) != words:
                self._note("refused", words, vr)
        if any(refusal is not None and refusal.code == "stale_epoch" for refusal in refused):
            self._note("overtaken", "the host obeys a policer of a higher epoch")
        self._put(replace(self._live, link_problem="", refusals=refusals))

    def _note(self, kind: str, words: str, vr: str | None = None, actor: str = "policer") -> None:
        self._log.info(kind, words=words, vr=vr)
        happened = datetime.now(UTC)  # it may wait for a store that is away
        self._shared.writer.note(Event(self.host.name, kind, words, vr, actor, happened))

    @property
    def _live(self) -> HostLive:
        return self._shared.fleet.hosts[self.host.name]

    def _put(self, live: HostLive) -> None:
        self._shared.fleet.put(live)


def _inherited(row: PunishmentRow, now: float) -> RouterState:
    """Return what the leader before knew of a router; its step is given its full time again."""
    step = Step(row.step) if row.step in set(Step) else None
    punishment = Punishment(row.height, now, guilty=row.guilty, step=step)
    return RouterState(Evidence(guilty=row.guilty, excess_at=now), punishment)
