"""XTC Manager: activates, retunes, pauses and releases instances, and ticks them all."""

import time
from collections.abc import Callable, Container, Mapping
from functools import partial

from common.clock import Clock
from common.units import Seconds
from xtc.actuator.places import PlaceOf, place_of
from xtc.config.plan import RouterPlan
from xtc.control.instance import KEEP, Act, Command
from xtc.isolation import Unforeseen, uncounted
from xtc.manager.adoption import Adoption
from xtc.manager.host import Host
from xtc.manager.learned import Remembered
from xtc.manager.lifecycle import Lifecycle
from xtc.manager.limits import CountingLimiter
from xtc.manager.records import Records
from xtc.manager.requests import Requests
from xtc.manager.router import ManagedRouter, OpenActuator
from xtc.manager.shields import ShieldPort
from xtc.measure.collector import Reading
from xtc.spec import ActuatorSpec
from xtc.state.journal import Journal
from xtc.wire import Reply, Report, Request


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
        self._clock, self._period = clock, period
        self._turn = 0
        """Which router is next to be checked for filters of other owners."""
        self.host = Host(
            plans,
            open_actuator=open_actuator,
            place=place,
            limiter=limiter,
            shield=shield,
            observe=observe,
            unexpected=unexpected,
        )
        self._records = Records(self.host, journal)
        self._lifecycle = Lifecycle(self.host, self._records, period, remembered)
        self._adoption = Adoption(self.host, self._records, self._lifecycle)
        self._requests = Requests(
            self.host, self._records, self._lifecycle, clock=clock, period=period, wall=wall
        )

    @property
    def routers(self) -> Mapping[str, ManagedRouter]:
        """Every configured router by name."""
        return self.host.routers

    @property
    def observe(self) -> str:
        """Why every router is only observed; empty where they are controlled."""
        return self.host.observe

    @observe.setter
    def observe(self, why: str) -> None:
        self.host.observe = why

    @property
    def journal_problem(self) -> str:
        """Why the journal cannot be written; empty while it can."""
        return self._records.problem

    @property
    def highest_epoch(self) -> int:
        """The highest epoch accepted: a lower one is refused."""
        return self._records.epoch

    @property
    def places(self) -> tuple[ActuatorSpec, ...]:
        """Every place where a cap may still stand."""
        return tuple(entry.spec for entry in self._records.journal.ledger.entries.values())

    @property
    def wakes(self) -> int | None:
        """The descriptor that wakes the loop after the journal was written."""
        return self._records.journal.wakes

    def start(self) -> list[str]:
        """Adopt or release the caps of an earlier daemon, and begin to hold configured setpoints.

        Returns:
            Messages for the log about what could not be released.
        """
        troubles = self._adoption.start(self._clock.now())
        self._records.store()
        return troubles

    def reconfigure(self, plans: Mapping[str, RouterPlan], *, max_release_share: float) -> None:
        """Adopt another configuration; routers that are no longer in it are released.

        Raises:
            Refused: it would release more routers than the configuration allows at once.
        """
        now = self._clock.now()
        self._adoption.reconfigure(plans, now, max_release_share=max_release_share)
        self._records.store_lazily()

    def stop(self, *, release: bool) -> list[str]:
        """Stop: restore everything, or leave caps and journal for the next daemon to adopt.

        Returns:
            Messages for the log about what could not be released; the journal still contains it.
        """
        if self._lifecycle.remembered is not None:
            save = partial(self._lifecycle.remembered.save, self.host.routers.values())
            self.host.guard.run("remember", "", save)
        troubles = self._lifecycle.end(self.host.routers.values()) if release else []
        self._records.store()
        return troubles

    def check_held(self) -> None:
        """Make sure that the journal is still this daemon's.

        Raises:
            TakenOver: this daemon may no longer cap anything.
        """
        self._records.journal.check_held()

    def retry(self) -> None:
        """Retry every actuator now; conditions may have changed."""
        for managed in self.host.routers.values():
            managed.controller.retry()

    def release_marked(self, is_marked: Callable[[ActuatorSpec], bool], *, changed: bool) -> None:
        """Release routers that are not controlled here but have an xtc's cap.

        They brought it from another host, or were wrongly reported gone. Routers that were not lost
        are checked only where `changed` says that domains were added or removed.
        """
        for managed in self.host.routers.values():
            if changed or managed.lost:
                look = partial(self._release_marked, managed, is_marked)
                self.host.work_on(managed, "release_marked", look)

    def _release_marked(
        self, managed: ManagedRouter, is_marked: Callable[[ActuatorSpec], bool]
    ) -> None:
        if managed.instance is not None or managed.controller.original is not None:
            return
        marked = is_marked(managed.plan.spec)
        prepared = marked and managed.controller.prepare()
        managed.lost = marked and not prepared
        if prepared:
            managed.controller.take_over()
            self._records.store_lazily()
            managed.release_when(durable=managed.plan.name in self._records.durable())

    def prepare(self, raw: bytes) -> int | None:
        """Give the journal the entries that it must hold before a request may be carried out.

        Returns:
            The number to wait for (`settled`); None where there is nothing to wait for.
        """
        return self._requests.prepare(raw)

    def settled(self, ticket: int) -> bool:
        """Whether the entries from `prepare` are written, or will not be in time."""
        return self._records.journal.settled(ticket)

    def handle(self, raw: bytes) -> Reply:
        """Return the reply to the bytes of a request; invalid bytes get a reply, too."""
        return self._requests.handle(raw)

    def carry_out(self, request: Request) -> tuple[Report, ...]:
        """Carry out a request and return the reports of the routers concerned.

        Raises:
            Refused: names the wrong field and the fix; nothing was changed.
        """
        return self._requests.carry_out(request)

    def begin(self, found: Mapping[str, tuple[str, ...]]) -> None:
        """Shield and cap routers controlled from the start; their interfaces are known."""
        for name, managed in self.host.routers.items():
            managed.found = found.get(name, ())
            if managed.instance is not None:
                begin = partial(self._lifecycle.begin, managed, self._clock.now(), new=True)
                self.host.work_on(managed, "begin", begin)

    def go_on(self) -> None:
        """Shield and cap the routers that waited only for the journal."""
        self._records.journal.woken()
        self._lifecycle.go_on(self._clock.now())
        self._records.store_lazily()

    def reports(self, now: Seconds) -> tuple[Report, ...]:
        """Return a report of every router."""
        return self.host.reports(now)

    def tick(self, readings: Mapping[str, Reading], now: Seconds) -> None:
        """Let every loop decide on its reading, and carry out what the journal contains.

        Other changes go to the journal and are carried out once it is written: a tick never waits
        for the disk.
        """
        self._excuse(now)
        commands = {
            name: self._stepped(managed, readings.get(name), now)
            for name, managed in self.host.routers.items()
        }
        self._look_after_limits(now)
        self.host.floors.decide(self.host.routers)
        claimed = self._claim_shields(now)
        weights = {name for name, due in self.host.each("floor", _weight_is_due).items() if due}
        self._carry_out(commands, weights, unstored=claimed)
        self._tend_shields(now)
        self._lifecycle.go_on(now)
        if (remembered := self._lifecycle.remembered) is not None:
            save = partial(remembered.look, self.host.routers.values(), now)
            self.host.guard.run("remember", "", save)
        for left in (self.host.orphans, self.host.limits.lifts, self.host.shields):
            left.try_again()
        self._records.store_lazily()

    def _excuse(self, now: Seconds) -> None:
        """Do not treat a pause of the daemon (no CPU time) as blind meters."""
        before, self._lifecycle.ticked_at = self._lifecycle.ticked_at, now
        pause = 0.0 if before is None else now - before - 2 * self._period
        if pause > 0:
            self.host.each("excuse", lambda managed: managed.excuse(Seconds(pause), now))

    def _stepped(self, managed: ManagedRouter, reading: Reading | None, now: Seconds) -> Command:
        """Return the decision of a router's loop; a failing loop goes blind."""
        work_on = self.host.work_on
        managed.observed, managed.fault = self.host.observe, ""
        work_on(managed, "shield", partial(self.host.shields.look, managed, now))
        decided = work_on(managed, "step", partial(managed.step, reading, now, self._period))
        if decided is None:
            decided = work_on(managed, "blind", partial(managed.go_blind, now))
        work_on(managed, "promise", partial(managed.keep_account, now))
        return KEEP if decided is None else decided

    def _carry_out(
        self, commands: Mapping[str, Command], weights: Container[str], *, unstored: bool
    ) -> None:
        """Write caps and weights of the routers whose originals are durable."""
        durable = self._durable_originals(commands, weights, unstored=unstored)
        for name, command in commands.items():
            managed = self.host.routers[name]
            may_act = command.act is not Act.SET or managed.observing or name in durable
            managed.undurable = "" if may_act else self.journal_problem
            if may_act:
                self.host.work_on(managed, "carry_out", partial(managed.carry_out, command))
            if name in weights and name in durable:
                self.host.work_on(managed, "floor", managed.weigh)

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
        routers, beginnings = self.host.routers, self.host.beginnings
        wanted = {
            name: command
            for name, command in commands.items()
            if (command.act is Act.SET or name in weights) and not routers[name].observing
        }
        beginnings.cap_later(wanted)
        if unstored or not wanted.keys() <= self._records.durable():
            self._records.store_lazily()
        durable = wanted.keys() & self._records.durable()
        beginnings.carried_out(durable)
        return durable

    def _look_after_limits(self, now: Seconds) -> None:
        """Lift expired limits, count the others, and set those again that an interface lost."""
        host = self.host
        look = partial(host.limits.look, host.routers.values(), now)
        lost = host.guard.run("limit", "", look)
        if isinstance(lost, Unforeseen):
            return  # caps are written anyway
        for managed in lost:
            host.work_on(managed, "limit", partial(host.limits.claim, managed))
        if lost:
            self._records.store_lazily()
        for managed in lost:
            if managed.observing or not self._records.knows_limit(managed):
                continue
            host.work_on(managed, "limit", partial(host.limits.renew, managed))

    def _claim_shields(self, now: Seconds) -> bool:
        """Note the interfaces that will get a shield; whether the journal must be written first."""
        beginnings = self.host.beginnings
        claimed = self.host.each("shield", lambda managed: beginnings.claim(managed, now))
        return any(claimed.values())

    def _tend_shields(self, now: Seconds) -> None:
        """Set, change and lift shields; none is set that the journal does not contain."""
        host = self.host
        certain = self._records.journal.certain  # once: each check asks for the directory's owner
        host.each("shield", lambda managed: host.beginnings.tend(managed, now, certain))
        if host.routers:
            self._turn += 1
            one = list(host.routers.values())[self._turn % len(host.routers)]
            host.work_on(one, "shield", partial(host.shields.look_ahead, one))

    def falling_caps(self) -> list[tuple[int, ManagedRouter]]:
        """Return (slot, router) for every cap that alternates within this period."""
        parts = self.host.each("fall", ManagedRouter.low_part)
        routers = self.host.routers
        return [(part[0], routers[name]) for name, part in parts.items() if part is not None]

    def fall(self, managed: ManagedRouter) -> None:
        """Write the low part of a cap that alternates."""
        self.host.work_on(managed, "fall", managed.fall)


def _weight_is_due(managed: ManagedRouter) -> bool:
    return managed.floor.pending
