"""One router under the manager: plan, cap and loop."""

import dataclasses
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from common.setpoint import Setpoint, Unit, counted
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import Actuator
from xtc.config.plan import RouterPlan
from xtc.control.binding import Polling, binds, observed
from xtc.control.dither import SLOTS, Dithered, steady
from xtc.control.first_cap import first
from xtc.control.floors import KEEP as KEEP_WEIGHT
from xtc.control.instance import (
    HOLD_AFTER,
    KEEP,
    Act,
    Command,
    Instance,
    Profile,
    Watch,
    ladder_step,
    proven,
    released,
    step,
)
from xtc.control.law import InBits, PaperLaw, Sample
from xtc.control.prior import Prior
from xtc.control.promise import Accounting
from xtc.control.shielding import Shielded
from xtc.control.stale_model import count_outside, with_stale_model
from xtc.errors import Gone
from xtc.lease import Kind, Lease
from xtc.manager.cap import CapController, CapView, same_cap
from xtc.manager.floor import FloorController
from xtc.manager.window import Calm, Seen, joined, mean_of, steadied
from xtc.measure.collector import Reading, Side, reached_bps
from xtc.modes import Finding, Mode
from xtc.spec import ActuatorSpec, Original

OpenActuator = Callable[[ActuatorSpec, Original | None], Actuator]


class ManagedRouter:
    """A router of the configuration; active while it has an instance."""

    observed = ""
    """Why the whole host is only observed; empty where it is not."""
    fault = ""
    """The unforeseen error of its last period."""
    _spanned_s = Seconds(1.0)
    """Seconds that the last sample spans."""
    undurable = ""
    """Why its original could not be made durable, so that it is not capped."""
    lost = False
    """Whether it was gone, and it is not known yet whether it came back with our cap."""
    reading: Reading | None = None
    """What the meter counted in the last period."""
    view: CapView | None = None
    """What the actuator showed in the last period."""
    sample: Sample | None = None
    """What the last period showed; None where the loop was blind."""
    uuid = ""
    """UUID of the domain, while it runs here."""

    def __init__(
        self, plan: RouterPlan, open_actuator: OpenActuator, original: Original | None = None
    ) -> None:
        self.plan = plan
        self.controller = CapController(plan.spec, open_actuator, original=original)
        self.floor = FloorController(self.controller, plan.weight)
        self.instance: Instance | None = None
        self.limit: PacketsPerSecond | None = None
        """Rate limit of the host's traffic into each interface; None is no limit."""
        self.limit_problem = ""
        """Why the limit is not in force on every interface."""
        self.limit_ends_at: Seconds | None = None
        """Instant of the monotonic clock; None means until it is lifted."""
        self.limited: tuple[str, ...] = ()
        """The interfaces that carry the limit."""
        self.kept_back: PacketsPerSecond | None = PacketsPerSecond(0.0)
        """What the limit dropped in the last period; None while unknown."""
        self.shielded = Shielded()
        """State of its shield."""
        self.accounting = Accounting()
        """How well it kept its promises since the daemon started."""
        self._obeyed: Lease | None = None
        """The last lease, even after release: it must not be replayed."""
        self.by_hand = False
        """Whether it was released on request, so that a reload does not hold it again."""
        self._polling = Polling()
        self._recent: tuple[float, ...] = ()
        """The shares of its cap that it used recently."""
        self._period_s = Seconds(1.0)
        """Seconds between two ticks."""
        self._window: tuple[Seen, ...] = ()
        """The periods that form one sample, where the cap is refilled rarely."""
        self._calm = Calm()
        """The samples of a second that form one, where a shield holds the rate."""
        self._period: Dithered | None = None
        """How the cap alternates in the period, as far as it was written."""
        self._outside = 0
        """Samples outside of the model's range minus samples inside."""
        self.found: tuple[str, ...] = ()
        """The interfaces present at the start, before the first period has ended."""
        self.mixed = False
        """Whether the cap was written in the middle of this period."""
        self._fell = False
        """Whether the low part of an alternating cap was written in this period."""
        self._profile: Profile | None = None
        self.proposed: CapFraction | None = None
        """The cap that an observed router would get."""
        self._owes_release = False
        """Whether the loop's release failed, and must be retried."""

    @property
    def observing(self) -> bool:
        """Whether the loop shows what it would do, without writing."""
        return bool(self.observed) or self.plan.observe

    @property
    def weighable(self) -> bool:
        """Whether it is under control, so that its weight may be changed."""
        held = self.instance is not None and self.instance.mode is not Mode.RELEASED
        return held and self.controller.original is not None and not self.observing

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces that the router had in the last period."""
        return self.found if self.reading is None else self.reading.interfaces

    @property
    def disturbed(self) -> bool:
        """Whether its interfaces exist but were not counted: one was created again, for example."""
        return self.reading is not None and self.reading.throughput is None

    def last_lease(self) -> Lease | None:
        """Return the lease that the next one must follow; releasing a router ends a punishment."""
        if self.instance is not None:
            return self.instance.lease
        obeyed = self._obeyed
        return None if obeyed is None else msgspec.structs.replace(obeyed, kind=Kind.NORMAL)

    def activate(self, lease: Lease, now: Seconds) -> None:
        """Begin to control the router, or give its loop another lease.

        An unresponsive router is tried again if the new lease differs.
        """
        self._obeyed, self.by_hand = lease, False
        if self.instance is None:
            adopted = not self.controller.untouched
            self.instance = Instance(lease=lease, seen_at=now, capped=adopted)
            if self.controller.prepare():
                self.controller.view(now)  # CPU usage is known from here on
        else:
            before = self.instance.lease
            same = (lease.setpoint, lease.kind) == (before.setpoint, before.kind)
            watch = self.instance.watch if same else Watch()
            self.instance = replace(self.instance.given(lease), watch=watch)

    def remember(self, of: "Callable[[ManagedRouter, Unit], Prior | None]") -> None:
        """Start a loop that knows nothing yet with the estimate of an earlier run."""
        if self.instance is not None and self.instance.law_state is None:
            self.instance = replace(self.instance, prior=of(self, self.instance.lease.unit))

    def first(self, period: Seconds) -> Command | None:
        """Return the initial cap, where the loop need not wait for a sample; else None."""
        instance = self.instance
        if instance is None or instance.capped or instance.paused or not self._opened(period):
            return None
        assert self._profile is not None  # _opened() has set it
        in_force = None if self.view is None else self.view.cap
        forwarded = None if self.reading is None else self.reading.throughput
        self.instance, command = first(instance, self._profile, in_force, forwarded)
        return command

    def replan(self, plan: RouterPlan) -> None:
        """Adopt another law, model, bounds or configured setpoint; the cap stays."""
        before, self.plan, self._profile = self.plan, plan, None
        self.by_hand = self.by_hand and plan.setpoint == before.setpoint
        self.floor.mode = plan.weight
        if self.instance is None:
            return
        if (plan.law, plan.model) != (before.law, before.model):
            self.instance, self._outside = replace(self.instance, law_state=None), 0
        if plan.setpoint != before.setpoint:
            lease = _replanned(self.instance.lease, plan)
            self.instance = self.instance.given(lease)

    def succeed(self, before: "ManagedRouter", lease: Lease | None, now: Seconds) -> None:
        """Take over the orders of this router at its previous place; the lease is its loop's."""
        self.accounting = before.accounting
        self._obeyed = before.last_lease()
        self.by_hand = before.by_hand and self.plan.setpoint == before.plan.setpoint
        if lease is not None:
            lease = _replanned(lease, self.plan)
            if not lease.expired(now):
                self.activate(lease, now)

    def pause(self, *, paused: bool) -> None:
        """Leave the cap as it is, or resume control from there."""
        assert self.instance is not None  # the manager has checked
        mode = Mode.MANUAL if paused else Mode.CLOSED_LOOP
        self.instance = replace(self.instance, paused=paused, mode=mode, law_state=None)
        if not paused:
            self.controller.reclaim()
            self.floor.reclaim()

    def excuse(self, pause: Seconds, now: Seconds) -> None:
        """Do not count a pause of the daemon itself as blindness of the meter."""
        if self.instance is not None:
            seen_at = min(now, Seconds(self.instance.seen_at + pause))
            self.instance = replace(self.instance, seen_at=seen_at)

    def step(self, reading: Reading | None, now: Seconds, period: Seconds) -> Command:
        """Let the loop decide on the sample of this period."""
        self.reading, self._period_s = reading, period
        self.found = self.found if reading is None else ()
        self.view = self.sample = None
        self.controller.begin_period()
        if self.instance is None:
            self._release_again()
            return KEEP
        if not self._opened(period):
            self.instance = replace(self.instance, seen_at=now)
            return KEEP
        self.view = self.controller.view(now)
        if self.controller.yielded and self.instance.lease.kind is Kind.PUNISHMENT:
            self.controller.reclaim()  # a punished router must not escape by changing the cap
        if self.controller.yielded:
            self.instance = replace(self.instance, mode=Mode.MANUAL, finding=Finding.FOREIGN)
            return KEEP
        if self.mixed or self._too_early(period):
            self.mixed = False
            self.instance = replace(self.instance, seen_at=now)
            return self._decide(now, None)
        self.sample = self._sampled()
        if reading is not None and reading.incomplete:
            return self._decide_on_the_rest(reading, now, period)
        return self._decide_calmly(now)

    def _decide_calmly(self, now: Seconds) -> Command:
        """Decide on the period, or on the mean of the second that ends with it."""
        assert self.instance is not None  # step() has checked
        if self.sample is None or not self._may_be_calm(self.instance):
            self._calm.begin()
            return self._decide(now, self.sample)
        judged = self._calm.gather(self.sample, self.instance.setpoint, self._spanned_s)
        if judged is None:
            self.instance = replace(self.instance, seen_at=now)
        return self._decide(now, judged)

    def _may_be_calm(self, instance: Instance) -> bool:
        """Whether the loop runs normally, with a law that does not count its steps.

        The usage of a polling router says nothing about its need, even in long samples.
        """
        assert self._profile is not None  # _opened() has set it
        runs = instance.mode is Mode.CLOSED_LOOP and instance.law_state is not None
        counts = isinstance(self._profile.law_of(instance.lease.unit), PaperLaw)
        return runs and not (counts or self._polling.polls or self._alternates())

    def _decide_on_the_rest(self, reading: Reading, now: Seconds, period: Seconds) -> Command:
        """Control a router that lost an interface; the others may only lower its cap."""
        assert self.instance is not None  # step() has checked
        rest, view, lease = reading.at_least, self.view, self.instance.lease
        counted_rest = counted(lease.unit, rest, reading.at_least_bps)
        if rest is None or counted_rest is None or view is None or counted_rest <= lease.target:
            self.instance = replace(
                self.instance, seen_at=Seconds(now - HOLD_AFTER * ladder_step(period))
            )
            return self._decide(now, None)
        cap = self._in_force(view.cap)
        binding = binds(view.evidence(rest, None, cap=cap), self._polling)
        in_bits = InBits(counted_rest) if lease.unit is Unit.BITS else None
        sample = Sample(rest, cap, used=_used(view), binding=binding, in_bits=in_bits)
        command = self._decide(now, sample)
        wanted = None if command.period is None else command.period.mean
        lower = wanted is not None and (cap is None or wanted < cap)
        return command if lower or command.act is not Act.SET else KEEP

    def _decide(self, now: Seconds, sample: Sample | None) -> Command:
        assert self.instance is not None  # step() has checked
        assert self._profile is not None  # _opened() has set it
        self.instance, command = step(self.instance, self._profile, now, sample)
        if self.instance.finding is Finding.STARVED:
            self.instance = proven(self.instance, self.floor.contended())
        self._outside = count_outside(
            self._outside, self.instance, sample, self.plan.model, polls=self._polling.polls
        )
        self.instance = with_stale_model(self.instance, self._outside)
        return command

    def go_blind(self, now: Seconds) -> Command:
        """Let the loop decide without a sample, since processing it failed."""
        return KEEP if self.instance is None or self._profile is None else self._decide(now, None)

    def keep_account(self, now: Seconds) -> None:
        """Account for the promise in this period; the next has the setpoint in force."""
        promised = self.accounting.promised
        if promised is not None and self.instance is not None:
            self.accounting.end(*self._delivered(promised.unit), now)
        self.accounting.begin(self._promised(now), now)

    def _delivered(self, unit: Unit) -> tuple[float | None, float | None]:
        """Return what was forwarded and what reached the router, in packets/s or bits/s."""
        reading = self.reading
        if reading is None or reading.throughput is None:
            return None, None
        reached = self.reached(reading)
        if unit is Unit.PACKETS:
            return reading.throughput, reached
        return reading.throughput_bps, reached_bps(reading, reached)

    def _promised(self, now: Seconds) -> Setpoint | None:
        """Return the setpoint of a router that should be held, even if its loop cannot hold it."""
        if self.instance is None or self.observing:
            return None
        return self.plan.setpoint if self.instance.lease.expired(now) else self.instance.setpoint

    def _opened(self, period: Seconds) -> bool:
        """Open the actuator if needed; wait for a router that is gone."""
        if not self.controller.prepare():
            if isinstance(self.controller.problem, Gone):
                self._lose()
            return False
        self.lost = False
        if self._profile is None and self.controller.limits is not None:
            self._profile = self.plan.profile(self.controller.limits, period)
        if self._profile is not None and self._profile.slow is not self.controller.slow:
            self._profile = dataclasses.replace(self._profile, slow=self.controller.slow)
        return True

    def _lose(self) -> None:
        """Forget a router that is gone; a new one under its name is another router."""
        assert self.instance is not None  # step() has checked
        self.controller.forget()
        self.lost = True
        self._period = self._profile = None
        self._polling = Polling()
        self.instance = released(self.instance, Finding.GONE)

    def _too_early(self, period: Seconds) -> bool:
        """Whether a rarely refilled cap needs more periods before it can be judged."""
        reading, view = self.reading, self.view
        if reading is None or reading.throughput is None or view is None or not view.refill:
            self._window = ()
            return False
        self._window, enough = joined(self._window, (reading, view), period)
        return not enough

    def _sampled(self) -> Sample | None:
        """Return the sample of the period, with whether the cap was binding."""
        reading, view = self.reading, self.view
        if reading is None or reading.throughput is None or view is None:
            return None
        self._spanned_s = Seconds(max(1, len(self._window)) * self._period_s)
        if self._window:
            (reading, view), self._window = mean_of(self._window), ()
        assert reading.throughput is not None  # a window contains only such readings
        cap = self._in_force(view.cap)
        offered = self.reached(reading)
        evidence = view.evidence(reading.throughput, offered, cap=cap)
        self._recent, judged = steadied(self._recent, evidence, self._period_s)
        binding = binds(judged, self._polling)
        self._polling = observed(self._polling, evidence)
        return Sample(
            throughput=reading.throughput,
            cap=cap,
            offered=offered,
            used=_used(view),
            coarse=view.hottest is None,
            binding=binding,
            late=view.late,
            shielded=self.shielded.stands and bool(self.shielded.dropped),
            guarded=self.shielded.stands,
            in_bits=_in_bits(reading),
        )

    def _in_force(self, read: CapFraction | None) -> CapFraction | None:
        """Return the cap of the period: the mean of two, if both were written."""
        if self._period is None or not self._alternates() or not self._fell:
            return read
        return self._period.mean if same_cap(read, self._period.low) else read

    def _alternates(self) -> bool:
        return self._period is not None and self._period.high != self._period.low

    def carry_out(self, command: Command) -> None:
        """Carry out the loop's decision; the original must already be durable."""
        wanted = None if command.period is None else command.period.mean
        self.proposed = wanted if self.observing else None
        if self.observing:
            self._observe(command)
            return
        if command.act is Act.SET and command.period is not None:
            self._owes_release = False
            self._spend(command.period)
        elif command.act is Act.RELEASE:
            self._owes_release = True
            self._owes_release = not self.release()
        elif self._owes_release or self._has_floor_alone():
            self._owes_release = not self._release_again()
        else:
            self._keep()
        if isinstance(self.controller.problem, Gone) and self.instance is not None:
            self._lose()

    def _has_floor_alone(self) -> bool:
        """Whether only a weight is left of a router that the loop has released without a cap."""
        released = self.instance is not None and self.instance.mode is Mode.RELEASED
        return released and self.floor.claimed

    def _observe(self, command: Command) -> None:
        """Write nothing, except that an alternating cap is left at its mean."""
        if self._period is not None and self._alternates() and self._profile is not None:
            self._spend(steady(self._period.mean, self._profile.quantum))
        self._period, self._fell = None, False
        self._owes_release = self._owes_release or command.act is Act.RELEASE

    def _spend(self, period: Dithered) -> None:
        """Begin a period; after a failed write, no cap alternates."""
        self._fell = False
        self._period = period if self.controller.set(period.high) else None

    def _keep(self) -> None:
        """Continue at the mean of an alternating cap; redistribute a divided one."""
        if self._period is not None and self._alternates() and self._profile is not None:
            self._spend(steady(self._period.mean, self._profile.quantum))
        self.controller.rebalance()

    def look_at_floor(self) -> None:
        """Check the weight, and learn what the setpoint needs."""
        instance, limits = self.instance, self.controller.limits
        if instance is None or limits is None:
            return
        self.floor.look()
        if self.floor.mode == KEEP_WEIGHT:
            self.floor.give_back()
        most = limits.ceiling
        sample = self.sample
        if self._polling.polls and sample is not None and sample.used is not None:
            most = sample.used  # it uses all it gets, regardless of its traffic
        self.floor.observe(instance.lease, sample, most)

    def weigh(self) -> None:
        """Write the decided weight; the original must already be durable."""
        if self.weighable:
            self.floor.carry_out()

    def low_part(self) -> tuple[int, CapFraction] | None:
        """Return the slot in which an alternating cap falls, and to what; None if it does not."""
        if self._period is None or not self._alternates() or self._period.high_slots >= SLOTS:
            return None
        return self._period.high_slots, self._period.low

    def fall(self) -> None:
        """Write the low part of an alternating cap, if there still is one."""
        part = self.low_part()
        if part is not None and not self.observing:
            self._fell = self.controller.set(part[1])

    def release(self) -> bool:
        """Restore the original settings; return whether it is done."""
        self._period = self.view = None
        self.floor.rest()
        return self.controller.release()

    def release_when(self, *, durable: bool) -> None:
        """Restore the original settings, or leave that to the next period."""
        self._owes_release = not (durable and self.release())

    def _release_again(self) -> bool:
        """Retry a failed release after the actuator's backoff; return whether it is done."""
        return not self.controller.resting and self.release()

    def reached(self, reading: Reading) -> PacketsPerSecond | None:
        """Return the packets/s that reached the router; its own end also counts shield drops."""
        counted = reading.offered
        dropped = self.shielded.dropped
        if counted is None or self.plan.binding.side is Side.HOST:
            return counted
        return None if dropped is None else PacketsPerSecond(max(0.0, counted - dropped))


def _replanned(lease: Lease, plan: RouterPlan) -> Lease:
    """Return a lease under another configuration; an ordered one stays as it is."""
    if not lease.configured:
        return lease
    return lease.ended() if plan.setpoint is None else lease.configured_as(plan.setpoint)


def _in_bits(reading: Reading) -> InBits | None:
    """Return a reading for a loop in bits.

    The offered load is converted to frames of the forwarded size, to be comparable: tunnels change
    the size, and some veths count frames without their header.
    """
    forwarded = counted(Unit.BITS, None, reading.throughput_bps)
    if forwarded is None:
        return None
    if not reading.throughput or reading.offered is None:
        return InBits(forwarded, counted(Unit.BITS, None, reading.offered_bps))
    return InBits(forwarded, forwarded * reading.offered / reading.throughput)


def _used(view: CapView) -> CapFraction | None:
    """Return the CPU usage to judge by: the hottest part's, or the total, however coarse."""
    return view.used if view.hottest is None else view.hottest
