"""Control loop of one host: telemetry in, a round, orders out; isolated from other hosts."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import structlog

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.ladder import Punishment, Step
from policer.contracts.overrides import excused
from policer.contracts.promised import Promised
from policer.decide.dispatch import Sent, Terms, due
from policer.decide.engagement import EngagementState
from policer.decide.evidence import Evidence
from policer.decide.round import decide_round
from policer.decide.state import (
    LET_GO,
    NEW_ROUTER,
    HostState,
    HostView,
    Order,
    Policy,
    Round,
    RouterState,
)
from policer.decide.telemetry import GONE_AFTER_S, HostTelemetry, seen
from policer.errors import LinkError
from policer.fleet.compliance import Kept, kept_after, moved
from policer.fleet.limited import tenant_of
from policer.fleet.live import Fleet, HostLive
from policer.link import Keys, Link
from policer.link.compat import LeftOut
from policer.link.connection import AGAIN_S
from policer.link.dialect import Dialect, Refusals
from policer.service.event_limit import EventLimit
from policer.service.writer import Writer
from policer.store import Event, PunishmentRow
from policer.token_bucket import Buckets
from xtc.wire import Activate, Limit, Refusal, Telemetry, highest_possible

SHORTEST_S = 0.5
"""Minimum time between rounds, however often a host sends."""
UNLIMITED = frozenset({"punished", "pardoned"})
"""Measures against a router are always noted; the contract's patience limits their rate."""
TWICE_S = 30.0
"""A host whose daemon obeys orders for another entry is shown as such for this time: two leases."""
ENTERED_TWICE = (
    "it obeys leases of this epoch that were not sent to it: is its daemon entered twice, or was a "
    "lease given by hand?"
)
NEAR_S = 86_400
"""The leader goes by itself above an epoch that is ahead of the clock by no more. Beyond, an
operator decides: daemons refuse epochs years ahead of their own clocks, which may be behind, and
one host must not use up that room."""
LONGEST_WORDS = 500
"""Characters of a daemon's own text that an event keeps."""
_NOTHING_KNOWN = HostState()
"""State shown by a policer that does not lead."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Objects that all hosts' loops share."""

    fleet: Fleet
    writer: Writer
    clock: Callable[[], float]
    next_sequence: Callable[[], int]
    policy: Callable[[str], Policy]
    """Current policy for a host: a brake may be on."""
    convicted: Callable[[str, int], None]
    """Called with the routers of a host that took the first step of their ladders in a round."""
    recorded: Callable[[HostLive, HostTelemetry], None]
    """Called while this policer leads for each believed tick: the host before it, and with it."""
    played: Callable[[float], None]
    """Called with the duration of a round in seconds."""
    ruled: Callable[[], int]
    """Epoch in which the punishments of the previous leader were taken over."""
    heard: Callable[[str, HostTelemetry], None]
    """Called with each believed view of a host, before the round that uses it."""
    overtaken: Callable[[int], None]
    """Called with the epoch that a host obeys if it is above this policer's."""
    wall: Callable[[], float]
    """The time of day, seconds since 1970."""
    ttl_s: float


class Remembered(NamedTuple):
    """State of a router that moves with it to another host."""

    state: RouterState | None
    """None if this policer did not lead."""
    kept: Kept | None
    tenant: str | None
    """Its tenant there, who alone may see its sums."""


class HostLoop:
    """Control loop for one host."""

    def __init__(self, host: Host, keys: Keys | None, shared: Shared) -> None:
        self.host = host
        self._shared = shared
        self._link = Link(host, keys, self._hear, on_trouble=self._trouble, clock=shared.clock)
        self._deaf = ""
        """Link error while the host could not be received or understood."""
        self._untold = ""
        """Link error while nothing could be sent to the host."""
        self._state = _NOTHING_KNOWN
        """State after the last round; kept without the lead, in case this policer leads again."""
        self._led = False
        """Whether `_state` comes from a leader."""
        self._overtaken = 0
        """Epoch in which an event last noted that the host obeys another policer."""
        self._limit = EventLimit()
        """Limit of the events that the host may still cause."""
        self._raises = Buckets(1 / AGAIN_S, 1.0)
        """Limit of this host's requests for a higher epoch: each costs all hosts a write."""
        self._news = asyncio.Event()
        self._sent: Mapping[str, Sent] = {}
        self._epoch = 0
        """The epoch in which `_sent` was sent."""
        self._given = 0
        """The highest sequence sent in it."""
        self._twice_until = float("-inf")
        """Until then the daemon counts as shared with another entry."""
        self._refused: frozenset[tuple[type[Activate | Limit], str]] = frozenset()
        """Last orders that the daemon refused, by kind and router."""
        self._costs: Mapping[str, float] = {}
        """Cost of a packet of each router relative to an ordinary one, if not 1."""
        self._dialect = Dialect(self._carry_out, shared.next_sequence)
        """Adapts messages to what its daemon understands."""
        self._log = structlog.get_logger("policer.host").bind(host=host.name)
        self._gone = self._gone_noted = False
        self._put(HostLive(host))

    def enter(
        self, host: Host, contracts: Mapping[str, Contract], promised: Promised | None = None
    ) -> None:
        """Take over new contracts; the link's addresses stay unchanged.

        The sums of a router whose tenant changes begin again: the next tenant must not see them.

        Args:
            host: its entry.
            contracts: terms in force, by router.
            promised: the source of these terms.
        """
        self.host = host
        self._costs = {vr: one.cost for vr, one in contracts.items() if one.cost != 1.0}
        live = replace(self._live, host=host, contracts=contracts)
        if promised is not None:
            live = replace(live, **promised._asdict())
        self._put(replace(live, kept=self._sums_under(live)))

    def _sums_under(self, after: HostLive) -> dict[str, Kept]:
        """Return the sums under new contracts."""
        before, now = self._live, self._shared.clock()
        return {
            vr: kept if tenant_of(before, vr) == tenant_of(after, vr) else Kept(now, kept.last)
            for vr, kept in before.kept.items()
        }

    def release(self, vrs: Collection[str]) -> dict[str, Remembered]:
        """Forget routers that moved to other hosts; return their state."""
        live, routers = self._live, self._state.routers
        known = {vr for vr in vrs if vr in routers or vr in live.kept}
        gone = {
            vr: Remembered(routers.get(vr), live.kept.get(vr), tenant_of(live, vr)) for vr in known
        }
        rest = {vr: state for vr, state in routers.items() if vr not in gone}
        kept = {vr: one for vr, one in live.kept.items() if vr not in gone}
        self._remember(rest, kept)
        for vr, one in gone.items():
            if one.state is not None and one.state.punishment.height:
                self._punish(vr, Punishment())
        return gone

    def adopt(self, came: Mapping[str, Remembered]) -> None:
        """Take over routers that came from other hosts, after their contracts.

        A router that is higher on its ladder here, by a contract of this host alone, stays there.
        """
        routers, kept = self._state.routers, self._live.kept
        states = {
            vr: msgspec.structs.replace(one.state, configured=False)
            for vr, one in came.items()
            if one.state is not None and not _stands_higher(routers.get(vr), one.state)
        }
        sums = {
            vr: moved(one.kept, kept[vr])
            for vr, one in came.items()
            if one.kept is not None and vr in kept and one.tenant == tenant_of(self._live, vr)
        }
        self._remember({**routers, **states}, {**kept, **sums})
        for vr, state in states.items():
            if state.punishment.height:
                self._punish(vr, state.punishment)

    def _remember(self, routers: Mapping[str, RouterState], kept: Mapping[str, Kept]) -> None:
        """Replace the state of routers; only leaders show what only they know."""
        if routers != self._state.routers:
            self._state = replace(self._state, routers=routers)
        live = replace(self._live, kept=kept)
        self._put(replace(live, state=self._state) if self._rules() else live)

    def pardon(self, vr: str, actor: str) -> None:
        """Forget a router's misbehaviour, and lift the measures against it."""
        kept = self._state.routers.get(vr)
        if kept is None:
            return
        pardoned = msgspec.structs.replace(kept, evidence=Evidence(), punishment=Punishment())
        self._state = replace(self._state, routers={**self._state.routers, vr: pardoned})
        self._put(replace(self._live, state=self._state))
        self._shared.writer.punish(self.host.name, vr, None, self._shared.ruled())
        self._note("pardoned", f"by {actor}", vr, actor)

    def inherit(self, punished: Mapping[str, PunishmentRow], *, led_last: bool = False) -> None:
        """Continue from the previous leader.

        Args:
            punished: punishments by router.
            led_last: whether that leader was this policer, which then has more state.
        """
        if not (led_last and self._led):
            now = self._shared.clock()
            routers = {vr: _inherited(row, now) for vr, row in punished.items()}
            self._state = HostState(at=now, routers=routers)
        self._led = True
        self._put(replace(self._live, state=self._state))

    async def run(self) -> None:
        """Receive and decide until cancelled."""
        link = asyncio.create_task(self._link.run(), name=f"link {self.host.name}")
        try:
            while True:
                await self._turn()
        finally:
            link.cancel()
            await asyncio.gather(link, return_exceptions=True)

    async def _turn(self) -> None:
        """Wait for telemetry, or for the silence that makes a host gone; then run a round."""
        began = self._shared.clock()
        try:
            # Not wait_for: before Python 3.12 it may lose a cancellation of the loop.
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
            # A host that triggers a bug must not stop the others.
            self._log.exception("round_failed")
            failed = self._live.rounds_failed + 1
            self._put(replace(self._live, rounds_failed=failed))
        rest = SHORTEST_S - (self._shared.clock() - began)
        if rest > 0:
            await asyncio.sleep(rest)

    def _hear(self, _host: str, telemetry: Telemetry) -> None:
        """Process a message; a host that was gone is reachable again from its first message."""
        now = self._shared.clock()
        live, self._deaf = self._live, ""
        after = seen(live.telemetry, telemetry, now, self.host.capacity_pps, self._costs)
        restarted = after.tick < live.telemetry.tick
        if restarted:
            self._dialect.forget()
        kept = kept_after(now, live.kept, after.routers, live.contracts, restarted=restarted)
        if after.heard_at == now and not after.distrust and self._rules():
            self._shared.recorded(live, after)
        unread = self._link.dropped + self._link.bad
        self._put(
            replace(
                live,
                telemetry=after,
                link_problem=self._problem,
                unread=unread,
                events_left_out=self._limit.left_out,
                kept=kept,
            )
        )
        if after.distrust:
            self._note_rarely("distrusted", after.distrust)
        if self._obeys_another(after):
            self._twice_until = now + TWICE_S
            self._note_rarely("entered_twice", ENTERED_TWICE)
        if self._gone and after.reachable(now):
            self._gone = self._gone_noted = False
            self._note_of_host("back", "the host is heard again")
        if after.heard_at == now and not after.distrust:
            self._shared.heard(self.host.name, after)
        if after.heard_at == now:
            self._news.set()

    def _obeys_another(self, telemetry: HostTelemetry) -> bool:
        """Whether the host obeys leases that this policer sent to another entry of the same host.

        Sequences rise over all hosts: one above all that were sent here was sent elsewhere.
        """
        return self._rules() and any(
            report.epoch == self._epoch and (report.sequence or 0) > self._given > 0
            for report in telemetry.routers.values()
        )

    def _trouble(self, _host: str, error: LinkError) -> None:
        """Show the link's receive error."""
        self._deaf = str(error)
        self._note_of_host("link", self._deaf)
        self._put(replace(self._live, link_problem=self._problem))

    def _miss(self) -> None:
        """Report once that a host is gone; its leases expire by themselves."""
        self._gone = self._live.telemetry.heard_at is not None
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
            self._epoch, self._sent, self._given = shared.ruled(), {}, 0
        view = HostView(
            self.host.capacity_pps,
            excused(live.contracts, overrides.exempt_on(self.host.name, live.follows)),
            live.telemetry,
            unled={vr for kind, vr in self._refused if kind is Activate},
            unlimited={vr for kind, vr in self._refused if kind is Limit},
            packets_only=self._dialect.packets_only(now, live.contracts),
        )
        decided = decide_round(now, view, self._state, shared.policy(self.host.name))
        self._keep(live, decided)
        shared.played(shared.clock() - now)
        await self._tell(now, decided.orders)

    def _rules(self) -> bool:
        """Whether this policer leads and has the punishments; without them, it would lift these."""
        leadership = self._shared.fleet.leadership
        return leadership.leading and leadership.epoch == self._shared.ruled()

    def _stand_down(self) -> None:
        """Hide what only a leader knows: it dates from the last round as leader."""
        self._untold = ""
        live = self._live
        if live.orders or live.refusals or live.state is not _NOTHING_KNOWN:
            shown = replace(live, orders={}, refusals={}, state=_NOTHING_KNOWN)
            self._put(replace(shown, link_problem=self._problem))

    def _rest(self) -> None:
        """Send nothing, since an operator suspended control; leases expire by themselves.

        Punishments are kept. When control is resumed, the host starts as calm.
        """
        self._untold = ""
        self._state = replace(self._state, standing=EngagementState())
        shown = replace(self._live, orders={}, refusals={}, state=self._state)
        self._put(replace(shown, link_problem=self._problem))

    def _keep(self, live: HostLive, decided: Round) -> None:
        """Show the result of a round, and queue it for the store."""
        for note in decided.notes:
            noting = self._note if note.kind in UNLIMITED else self._note_limited
            noting(note.kind, note.words, note.vr)
        before, after = self._state.routers, decided.state.routers
        for vr, state in after.items():
            was = before.get(vr, NEW_ROUTER).punishment
            if state.punishment is not was and state.punishment != was:
                self._punish(vr, state.punishment)
        for vr in before.keys() - after.keys():  # dropped after a long absence
            self._punish(vr, Punishment())
        self._state = decided.state
        self._shared.convicted(self.host.name, len(decided.convicted))
        self._put(replace(live, state=decided.state, orders=decided.orders))

    def _punish(self, vr: str, punishment: Punishment) -> None:
        row = self._row(vr, punishment)
        self._shared.writer.punish(self.host.name, vr, row, self._shared.ruled())

    def _row(self, vr: str, punishment: Punishment) -> PunishmentRow | None:
        """Return the row for the next leader; none in a dry run: it would be in force there."""
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
        """Send changed orders; refused orders are sent again after a while."""
        terms = Terms(self._epoch, self._shared.ttl_s)
        reports = self._live.telemetry.routers
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
        numbers = (message.sequence for message in messages if isinstance(message, Activate))
        self._given = max(self._given, *numbers, 0)
        return await self._link.send(messages)

    def _in_bits(self) -> set[str]:
        """Return the routers to hold at a ceiling in bits/s, if their daemon can."""
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
        """Show orders refused now, or earlier and still wanted."""
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
        """Report once per epoch that the host obeys a higher one, and request one above that.

        A host may claim any epoch. So requests are rare, and never for an epoch far ahead of the
        clock. There is no request while another policer is active there: the two would outbid each
        other endlessly.
        """
        if refusal.code != "stale_epoch":
            return
        if self._overtaken != self._epoch:
            self._overtaken = self._epoch
            self._note("overtaken", self._of_epochs())
        highest = self._live.telemetry.highest_epoch
        if highest is None or highest < self._epoch or self._is_far(highest):
            return
        if self._others_work():
            return
        if not self._raises.wait(self._shared.clock(), "epoch"):
            self._note("epoch_raised", f"an epoch above {highest} is taken: {self._of_epochs()}")
            self._shared.overtaken(highest)

    def _is_far(self, epoch: int) -> bool:
        """Whether an epoch is too far ahead of the clock to go above it without an operator."""
        return epoch > self._shared.wall() + NEAR_S

    def _others_work(self) -> bool:
        """Whether a lease of a higher epoch is running: only an active policer renews those."""
        return any(
            (report.epoch or 0) > self._epoch and report.lease_remaining_s is not None
            for report in self._live.telemetry.routers.values()
        )

    def _of_epochs(self) -> str:
        """Describe which epoch the host obeys, and what to do if no leader can exceed it."""
        highest = self._live.telemetry.highest_epoch
        if highest is None:
            command = "`policer epoch raise --above` with the epoch in its refusal goes above it"
            return f"the host obeys a policer of a higher epoch: {command}"
        words = f"the host obeys epoch {highest}, above {self._epoch}"
        if self._others_work():
            command = f"`policer epoch raise --above {highest}`"
            return f"{words}, of another policer at work: stop one of the two, or run {command}"
        if not self._is_far(highest):
            return words
        if highest >= highest_possible(self._shared.wall()):
            return f"{words} and years ahead of the clock: run `xtc epoch reset` there"
        command = f"`policer epoch raise --above {highest}`"
        return f"{words} and far ahead of the clock: run `xtc epoch reset` there, or {command}"

    def _note_rarely(self, kind: str, words: str, vr: str | None = None) -> None:
        """Note an event that the daemon could cause with every tick."""
        if not self._shared.fleet.leadership.leading:
            return
        if not self._limit.repeated(self._shared.clock(), kind, vr):
            self._note_limited(kind, words[:LONGEST_WORDS], vr)

    def _note_limited(self, kind: str, words: str, vr: str | None = None) -> None:
        """Note an event that a host, or the senders to its routers, can cause repeatedly."""
        now = self._shared.clock()
        if self._limit.admits(now, kind):
            more = self._limit.left_out_before(kind)
            self._note(kind, f"{words} ({more} more {kind} were left out)" if more else words, vr)
        elif not self._limit.repeated(now, "events_left_out", kind):
            self._note("events_left_out", f"too many {kind}: most of them are no longer noted")

    def _note_of_host(self, kind: str, words: str) -> bool:
        """Note an event that every policer sees if this one leads; return whether it does."""
        if leads := self._shared.fleet.leadership.leading:
            self._note_limited(kind, words)
        return leads

    def _note(self, kind: str, words: str, vr: str | None = None, actor: str = "policer") -> None:
        self._log.info(kind, words=words, vr=vr)
        happened = datetime.now(UTC)  # the event may wait for an unavailable store
        tenant = None if vr is None else tenant_of(self._live, vr)
        event = Event(self.host.name, kind, words, vr, actor, happened, tenant)
        self._shared.writer.note(event)

    @property
    def _problem(self) -> str:
        twice = self._shared.clock() < self._twice_until
        return self._untold or self._deaf or (ENTERED_TWICE if twice else "")

    @property
    def _live(self) -> HostLive:
        return self._shared.fleet.host(self.host.name)

    def _put(self, live: HostLive) -> None:
        self._shared.fleet.put(live)


def _stands_higher(here: RouterState | None, came: RouterState) -> bool:
    return here is not None and here.punishment.height > came.punishment.height


def _inherited(row: PunishmentRow, now: float) -> RouterState:
    """Return a router's state from the previous leader; its step gets its full time again."""
    step = Step(row.step) if row.step in set(Step) else None
    punishment = Punishment(row.height, now, guilty=row.guilty, step=step)
    return RouterState(Evidence(guilty=row.guilty, excess_at=now), punishment)
