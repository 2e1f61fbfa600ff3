"""One host's loop: telemetry in, a round, orders out; whatever happens here, other hosts go on."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import structlog

from policer.bucket import Buckets
from policer.compat import LeftOut
from policer.contract import Contract
from policer.dialect import Dialect, Refusals
from policer.dispatch import Sent, Terms, due
from policer.engagement import Standing
from policer.errors import LinkError
from policer.eventlimit import EventLimit
from policer.evidence import Evidence
from policer.fleet import Fleet, HostLive
from policer.hosts import Host
from policer.ladder import Punishment, Step
from policer.link import Keys, Link
from policer.link.host import AGAIN_S
from policer.overrides import excused
from policer.promise import Kept, kept_after, moved
from policer.promises import Promised
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
from xtc.wire import Activate, Limit, Refusal, Telemetry, highest_possible

SHORTEST_S = 0.5
"""Rounds come no closer than this, however often a host speaks."""
UNLIMITED = frozenset({"punished", "pardoned"})
"""What is done to a router is always noted; its contract's patience says how often it can be."""
TWICE_S = 30.0
"""A host whose daemon obeys orders for another one is shown as such for so long: two leases."""
ENTERED_TWICE = (
    "it obeys leases of this epoch that were not sent to it: is its daemon entered twice, or was a "
    "lease given by hand?"
)
LONGEST_WORDS = 500
"""Characters of a daemon's own words that an event keeps."""
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
    recorded: Callable[[HostLive, Sight], None]
    """Called while it leads for each tick that is believed: the host before it, and with it."""
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


class Remembered(NamedTuple):
    """What is known of a router, which goes with it to another host."""

    state: RouterState | None
    """None where this policer did not lead."""
    kept: Kept | None


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
        self._limit = EventLimit()
        """Which events the host may still cause."""
        self._raises = Buckets(1 / AGAIN_S, 1.0)
        """How often this host may ask for a higher epoch: each costs all hosts a write."""
        self._news = asyncio.Event()
        self._sent: Mapping[str, Sent] = {}
        self._epoch = 0
        """The epoch in which `_sent` was sent."""
        self._given = 0
        """The highest sequence that was sent in it."""
        self._twice_until = float("-inf")
        """Until then its daemon is taken to be another host's, too."""
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
        self, host: Host, contracts: Mapping[str, Contract], promised: Promised | None = None
    ) -> None:
        """Take over what is promised from now on; the link's addresses stay as they are.

        Args:
            host: its entry.
            contracts: what holds, by router.
            promised: how that came about.
        """
        self.host = host
        self._costs = {vr: one.cost for vr, one in contracts.items() if one.cost != 1.0}
        live = replace(self._live, host=host, contracts=contracts)
        if promised is not None:
            live = replace(live, **promised._asdict())
        self._put(live)

    def release(self, vrs: Collection[str]) -> dict[str, Remembered]:
        """Forget routers that went to other hosts; return what is remembered of them."""
        live, routers = self._live, self._state.routers
        known = {vr for vr in vrs if vr in routers or vr in live.kept}
        gone = {vr: Remembered(routers.get(vr), live.kept.get(vr)) for vr in known}
        rest = {vr: state for vr, state in routers.items() if vr not in gone}
        kept = {vr: one for vr, one in live.kept.items() if vr not in gone}
        self._remember(rest, kept)
        for vr, one in gone.items():
            if one.state is not None and one.state.punishment.height:
                self._punish(vr, Punishment())
        return gone

    def adopt(self, came: Mapping[str, Remembered]) -> None:
        """Go on with routers that came from other hosts.

        One that stands higher on its ladder here, by a contract of this host alone, stays there.
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
            if one.kept is not None and vr in kept
        }
        self._remember({**routers, **states}, {**kept, **sums})
        for vr, state in states.items():
            if state.punishment.height:
                self._punish(vr, state.punishment)

    def _remember(self, routers: Mapping[str, RouterState], kept: Mapping[str, Kept]) -> None:
        """Go on with other routers; what a leader knows of them is shown by one alone."""
        if routers != self._state.routers:
            self._state = replace(self._state, routers=routers)
        live = replace(self._live, kept=kept)
        self._put(replace(live, state=self._state) if self._rules() else live)

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
        if after.heard_at == now and not after.distrust and self._rules():
            self._shared.recorded(live, after)
        unread = self._link.dropped + self._link.bad
        self._put(
            replace(
                live,
                sight=after,
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

    def _obeys_another(self, sight: Sight) -> bool:
        """Whether the host obeys leases of this policer that were sent to another entry of it.

        Sequences only rise, over all hosts: one above all that were sent here was sent elsewhere.
        """
        return self._rules() and any(
            report.epoch == self._epoch and (report.sequence or 0) > self._given > 0
            for report in sight.routers.values()
        )

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
            self._epoch, self._sent, self._given = shared.ruled(), {}, 0
        view = HostView(
            self.host.capacity_pps,
            excused(live.contracts, overrides.exempt_on(self.host.name, live.follows)),
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
            noting = self._note if note.kind in UNLIMITED else self._note_limited
            noting(note.kind, note.words, note.vr)
        before, after = self._state.routers, decided.state.routers
        for vr, state in after.items():
            was = before.get(vr, NEW_ROUTER).punishment
            if state.punishment is not was and state.punishment != was:
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
        numbers = (message.sequence for message in messages if isinstance(message, Activate))
        self._given = max(self._given, *numbers, 0)
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
        """Note what the daemon may change with every tick."""
        if not self._shared.fleet.leadership.leading:
            return
        if not self._limit.repeated(self._shared.clock(), kind, vr):
            self._note_limited(kind, words[:LONGEST_WORDS], vr)

    def _note_limited(self, kind: str, words: str, vr: str | None = None) -> None:
        """Note what a host, or whoever sends to its routers, may cause again and again."""
        now = self._shared.clock()
        if self._limit.admits(now, kind):
            more = self._limit.left_out_before(kind)
            self._note(kind, f"{words} ({more} more {kind} were left out)" if more else words, vr)
        elif not self._limit.repeated(now, "events_left_out", kind):
            self._note("events_left_out", f"too many {kind}: most of them are no longer noted")

    def _note_of_host(self, kind: str, words: str) -> bool:
        """Note what every policer sees, if this one leads; return whether it does."""
        if leads := self._shared.fleet.leadership.leading:
            self._note_limited(kind, words)
        return leads

    def _note(self, kind: str, words: str, vr: str | None = None, actor: str = "policer") -> None:
        self._log.info(kind, words=words, vr=vr)
        happened = datetime.now(UTC)  # it may wait for a store that is away
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
    """Return what the leader before knew of a router; its step is given its full time again."""
    step = Step(row.step) if row.step in set(Step) else None
    punishment = Punishment(row.height, now, guilty=row.guilty, step=step)
    return RouterState(Evidence(guilty=row.guilty, excess_at=now), punishment)
