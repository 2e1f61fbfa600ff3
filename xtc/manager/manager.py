"""XTC Manager: activates, retunes, pauses and releases instances, and ticks them all."""

import difflib
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TypeVar

import msgspec

from common.clock import Clock
from common.units import PacketsPerSecond, Seconds
from xtc.actuator.places import PlaceOf, place_of, takes_over
from xtc.config.plan import RouterPlan
from xtc.control.instance import KEEP, Act, Command
from xtc.errors import JournalError, Refused
from xtc.isolation import Firewall, Unforeseen, uncounted
from xtc.lease import Lease, check_epoch, check_successor, highest_possible
from xtc.manager.acceptance import (
    check_active,
    check_burst,
    check_long_enough,
    check_possible,
    check_unit,
)
from xtc.manager.activation import Beginnings
from xtc.manager.cap import Keeper
from xtc.manager.host_floors import HostFloors
from xtc.manager.ifindex import Numbers, renamed
from xtc.manager.learned import Remembered
from xtc.manager.limits import CountingLimiter, Limits
from xtc.manager.orphans import Leftovers
from xtc.manager.router import Managed, OpenActuator
from xtc.manager.shields import ShieldPort, Shields
from xtc.measure.collector import Reading
from xtc.spec import ActuatorSpec
from xtc.state.journal import UNWRITTEN, Entry, Journal, Ledger
from xtc.wire import (
    Activate,
    Answer,
    Batch,
    Change,
    Deactivate,
    Limit,
    Observe,
    Outcomes,
    Pause,
    Refusal,
    Reply,
    Report,
    Request,
    Resume,
    Retune,
    Status,
    decode_request,
    request_id,
)

MIXED = 0.1
"""Share of a period after which a newly written cap affects too little of its sample."""

_Result = TypeVar("_Result")
_Order = Activate | Retune | Limit
"""The requests that carry an epoch."""


class Manager:
    """All routers of a host. It owns the journal; no router is capped without an entry in it."""

    def __init__(
        self,
        plans: Mapping[str, RouterPlan],
        *,
        journal: Journal,
        clock: Clock,
        open_actuator: OpenActuator,
        limiter: CountingLimiter,
        period: Seconds,
        shield: ShieldPort | None = None,
        place: PlaceOf = place_of,
        observe: str = "",
        remembered: Remembered | None = None,
        unexpected: Callable[[str], None] = uncounted,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Take over the routers.

        Args:
            plans: every router of the configuration.
            journal: open, and this daemon's alone.
            clock: the monotonic clock.
            open_actuator: opens a router's actuator.
            limiter: limits the traffic from the host into a router.
            period: seconds between two ticks.
            shield: drops traffic above a controlled router's setpoint; None where there is no
                shield.
            place: identifies specifications of the same place.
            observe: why every cap is only computed and shown; empty where caps are written.
            remembered: keeps what was learned for the next run; None where nothing does.
            unexpected: counts an unforeseen error by its origin.
            wall: the time of day in seconds since 1970, for checking epochs.
        """
        self._wall = wall
        self._guard = Firewall(unexpected)
        self.observe = observe
        """Why every router is only observed; empty where they are controlled."""
        self._ticked_at: Seconds | None = None
        self._turn = 0
        """Which router is next to be checked for filters of other owners."""
        self._journal = journal
        self._clock = clock
        self._open, self._place = open_actuator, place
        self._period = period
        self._leftovers = Leftovers(self._guard)
        self._limits = Limits(limiter, self._guard)
        self._shields = Shields(shield, self._guard)
        self._floors = HostFloors(self._guard)
        self._beginnings = Beginnings(self._shields)
        self._remembered = remembered
        self._numbers = Numbers(journal.ledger.numbers)
        self._routers = {name: Managed(plan, open_actuator) for name, plan in plans.items()}
        self._epoch = journal.ledger.highest_epoch
        self._reserved = 0
        """The epoch up to which a batch needs no further write."""
        self.journal_problem = ""
        """Why the journal cannot be written; empty while it can."""

    @property
    def routers(self) -> Mapping[str, Managed]:
        """Every configured router by name."""
        return self._routers

    def start(self) -> list[str]:
        """Adopt or release the caps of an earlier daemon, and begin to hold configured setpoints.

        Returns:
            Messages for the log about what could not be released.
        """
        now = self._clock.now()
        left = self._journal.ledger
        troubles = [self._adopt(name, entry) for name, entry in left.entries.items()]
        troubles += [self._limits.lifts.lift(interfaces) for interfaces in left.limits.values()]
        now_called = renamed(left.numbers)
        troubles += [self._limits.lifts.lift(now_called), self._shields.lifts.lift(now_called)]
        troubles += [self._adopt_shield(name, each) for name, each in left.shields.items()]
        for managed in self._routers.values():
            lease = left.leases.get(managed.plan.name)
            if lease is not None:
                self._firewall(managed, "start", partial(_renew, managed, lease, now))
            self._firewall(managed, "start", partial(self._hold_configured, managed, now))
        idle = (m for m in self._routers.values() if m.instance is None)
        troubles += [self._firewall(m, "release", partial(_release, m)) or "" for m in idle]
        self._store(self._journal.store)
        return [trouble for trouble in troubles if trouble]

    def _adopt(self, name: str, entry: Entry) -> str:
        """Take over a cap of an earlier daemon with its place, or release it; return why not."""
        owner = self._owner(entry)
        if owner is not None:
            self._routers[owner] = Managed(self._routers[owner].plan, self._open, entry.original)
            return ""
        return self._leftovers.release(
            name, Keeper(entry.spec, self._open, original=entry.original)
        )

    def _adopt_shield(self, name: str, interfaces: tuple[str, ...]) -> str:
        """Take over an earlier daemon's shield until the first tick decides on it, or lift it."""
        if name not in self._routers:
            return self._shields.lifts.lift(interfaces)
        self._routers[name].shielded.claimed = interfaces
        return ""

    def _owner(self, entry: Entry) -> str | None:
        """Return the router at the place of an entry; an equal notation comes first."""
        plans = {name: managed.plan.spec for name, managed in self._routers.items()}
        for name, spec in plans.items():
            if spec == entry.spec:
                return name
        for name, spec in plans.items():
            is_owner = partial(takes_over, spec, entry.spec, entry.original, self._place)
            if self._firewall(self._routers[name], "start", is_owner):
                return name
        return None

    def _hold_configured(self, managed: Managed, now: Seconds) -> None:
        """Hold a router as configured, unless it was released on request."""
        setpoint = managed.plan.setpoint
        if managed.instance is not None or managed.by_hand or setpoint is None:
            return
        last = managed.last_lease()
        if last is None:
            lease = Lease.of(setpoint, epoch=self._epoch, configured=True)
        else:
            lease = last.configured_as(setpoint)  # earlier orders must not be repeated
        managed.activate(lease, now)

    def check_held(self) -> None:
        """Make sure that the journal is still this daemon's.

        Raises:
            TakenOver: this daemon may no longer cap anything.
        """
        self._journal.check_held()

    @property
    def highest_epoch(self) -> int:
        """The highest epoch accepted: a lower one is refused."""
        return self._epoch

    @property
    def places(self) -> tuple[ActuatorSpec, ...]:
        """Every place where a cap may still stand."""
        return tuple(entry.spec for entry in self._journal.ledger.entries.values())

    def retry(self) -> None:
        """Retry every actuator now; conditions may have changed."""
        for managed in self._routers.values():
            managed.keeper.retry()

    def release_marked(self, is_marked: Callable[[ActuatorSpec], bool], *, changed: bool) -> None:
        """Release routers that are not controlled here but have an xtc's cap.

        They brought it from another host, or were wrongly reported gone. Routers that were not lost
        are checked only where `changed` says that domains were added or removed.
        """
        for managed in self._routers.values():
            if changed or managed.lost:
                look = partial(self._release_marked, managed, is_marked)
                self._firewall(managed, "release_marked", look)

    def _release_marked(self, managed: Managed, is_marked: Callable[[ActuatorSpec], bool]) -> None:
        if managed.instance is not None or managed.keeper.original is not None:
            return
        marked = is_marked(managed.plan.spec)
        prepared = marked and managed.keeper.prepare()
        managed.lost = marked and not prepared
        if prepared:
            managed.keeper.take_over()
            self._store_lazily()
            managed.release_when(durable=managed.plan.name in self._durable())

    @property
    def wakes(self) -> int | None:
        """The descriptor that wakes the loop after the journal was written."""
        return self._journal.wakes

    def prepare(self, raw: bytes) -> int | None:
        """Give the journal the entries that it must hold before a request may be carried out.

        Returns:
            The number to wait for (`settled`); None where there is nothing to wait for.
        """
        try:
            request = decode_request(raw).request
        except Refused:
            return None
        changes = request.requests if isinstance(request, Batch) else (request,)
        epoch = max(map(self._asked, changes), default=0)
        self._reserved = epoch if epoch > self._epoch else 0
        claimed = self._claim_limits(changes)
        if not self._reserved and not claimed:
            return None
        self._store_lazily()
        return self._journal.ticket

    def settled(self, ticket: int) -> bool:
        """Whether the entries from `prepare` are written, or will not be in time."""
        return self._journal.settled(ticket)

    def begin(self, found: Mapping[str, tuple[str, ...]]) -> None:
        """Shield and cap routers controlled from the start; their interfaces are known."""
        for name, managed in self._routers.items():
            managed.found = found.get(name, ())
            if managed.instance is not None:
                begin = partial(self._begin, managed, self._clock.now(), new=True)
                self._firewall(managed, "begin", begin)

    def go_on(self) -> None:
        """Shield and cap the routers that waited only for the journal."""
        self._journal.woken()
        self._go_on(self._clock.now())
        self._store_lazily()

    def _go_on(self, now: Seconds) -> None:
        self._each("begin", lambda managed: self._go_on_if_waiting(managed, now))

    def _go_on_if_waiting(self, managed: Managed, now: Seconds) -> None:
        if self._beginnings.waits(managed.plan.name):
            self._go_on_with(managed, now)

    def _go_on_with(self, managed: Managed, now: Seconds) -> None:
        if managed.observing:
            return
        self._beginnings.follow(managed, now, self._journal.certain)
        self._beginnings.first_cap(managed, self._period)
        name = managed.plan.name
        if name in self._beginnings.capping - self._durable():
            self._store_lazily()
        if name in self._durable() and (command := self._beginnings.due(name)) is not None:
            managed.undurable = ""
            managed.carry_out(command)
            managed.mixed = self._is_within(now)

    def _is_within(self, now: Seconds) -> bool:
        """Whether an instant is so far into a period that its sample would mix two caps."""
        return self._ticked_at is not None and now - self._ticked_at > MIXED * self._period

    def handle(self, raw: bytes) -> Reply:
        """Return the reply to the bytes of a request; invalid bytes get a reply, too."""
        try:
            envelope = decode_request(raw)
        except Refused as refused:
            return Reply(_refusal(refused), id=request_id(raw))
        try:
            return Reply(self._result(envelope.request), id=envelope.id)
        finally:
            self._reserved = 0

    def _result(self, request: Request | Batch) -> Answer | Outcomes | Refusal:
        if isinstance(request, Batch):
            return Outcomes(self._outcomes(request.requests))
        try:
            return Answer(self.carry_out(request))
        except Refused as refused:
            return _refusal(refused)

    def _outcomes(self, changes: Sequence[Change]) -> tuple[Refusal | None, ...]:
        """Carry out a batch; one write beforehand makes the epochs that it raises durable.

        If the highest is refused, the next write of the journal corrects it.
        """
        raised = {epoch for change in changes if (epoch := self._asked(change)) > self._epoch}
        unstored = self._reserve(max(raised)) if len(raised) > 1 else None
        if self._claim_limits(changes):
            self._store_lazily()
        return tuple(
            unstored if unstored and self._asked(change) in raised else self._outcome(change)
            for change in changes
        )

    def _reserve(self, epoch: int) -> Refusal | None:
        """Make the highest epoch of a batch durable; return why it cannot be, if so."""
        try:
            self._remember(epoch)
        except Refused as refused:
            return _refusal(refused)
        self._reserved = epoch
        return None

    def _asked(self, change: Request) -> int:
        """Return the epoch of an order for a router of this host; 0 otherwise."""
        if not isinstance(change, _Order) or change.vr not in self._routers:
            return 0
        epoch = change.epoch or 0
        return epoch if epoch <= highest_possible(self._wall()) else 0

    def _claim_limits(self, changes: Iterable[Request]) -> bool:
        """Note all limits of a request, for one write; return whether the write is needed."""
        limits = [one for one in changes if isinstance(one, Limit) and one.vr in self._routers]
        for request in limits:
            with suppress(Refused):  # it is refused later, in its turn
                self._claim_limit(self._routers[request.vr], request)
        return any(not self._knows_limit(self._routers[one.vr]) for one in limits)

    def _knows_limit(self, managed: Managed) -> bool:
        """Whether the journal has every interface that may have a router's limit."""
        return {*managed.limited} <= {*self._journal.certain.limits.get(managed.plan.name, ())}

    def _outcome(self, change: Change) -> Refusal | None:
        """Carry out one change of a batch; return why it was not, if so."""
        result = self._result(change)
        return result if isinstance(result, Refusal) else None

    def carry_out(self, request: Request) -> tuple[Report, ...]:
        """Carry out a request and return the reports of the routers concerned.

        Raises:
            Refused: names the wrong field and the fix; nothing was changed.
        """
        now = self._clock.now()
        match request:
            case Status(vr=None):
                return self.reports(now)
            case Observe():
                self.observe = "only observed, as ordered" if request.on else ""
                return self.reports(now)
            case Deactivate(vr=None):
                self._deactivate(*self._routers.values())
                return self.reports(now)
            case _:
                assert request.vr is not None  # the cases above handled None
                managed = self._router(request.vr)
                self._carry_out_or_refuse(managed, request, now)
                return (self._report(managed, now),)

    def _carry_out_or_refuse(self, managed: Managed, request: Request, now: Seconds) -> None:
        """Carry out a request on one router; an unforeseen error refuses this request only."""
        work = partial(self._carry_out_on, managed, request, now)
        result = self._guard.run("request", managed.plan.name, work, passing=(Refused,))
        if isinstance(result, Unforeseen):
            managed.fault = result.words
            fix = "the daemon's log has the trace: please report it"
            raise Refused("unforeseen", "vr", result.words, fix)

    def _carry_out_on(self, managed: Managed, request: Request, now: Seconds) -> None:
        match request:
            case Activate():
                self._grant(managed, request, now)
            case Retune():
                check_active(managed)
                self._grant(managed, request, now)
            case Pause() | Resume():
                check_active(managed)
                self._beginnings.end(managed.plan.name)
                managed.pause(paused=isinstance(request, Pause))
            case Deactivate():
                self._deactivate(managed)
            case Limit():
                self._limit(managed, request, now)
            case Status():
                pass

    def _router(self, name: str) -> Managed:
        if name in self._routers:
            return self._routers[name]
        near = difflib.get_close_matches(name, list(self._routers))
        fix = f"did you mean {near[0]}?" if near else "`xtc status` lists the routers"
        raise Refused("unknown_router", "vr", f"{name} is not in the configuration", fix)

    def _grant(self, managed: Managed, request: Activate | Retune, now: Seconds) -> None:
        """Give a lease: one that raises the highest epoch is made durable before it is obeyed."""
        lease = Lease.of(
            request.setpoint,
            epoch=request.epoch,
            sequence=request.sequence,
            expires_at=None if request.ttl_s is None else now + request.ttl_s,
            kind=request.kind,
        )
        check_epoch(lease.epoch, self._wall())
        check_successor(managed.last_lease(), lease, now, highest_epoch=self._epoch)
        check_long_enough(request.ttl_s, self._period)
        check_unit(managed, request.setpoint)
        check_burst(request.setpoint)
        check_possible(managed)
        if lease.epoch > self._epoch:
            self._raise_epoch(lease.epoch)
        before = None if managed.instance is None else managed.instance.setpoint
        managed.activate(lease, now)
        if before != lease.setpoint:
            self._beginnings.overrule(managed.plan.name)
            begin = partial(self._begin, managed, now, new=before is None)
            self._firewall(managed, "begin", begin)

    def _begin(self, managed: Managed, now: Seconds, *, new: bool) -> None:
        """Shield a router whose control begins, or cap it, once the journal contains it."""
        managed.observed = self.observe
        if self._remembered is not None:
            managed.remember(self._remembered.of)
        if new:
            self._beginnings.start(managed.plan.name)
        if self._beginnings.claim(managed, now):
            self._store_lazily()
        self._go_on_with(managed, now)

    def _raise_epoch(self, epoch: int) -> None:
        self._remember(epoch)
        self._epoch = epoch

    def _remember(self, epoch: int) -> None:
        """Make durable that an epoch may have been accepted.

        Raises:
            Refused: the journal cannot be written.
        """
        if self._journal.certain.highest_epoch >= epoch:
            return
        try:
            self._journal.store_later(msgspec.structs.replace(self._ledger(), highest_epoch=epoch))
        except JournalError as error:
            raise Refused("journal", "epoch", str(error)) from error
        if self._journal.certain.highest_epoch < epoch:
            raise Refused("journal", "epoch", UNWRITTEN)

    def _deactivate(self, *routers: Managed) -> None:
        """Release routers.

        Raises:
            Refused: a cap or a limit could not be undone yet; the loop has ended anyway.
        """
        for managed in routers:
            managed.by_hand = True
        troubles = self._end(routers)
        self._store_lazily()
        if troubles:
            fix = "it is tried again until it is done; `xtc status` shows what is in the way"
            raise Refused("not_released", "vr", "; ".join(troubles), fix)

    def _end(self, routers: Iterable[Managed]) -> list[str]:
        """End loops and undo their work; return messages about what could not be undone yet."""
        troubles = []
        for managed in routers:
            if self._remembered is not None:
                self._firewall(managed, "remember", partial(self._remembered.note, managed))
            managed.instance = None
            self._beginnings.end(managed.plan.name)
            released = self._firewall(managed, "release", partial(_release, managed))
            lifted = self._firewall(managed, "release", partial(self._limits.lift, managed))
            open_ = self._firewall(managed, "release", partial(self._shields.lift, managed))
            troubles += [one or "" for one in (released, lifted, open_)]
            troubles += [managed.fault] if None in (released, lifted, open_) else []
        return [trouble for trouble in troubles if trouble]

    def _limit(self, managed: Managed, request: Limit, now: Seconds) -> None:
        """Limit the router's interfaces, or lift the limit; the journal is written first."""
        check_epoch(request.epoch or 0, self._wall())
        self._claim_limit(managed, request)
        if request.epoch is not None and request.epoch > self._epoch:
            self._raise_epoch(request.epoch)
        if request.rate_pps is None:
            if trouble := self._limits.lift(managed):
                raise Refused("not_lifted", "vr", trouble, "it is tried again until it is done")
            return
        if not self._knows_limit(managed):
            self._store_lazily()
        if not self._knows_limit(managed):
            if managed.limit is None:
                self._limits.lift(managed)  # otherwise its drops would be awaited, and stay unknown
            raise Refused("journal", "vr", self.journal_problem or UNWRITTEN)
        ends_at = None if request.ttl_s is None else Seconds(now + request.ttl_s)
        self._limits.set(managed, PacketsPerSecond(request.rate_pps), ends_at)

    def _claim_limit(self, managed: Managed, request: Limit) -> None:
        """Note which interfaces a limit is for.

        Raises:
            Refused: it may not be set.
        """
        self._limits.check(request, highest_epoch=self._epoch)
        if request.rate_pps is None:
            return
        if self.observe or managed.plan.observe:
            problem = f"{managed.plan.name} is only observed"
            raise Refused("observing", "vr", problem, "`xtc observe off`, or `observe = false`")
        self._limits.claim(managed)

    def reports(self, now: Seconds) -> tuple[Report, ...]:
        """Return a report of every router."""
        return tuple(self._report(managed, now) for managed in self._routers.values())

    def _report(self, managed: Managed, now: Seconds) -> Report:
        report = self._firewall(managed, "report", partial(managed.report, now))
        return report or managed.bare_report()

    def tick(self, readings: Mapping[str, Reading], now: Seconds) -> None:
        """Let every loop decide on its reading, and carry out what the journal contains.

        Other changes go to the journal and are carried out once it is written: a tick never waits
        for the disk.
        """
        self._excuse(now)
        commands = {
            name: self._stepped(managed, readings.get(name), now)
            for name, managed in self._routers.items()
        }
        self._look_after_limits(now)
        self._floors.decide(self._routers)
        claimed = self._claim_shields(now)
        weights = {name for name, due in self._each("floor", _weight_is_due).items() if due}
        durable = self._durable_originals(commands, weights, unstored=claimed)
        for name, command in commands.items():
            managed = self._routers[name]
            may_act = command.act is not Act.SET or managed.observing or name in durable
            managed.undurable = "" if may_act else self.journal_problem
            if may_act:
                self._firewall(managed, "carry_out", partial(managed.carry_out, command))
            if name in weights and name in durable:
                self._firewall(managed, "floor", managed.weigh)
        self._tend_shields(now)
        self._go_on(now)
        if self._remembered is not None:
            save = partial(self._remembered.look, self._routers.values(), now)
            self._guard.run("remember", "", save)
        for left in (self._leftovers, self._limits.lifts, self._shields):
            left.try_again()
        self._store_lazily()

    def _excuse(self, now: Seconds) -> None:
        """Do not treat a pause of the daemon (no CPU time) as blind meters."""
        before, self._ticked_at = self._ticked_at, now
        pause = 0.0 if before is None else now - before - 2 * self._period
        if pause > 0:
            self._each("excuse", lambda managed: managed.excuse(Seconds(pause), now))

    def _stepped(self, managed: Managed, reading: Reading | None, now: Seconds) -> Command:
        """Return the decision of a router's loop; a failing loop goes blind."""
        managed.observed, managed.fault = self.observe, ""
        self._firewall(managed, "shield", partial(self._shields.look, managed, now))
        step = partial(managed.step, reading, now, self._period)
        decided = self._firewall(managed, "step", step)
        if decided is None:
            decided = self._firewall(managed, "blind", partial(managed.go_blind, now))
        self._firewall(managed, "promise", partial(managed.keep_account, now))
        return KEEP if decided is None else decided

    def _firewall(
        self, managed: Managed, where: str, work: Callable[[], _Result]
    ) -> _Result | None:
        """Work on one router; an unforeseen error becomes its problem, and the result is None."""
        result = self._guard.run(where, managed.plan.name, work)
        if isinstance(result, Unforeseen):
            managed.fault = result.words
            return None
        return result

    def _each(self, where: str, work: Callable[[Managed], _Result]) -> dict[str, _Result]:
        """Work on every router; the results omit those with an unforeseen error."""
        results: dict[str, _Result] = {}
        for name, result in self._guard.each(where, self._routers, work).items():
            if isinstance(result, Unforeseen):
                self._routers[name].fault = result.words
            else:
                results[name] = result
        return results

    def _look_after_limits(self, now: Seconds) -> None:
        """Lift expired limits, count the others, and set those again that an interface lost."""
        lost = self._guard.run("limit", "", partial(self._limits.look, self._routers.values(), now))
        if isinstance(lost, Unforeseen):
            return  # caps are written anyway
        for managed in lost:
            self._firewall(managed, "limit", partial(self._limits.claim, managed))
        if lost:
            self._store_lazily()
        for managed in lost:
            if managed.observing or not self._knows_limit(managed):
                continue
            self._firewall(managed, "limit", partial(self._limits.renew, managed))

    def _claim_shields(self, now: Seconds) -> bool:
        """Note the interfaces that will get a shield; whether the journal must be written first."""
        claimed = self._each("shield", lambda managed: self._beginnings.claim(managed, now))
        return any(claimed.values())

    def _tend_shields(self, now: Seconds) -> None:
        """Set, change and lift shields; none is set that the journal does not contain."""
        certain = self._journal.certain  # once: each check asks for the directory's owner
        self._each("shield", lambda managed: self._beginnings.tend(managed, now, certain))
        if self._routers:
            self._turn += 1
            one = list(self._routers.values())[self._turn % len(self._routers)]
            self._firewall(one, "shield", partial(self._shields.look_ahead, one))

    def falling_caps(self) -> list[tuple[int, Managed]]:
        """Return (slot, router) for every cap that alternates within this period."""
        parts = self._each("fall", Managed.low_part)
        return [(part[0], self._routers[name]) for name, part in parts.items() if part is not None]

    def fall(self, managed: Managed) -> None:
        """Write the low part of a cap that alternates."""
        self._firewall(managed, "fall", managed.fall)

    def _durable_originals(
        self, commands: Mapping[str, Command], weights: Container[str], *, unstored: bool
    ) -> set[str]:
        """Return the routers that may be capped: their originals survive a crash.

        The others are capped once theirs do.

        Args:
            commands: the decision of each loop.
            weights: the routers with a weight to write.
            unstored: whether the journal must be written in any case.
        """
        wanted = {
            name: command
            for name, command in commands.items()
            if (command.act is Act.SET or name in weights) and not self._routers[name].observing
        }
        self._beginnings.cap_later(wanted)
        if unstored or not wanted.keys() <= self._durable():
            self._store_lazily()
        durable = wanted.keys() & self._durable()
        self._beginnings.carried_out(durable)
        return durable

    def _durable(self) -> set[str]:
        known = self._journal.secured
        return {name for name, entry in self._entries().items() if known.get(name) == entry}

    def _store_lazily(self) -> None:
        """Bring the journal up to date without waiting for the disk."""
        self._store(self._journal.store_later)

    def _store(self, store: Callable[[Ledger], None]) -> None:
        """Bring the journal up to date; while that fails, no new router is capped."""
        try:
            store(self._ledger())
        except JournalError as error:
            self.journal_problem = str(error)
        else:
            self.journal_problem = ""

    def _ledger(self) -> Ledger:
        leases = {
            name: managed.instance.lease
            for name, managed in self._routers.items()
            if managed.instance is not None
        }
        limits = {
            name: managed.limited for name, managed in self._routers.items() if managed.limited
        }
        limits |= self._limits.lifts.left()
        shields = self._shields.interfaces(self._routers.values())
        return Ledger(
            self._journal.ledger.boot_id,
            self._leftovers.entries(self._entries()),
            leases,
            limits,
            max(self._epoch, self._reserved),
            shields,
            self._numbers.of(chain(*limits.values(), *shields.values())),
        )

    def _entries(self) -> dict[str, Entry]:
        """Return what must be restored; the previous entry of a router that fails."""
        capping, last = self._beginnings.capping, self._journal.ledger.entries
        entries: dict[str, Entry] = {}
        for name, told in self._guard.each("journal", self._routers, _entry).items():
            if isinstance(told, Unforeseen):
                self._routers[name].fault = told.words
                entries |= {name: last[name]} if name in last else {}
                continue
            entry, untouched = told
            if entry is not None and (name in capping or not untouched):
                entries[name] = entry
        return entries

    def reconfigure(self, plans: Mapping[str, RouterPlan], *, max_release_share: float) -> None:
        """Adopt another configuration; routers that are no longer in it are released.

        Raises:
            Refused: it would release more routers than the configuration allows at once.
        """
        active = [n for n, managed in self._routers.items() if managed.instance is not None]
        dropped = {
            name: managed
            for name, managed in self._routers.items()
            if name not in plans or plans[name].spec != managed.plan.spec
        }
        lost = [name for name in active if name in dropped]
        if len(lost) > max(1.0, max_release_share * len(active)):
            raise Refused(
                "mass_release",
                "router",
                f"{len(lost)} of {len(active)} active routers are missing: {', '.join(lost[:5])}",
                "release them one by one first, or raise daemon.max_release_share",
            )
        leases = {name: managed.last_lease() for name, managed in dropped.items() if name in active}
        self._end(dropped.values())
        for name, managed in dropped.items():
            self._leftovers.release(name, managed.keeper)
        now = self._clock.now()
        self._routers = {
            name: self._carried_over(name, plan, leases.get(name), now)
            for name, plan in plans.items()
        }
        for managed in self._routers.values():
            self._firewall(managed, "reload", partial(self._hold_configured, managed, now))
        self._store_lazily()

    def _carried_over(
        self, name: str, plan: RouterPlan, lease: Lease | None, now: Seconds
    ) -> Managed:
        """Return a router under another configuration; the lease is of a router that moved."""
        old = self._routers.get(name)
        if old is None or old.plan.spec != plan.spec:
            original = self._leftovers.taken_over(plan.spec, self._place)
            new = Managed(plan, self._open, original)
            if old is not None:
                self._firewall(new, "reload", partial(new.succeed, old, lease, now))
            return new
        self._firewall(old, "reload", partial(old.replan, plan))
        return old

    def stop(self, *, release: bool) -> list[str]:
        """Stop: restore everything, or leave caps and journal for the next daemon to adopt.

        Returns:
            Messages for the log about what could not be released; the journal still contains it.
        """
        if self._remembered is not None:
            save = partial(self._remembered.save, self._routers.values())
            self._guard.run("remember", "", save)
        troubles = self._end(self._routers.values()) if release else []
        self._store(self._journal.store)
        return troubles


def _renew(managed: Managed, lease: Lease, now: Seconds) -> None:
    """Continue a lease of an earlier daemon; the configuration's own may have changed."""
    if lease.expired(now):
        return
    if not lease.configured:
        managed.activate(lease, now)
    elif managed.plan.setpoint is not None:
        managed.activate(lease.configured_as(managed.plan.setpoint), now)


def _weight_is_due(managed: Managed) -> bool:
    return managed.floor.pending


def _entry(managed: Managed) -> tuple[Entry | None, bool]:
    """Return what must be restored of a router, and whether nothing was changed yet."""
    return managed.keeper.entry, managed.keeper.untouched


def _release(managed: Managed) -> str:
    """Restore the original settings; return why not, if so."""
    return "" if managed.release() else f"{managed.plan.name}: {managed.keeper.problem}"


def _refusal(refused: Refused) -> Refusal:
    return Refusal(refused.code, refused.field, refused.problem, refused.fix)
