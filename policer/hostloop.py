"""One host's loop: telemetry in, a round, orders out; whatever happens here, other hosts go on."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec
import structlog

from policer.bucket import Buckets
from policer.compat import LeftOut
from policer.contract import Contract
from policer.dialect import Dialect, Refusals
from policer.dispatch import Sent, Terms, due
from policer.engagement import Standing
from policer.errors import LinkError
from policer.evidence import Evidence
from policer.fleet import Fleet, HostLive
from policer.hosts import Host
from policer.ladder import Punishment, Step
from policer.link import Keys, Link
from policer.link.host import AGAIN_S
from policer.overrides import excused
from policer.promise import kept_after
from policer.reached import tenant_of
from policer.round import play
from policer.sight import GONE_AFTER_S, Sight, seen
from policer.state import (
    LET_GO,
    NEW_ROUTER,
    HostState,
    HostView,
    Order,
    Policy,
    Round,
    RouterState,
)
from policer.store import Event, PunishmentRow
from policer.writer import Writer
from xtc.lease import highest_possible
from xtc.wire import Activate, Limit, Refusal, Telemetry

SHORTEST_S = 0.5
"""Rounds come no closer than this, however often a host speaks."""
MANY, SOME_PER_S = 100.0, 1 / 60
"""Events of one kind that a daemon may cause at once, and in the long run."""
LONGEST_WORDS = 500
"""Characters of a daemon's own words that an event keeps."""
_OF_HOST: Mapping[str, str] = {}
"""No contract followed its router."""
_OF_NOBODY: Mapping[str, str] = {}
_NOTHING_KNOWN = HostState()
"""What is shown by a policer that does not lead."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all hosts' loops share."""

    fleet: Fleet
    writer: Writer
    clock: Callable[[], float]
    next_sequence: Callable[[], int]
    policy: Callable[[str], Policy]
    """The policy of this moment for a host: a brake may be on."""
    convicted: Callable[[str, int], None]
    """Told how many routers of a host took the first step of their ladders in a round."""
    played: Callable[[float], None]
    """Told how many seconds a round took."""
    ruled: Callable[[], int]
    """The epoch in which the punishments of the leader before were taken over."""
    heard: Callable[[str, Sight], None]
    """Told what a host shows that is believed, before the round that goes by it."""
    overtaken: Callable[[int], None]
    """Told the epoch that a host obeys where it is above this policer's."""
    wall: Callable[[], float]
    """The time of day, seconds since 1970."""
    ttl_s: float


class HostLoop:
    """Sees, decides for and tells one host."""

    def __init__(self, host: Host, keys: Keys | None, shared: Shared) -> None:
        self.host = host
        self._shared = shared
        self._link = Link(host, keys, self._hear, on_trouble=self._trouble, clock=shared.clock)
        self._deaf = ""
        """What the link said when the host could not be heard or understood."""
        self._untold = ""
        """What the link said when the host could not be told."""
        self._state = _NOTHING_KNOWN
        """As of the last round; it outlives the lead, in case this policer is the next leader."""
        self._led = False
        """Whether `_state` is of a leader."""
        self._overtaken = 0
        """The epoch in which it was last noted that the host obeys another policer."""
        self._rarely = Buckets(1 / AGAIN_S, 1.0)
        """Which events that the daemon can cause at will may be noted again."""
        self._raises = Buckets(1 / AGAIN_S, 1.0)
        """How often this host may ask for a higher epoch: each costs all hosts a write."""
        self._any = Buckets(SOME_PER_S, MANY)
        """How many of them it may cause in all."""
        self._news = asyncio.Event()
        self._sent: Mapping[str, Sent] = {}
        self._epoch = 0
        """The epoch in which `_sent` was sent."""
        self._refused: frozenset[tuple[type[Activate | Limit], str]] = frozenset()
        """What the daemon would not take when it was last told, by kind and router."""
        self._costs: Mapping[str, float] = {}
        """What a packet of each router takes beside an ordinary one, where that is not 1."""
        self._dialect = Dialect(self._carry_out, shared.next_sequence)
        """What its daemon takes."""
        self._log = structlog.get_logger("policer.host").bind(host=host.name)
        self._gone = self._gone_noted = False
        self._put(HostLive(host))

    def enter(
        self,
        host: Host,
        contracts: Mapping[str, Contract],
        follows: Mapping[str, str] = _OF_HOST,
        tenants: Mapping[str, str] = _OF_NOBODY,
    ) -> None:
        """Take over what is promised from now on; the link's addresses stay as they are.

        Args:
            host: its entry.
            contracts: what holds, by router.
            follows: names of those that followed their routers, by router.
            tenants: whose routers are, by router.
        """
        self.host = host
        self._costs = {vr: one.cost for vr, one in contracts.items() if one.cost != 1.0}
        live = replace(self._live, contracts=contracts, follows=follows, tenants=tenants)
        self._put(replace(live, host=host))

    def release(self, vr: str) -> RouterState | None:
        """Forget a router that went to another host; return what is remembered of it."""
        kept = self._state.routers.get(vr)
        if kept is None:
            return None
        rest = {other: state for other, state in self._state.routers.items() if other != vr}
        self._state = replace(self._state, routers=rest)
        self._punish(vr, Punishment())
        self._put(replace(self._live, state=self._state))
        return kept

    def adopt(self, vr: str, state: RouterState) -> None:
        """Go on with a router that came from another host."""
        self._state = replace(self._state, routers={**self._state.routers, vr: state})
        self._punish(vr, state.punishment)
        self._put(replace(self._live, state=self._state))

    def pardon(self, vr: str, actor: str) -> None:
        """Forget what a router did, and what was done about it."""
        kept = self._state.routers.get(vr)
        if kept is None:
            return
        pardoned = msgspec.structs.replace(kept, evidence=Evidence(), punishment=Punishment())
        self._state = replace(self._state, routers={**self._state.routers, vr: pardoned})
        self._put(replace(self._live, state=self._state))
        self._shared.writer.punish(self.host.name, vr, None, self._shared.ruled())
        self._note("pardoned", f"by {actor}", vr, actor)

    def inherit(self, punished: Mapping[str, PunishmentRow], *, led_last: bool = False) -> None:
        """Go on where the leader before was.

        Args:
            punished: who is punished, by router.
            led_last: whether that leader was this policer, which then knows more than that.
        """
        if not (led_last and self._led):
            now = self._shared.clock()
            routers = {vr: _inherited(row, now) for vr, row in punished.items()}
            self._state = HostState(at=now, routers=routers)
        self._led = True
        self._put(replace(self._live, state=self._state))

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
            # Not wait_for: until Python 3.12 it may lose that the loop was cancelled.
            async with asyncio.timeout(GONE_AFTER_S):
                await self._news.wait()
        except TimeoutError:
            self._miss()
            return
        self._news.clear()
        try:
            await self._round()
        except LinkError as error:
            self._untold = str(error)
            self._put(replace(self._live, link_problem=self._problem))
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
        live, self._deaf = self._live, ""
        after = seen(live.sight, telemetry, now, self.host.capacity_pps, self._costs)
        restarted = after.tick < live.sight.tick
        if restarted:
            self._dialect.forget()
        kept = kept_after(now, live.kept, after.routers, live.contracts, restarted=restarted)
        unread = self._link.dropped + self._link.bad
        shown = replace(live, sight=after, link_problem=self._problem, unread=unread, kept=kept)
        self._put(shown)
        if after.distrust:
            self._note_rarely("distrusted", after.distrust)
        if self._gone and after.reachable(now):
            self._gone = self._gone_noted = False
            self._note_of_host("back", "the host is heard again")
        if after.heard_at == now and not after.distrust:
            self._shared.heard(self.host.name, after)
        if after.heard_at == now:
            self._news.set()

    def _trouble(self, _host: str, error: LinkError) -> None:
        """Show what keeps the link from hearing."""
        self._deaf = str(error)
        self._note_of_host("link", self._deaf)
        self._put(replace(self._live, link_problem=self._problem))

    def _miss(self) -> None:
        """Say once that a host is gone; its leases end by themselves."""
        self._gone = self._live.sight.heard_at is not None
        if self._gone and not self._gone_noted:
            words = f"nothing was heard for {GONE_AFTER_S:g} s"
            self._gone_noted = self._note_of_host("gone", words)
        if not self._rules():
            self._stand_down()
        self._put(replace(self._live, orders={}))

    async def _round(self) -> None:
        shared, live, now = self._shared, self._live, self._shared.clock()
        if not self._rules():
            self._stand_down()
            return
        overrides = shared.fleet.overrides
        if self.host.name in overrides.suspended:
            self._rest()
            return
        if shared.ruled() != self._epoch:
            self._epoch, self._sent = shared.ruled(), {}
        view = HostView(
            self.host.capacity_pps,
            excused(live.contracts, overrides.exempt_on(self.host.name)),
            live.sight,
            unled={vr for kind, vr in self._refused if kind is Activate},
            unlimited={vr for kind, vr in self._refused if kind is Limit},
            packets_only=self._dialect.packets_only(now, live.contracts),
        )
        decided = play(now, view, self._state, shared.policy(self.host.name))
        self._keep(live, decided)
        shared.played(shared.clock() - now)
        await self._tell(now, decided.orders)

    def _rules(self) -> bool:
        """Whether this policer leads, and knows who is punished: else somebody would go free."""
        leadership = self._shared.fleet.leadership
        return leadership.leading and leadership.epoch == self._shared.ruled()

    def _stand_down(self) -> None:
        """Show nothing of what only a leader knows; what was shown is of the last round led."""
        self._untold = ""
        live = self._live
        if live.orders or live.refusals or live.state is not _NOTHING_KNOWN:
            shown = replace(live, orders={}, refusals={}, state=_NOTHING_KNOWN)
            self._put(replace(shown, link_problem=self._problem))

    def _rest(self) -> None:
        """Send nothing, since an operator suspended control; leases end by themselves.

        Punishments are remembered, and the host begins calm when control is resumed.
        """
        self._untold = ""
        self._state = replace(self._state, standing=Standing())
        shown = replace(self._live, orders={}, refusals={}, state=self._state)
        self._put(replace(shown, link_problem=self._problem))

    def _keep(self, live: HostLive, decided: Round) -> None:
        """Show what a round decided, and have it written down."""
        for note in decided.notes:
            self._note(note.kind, note.words, note.vr)
        before, after = self._state.routers, decided.state.routers
        for vr, state in after.items():
            if state.punishment != before.get(vr, NEW_ROUTER).punishment:
                self._punish(vr, state.punishment)
        for vr in before.keys() - after.keys():  # forgotten, having been away for long
            self._punish(vr, Punishment())
        self._state = decided.state
        self._shared.convicted(self.host.name, len(decided.convicted))
        self._put(replace(live, state=decided.state, orders=decided.orders))

    def _punish(self, vr: str, punishment: Punishment) -> None:
        row = self._row(vr, punishment)
        self._shared.writer.punish(self.host.name, vr, row, self._shared.ruled())

    def _row(self, vr: str, punishment: Punishment) -> PunishmentRow | None:
        """Return what the next leader takes over; what is only reported would be in force there."""
        if punishment.height == 0 or punishment.dry:
            return None
        return PunishmentRow(
            host=self.host.name,
            vr=vr,
            height=punishment.height,
            guilty=punishment.guilty,
            since=datetime.now(UTC),
            step=str(punishment.step or ""),
        )

    async def _tell(self, now: float, orders: Mapping[str, Order]) -> None:
        """Send what changed; what was refused is told again after a while."""
        terms = Terms(self._epoch, self._shared.ttl_s)
        reports = self._live.sight.routers
        dispatch = due(now, orders, self._sent, reports, terms, self._shared.next_sequence)
        self._sent = dispatch.sent
        wanted = {vr for vr, order in orders.items() if order != LET_GO}
        refused: Refusals = ()
        if dispatch.requests:
            refused = await self._dialect.send(now, dispatch.requests, self._in_bits())
        if dispatch.requests or not wanted:
            self._untold = ""
        self._told(wanted, dispatch.requests, refused)

    async def _carry_out(self, messages: Sequence[Activate | Limit]) -> Refusals:
        return await self._link.send(messages)

    def _in_bits(self) -> set[str]:
        """Return the routers that are to be held at a ceiling in bits/s, if their daemon can."""
        if self._state.standing.engaged:
            return set()
        contracts = self._live.contracts
        return {vr for vr, contract in contracts.items() if contract.ceiling_bps is not None}

    def _told(
        self,
        wanted: set[str],
        requests: Sequence[Activate | Limit],
        refused: Refusals,
    ) -> None:
        """Show what was refused now, or before and is still wanted."""
        before = self._live.refusals
        told = {(type(request), request.vr) for request in requests}
        now = {
            (type(request), request.vr)
            for request, refusal in zip(requests, refused, strict=True)
            if refusal is not None and not isinstance(refusal, LeftOut)
        }
        self._refused = frozenset({one for one in self._refused - told if one[1] in wanted} | now)
        stays = wanted - {request.vr for request in requests}
        refusals = {vr: words for vr, words in before.items() if vr in stays}
        for request, refusal in zip(requests, refused, strict=True):
            if refusal is not None:
                refusals[request.vr] = f"{refusal.field}: {refusal.problem}"
                self._doubt(refusal)
        for vr, words in refusals.items():
            if before.get(vr) != words:
                self._note_rarely("refused", words, vr)
        if refusals != before or self._live.link_problem != self._problem:
            self._put(replace(self._live, link_problem=self._problem, refusals=refusals))

    def _doubt(self, refusal: Refusal) -> None:
        """Say once in an epoch that the host obeys a higher one, and ask for one above that.

        A host may claim any epoch, so none is asked for that no policer can have, and none often;
        and none while another policer is at work there: the two would go above each other for ever.
        """
        if refusal.code != "stale_epoch":
            return
        if self._overtaken != self._epoch:
            self._overtaken = self._epoch
            self._note("overtaken", self._of_epochs())
        highest = self._live.sight.highest_epoch
        if highest is None or not self._epoch <= highest <= highest_possible(self._shared.wall()):
            return
        if self._others_work():
            return
        if not self._raises.wait(self._shared.clock(), "epoch"):
            self._note("epoch_raised", f"an epoch above {highest} is taken: {self._of_epochs()}")
            self._shared.overtaken(highest)

    def _others_work(self) -> bool:
        """Whether a lease of a higher epoch runs out: only a policer at work renews those."""
        return any(
            (report.epoch or 0) > self._epoch and report.lease_remaining_s is not None
            for report in self._live.sight.routers.values()
        )

    def _of_epochs(self) -> str:
        """Say which epoch the host obeys, and what to do where no leader can go above it."""
        highest = self._live.sight.highest_epoch
        if highest is None:
            command = "`policer epoch raise --above` with the epoch in its refusal goes above it"
            return f"the host obeys a policer of a higher epoch: {command}"
        words = f"the host obeys epoch {highest}, above {self._epoch}"
        if self._others_work():
            command = f"`policer epoch raise --above {highest}`"
            return f"{words}, of another policer at work: stop one of the two, or run {command}"
        if highest <= highest_possible(self._shared.wall()):
            return words
        return f"{words} and years ahead of the clock: run `xtc epoch reset` there"

    def _note_rarely(self, kind: str, words: str, vr: str | None = None) -> None:
        """Note what the daemon may change with every tick, and so flood the table of events."""
        if not self._shared.fleet.leadership.leading:
            return
        now = self._shared.clock()
        if self._rarely.wait(now, f"{kind} {vr}") or self._any.wait(now, kind):
            return
        self._note(kind, words[:LONGEST_WORDS], vr)

    def _note_of_host(self, kind: str, words: str) -> bool:
        """Note what every policer sees, if this one leads; return whether it does."""
        if leads := self._shared.fleet.leadership.leading:
            self._note(kind, words)
        return leads

    def _note(self, kind: str, words: str, vr: str | None = None, actor: str = "policer") -> None:
        self._log.info(kind, words=words, vr=vr)
        happened = datetime.now(UTC)  # it may wait for a store that is away
        tenant = None if vr is None else tenant_of(self._live, vr)
        event = Event(self.host.name, kind, words, vr, actor, happened, tenant)
        self._shared.writer.note(event)

    @property
    def _problem(self) -> str:
        return self._untold or self._deaf

    @property
    def _live(self) -> HostLive:
        return self._shared.fleet.host(self.host.name)

    def _put(self, live: HostLive) -> None:
        self._shared.fleet.put(live)


def _inherited(row: PunishmentRow, now: float) -> RouterState:
    """Return what the leader before knew of a router; its step is given its full time again."""
    step = Step(row.step) if row.step in set(Step) else None
    punishment = Punishment(row.height, now, guilty=row.guilty, step=step)
    return RouterState(Evidence(guilty=row.guilty, excess_at=now), punishment)
