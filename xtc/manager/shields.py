"""Shields of controlled routers: set, changed, counted and lifted by the loop's state.

Where a shield cannot be set, the cap alone holds the router, and the reports say why. Shields are
in the journal before they are set.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from common.setpoint import Setpoint, Unit
from common.units import PacketsPerSecond, Seconds
from xtc.control.headroom import is_spent
from xtc.control.shielding import Seen, Shielded, learned
from xtc.errors import ActuatorError
from xtc.isolation import Firewall
from xtc.manager.removals import Lifts
from xtc.manager.router import ManagedRouter
from xtc.measure.collector import Side
from xtc.modes import Finding, Mode

LOOK_EVERY = 60
"""Periods between two checks that every interface still has its shield: a check takes as long as
the rest of a router's period. A router with new, lost or reset interfaces is checked in that
period."""
LOOK_AGAIN = 10
"""The same while an interface lacks it."""
MOST_NEW = 32
"""Routers that get a new shield in a period: the kernel takes 10 ms to verify one's program."""
NOTHING = PacketsPerSecond(0.0)
CHANGE = 0.001
"""Relative difference to the rate in force below which the rate stays unchanged."""


class ShieldPort(Protocol):
    """The manager's view of `xtc.shield.router`; owners are routers."""

    def limit(
        self, owner: str, interfaces: Sequence[str], rate: Setpoint, side: Side
    ) -> Mapping[str, ActuatorError]:
        """Limit all interfaces together to a rate; return those that could not be limited, and why.

        Existing limits are changed in place; an interface that lost its limit gets it again.
        """
        ...

    def change(self, owner: str, rate: Setpoint) -> None:
        """Change the rate of an owner's limit."""
        ...

    def dropped(self, owner: str) -> int | None:
        """Return how many packets were dropped, None where no limit was set."""
        ...

    def lift(self, interface: str) -> None:
        """Remove the limit from an interface."""
        ...

    def forget(self, owner: str) -> None:
        """Forget an owner that no longer has a limit."""
        ...

    def overruled(self, interfaces: Iterable[str], side: Side) -> str:
        """Return which filters of other owners decide before ours, "" where none does."""
        ...


class Shields:
    """The shields of all routers; without a port there are none."""

    def __init__(self, port: ShieldPort | None, guard: Firewall) -> None:
        self._port = port
        self.lifts = Lifts("shield", self._lift_one, guard)
        """The shields that must still be lifted."""
        self._bearers: dict[str, str] = {}
        """The last claimant of each interface: it may move from one router to another."""
        self._new = 0
        """Routers without a shield so far, of those checked in this period."""

    def look(self, managed: ManagedRouter, now: Seconds) -> None:
        """Read what a router's shield dropped in the last period."""
        shielded = managed.shielded
        shielded.whole = shielded.stands and not shielded.fresh
        shielded.fresh = False
        if shielded.rate is None:
            shielded.dropped = NOTHING
            return
        before, elapsed = shielded.counted, now - shielded.looked_at
        shielded.counted, shielded.looked_at = self._counted(managed.plan.name), now
        if before is None or shielded.counted is None or elapsed <= 0:
            shielded.dropped = None
        else:
            shielded.dropped = PacketsPerSecond((shielded.counted - before) / elapsed)
            shielded.elapsed = Seconds(elapsed)

    def _counted(self, name: str) -> int | None:
        try:
            return None if self._port is None else self._port.dropped(name)
        except ActuatorError:
            return None

    def claim(self, managed: ManagedRouter, now: Seconds) -> bool:
        """Note the interfaces that will get a shield; whether the journal must be written first."""
        new = {*managed.interfaces} - {*managed.shielded.claimed}
        if self._port is None or not new or managed.observing or _is_paused(managed):
            return False
        if _wanted(managed, now) is None:
            return False
        self._bearers |= dict.fromkeys(new, managed.plan.name)
        managed.shielded.claimed = tuple(sorted({*managed.shielded.claimed, *new}))
        self.lifts.leave(new)
        return True

    def tend(self, managed: ManagedRouter, now: Seconds, *, may_set: bool = True) -> None:
        """Set, change or lift a router's shield by the state of its loop.

        Args:
            managed: the router.
            now: the instant of this tick.
            may_set: whether the journal contains every interface that needs a shield. If not, only
                existing shields follow the setpoint.
        """
        if self._port is None or managed.observing:
            return
        setpoint = _wanted(managed, now)
        if setpoint is None:
            self.lift(managed)
        elif not managed.interfaces:
            managed.shielded.asked = ()  # an interface that comes back gets it immediately
        elif not _is_paused(managed):
            self._learn(managed)
            self._set(managed, setpoint, now, may_set=may_set)

    def follow(self, managed: ManagedRouter, now: Seconds, *, may_set: bool) -> None:
        """Set or change a router's shield between two ticks, by what was learned so far."""
        setpoint = _wanted(managed, now)
        if self._port is None or managed.observing or setpoint is None or _is_paused(managed):
            return
        if managed.interfaces:
            shielded = managed.shielded
            _note_begun(shielded, setpoint)
            self._set(managed, setpoint, now, may_set=may_set)

    def holds(self, managed: ManagedRouter) -> bool | None:
        """Whether a shield holds a router on all its interfaces; None while unknown."""
        if self._port is None or not managed.plan.shield:
            return False
        shielded = managed.shielded
        if not managed.interfaces or {*shielded.asked} != {*managed.interfaces}:
            return None
        return shielded.rate is not None and not shielded.problem

    def _learn(self, managed: ManagedRouter) -> None:
        shielded = managed.shielded
        before, shielded.before = shielded.before, None
        if shielded.setpoint is None or not shielded.whole:
            return
        setpoint = _larger(shielded.setpoint, before)
        seen = _seen(managed, setpoint.unit)
        if seen is not None:
            shielded.law = learned(shielded.law, setpoint, seen)

    def _set(
        self, managed: ManagedRouter, setpoint: Setpoint, now: Seconds, *, may_set: bool
    ) -> None:
        assert self._port is not None  # tend() has checked
        shielded = managed.shielded
        rate = shielded.law.rate(setpoint)
        retuned = setpoint != shielded.setpoint
        shielded.setpoint, shielded.periods = setpoint, shielded.periods + 1
        upset = _is_upset(managed)
        look = upset or shielded.periods >= (LOOK_AGAIN if shielded.problem else LOOK_EVERY)
        if look and may_set and self._has_time(shielded):
            self._put(managed, rate, self._port)
            shielded.counted, shielded.looked_at = self._counted(managed.plan.name), now
        elif shielded.rate is not None and (retuned or _is_another(rate, shielded.rate)):
            _change(managed, rate, self._port)

    def _has_time(self, shielded: Shielded) -> bool:
        """Whether a shield may be checked in this period; only the first few new ones may."""
        self._new += shielded.rate is None
        return shielded.rate is not None or self._new <= MOST_NEW

    def _put(self, managed: ManagedRouter, rate: Setpoint, port: ShieldPort) -> None:
        """Put the shield on the router's interfaces, where possible, and on no others."""
        shielded, name, interfaces = managed.shielded, managed.plan.name, managed.interfaces
        self.lifts.lift(self._borne(managed) - {*interfaces})
        shielded.claimed = shielded.asked = interfaces
        shielded.periods, shielded.rate = 0, None
        try:
            refused = port.limit(name, interfaces, rate, managed.plan.binding.side)
        except ActuatorError as error:
            shielded.problem = str(error)
            return
        shielded.problem = "; ".join(str(error) for error in refused.values())
        if len(refused) < len(interfaces):
            shielded.rate = rate

    def _borne(self, managed: ManagedRouter) -> set[str]:
        """Return the interfaces that may have the router's shield, and no other router's."""
        name = managed.plan.name
        return {one for one in managed.shielded.claimed if self._bearers.get(one, name) == name}

    def lift(self, managed: ManagedRouter) -> str:
        """Lift a router's shield; return why not, where it must be retried."""
        if self._port is None or not managed.shielded.claimed:
            return ""
        trouble = self.lifts.lift(sorted(self._borne(managed)))
        self._port.forget(managed.plan.name)
        managed.shielded = Shielded()
        return trouble

    def look_ahead(self, managed: ManagedRouter) -> None:
        """Check whether another owner's filter decides before a router's shield or limit.

        This takes milliseconds for each interface: the caller takes the routers in turn.
        """
        managed.shielded.overruled = ""
        if self._port is None or (managed.shielded.rate is None and not managed.limited):
            return
        with suppress(ActuatorError):
            side = managed.plan.binding.side
            managed.shielded.overruled = self._port.overruled(managed.interfaces, side)

    def _lift_one(self, interface: str) -> None:
        self._bearers.pop(interface, None)
        if self._port is not None:
            self._port.lift(interface)

    def try_again(self) -> None:
        """End a period: retry the lifts that failed."""
        self._new = 0
        self.lifts.try_again()

    def interfaces(self, routers: Iterable[ManagedRouter]) -> dict[str, tuple[str, ...]]:
        """Return what the journal must hold: the interfaces that may have a shield, by router."""
        claimed = {m.plan.name: m.shielded.claimed for m in routers if m.shielded.claimed}
        return claimed | self.lifts.left()


def _is_upset(managed: ManagedRouter) -> bool:
    """Whether a router's interfaces have changed, or are no longer counted."""
    shielded = managed.shielded
    before, shielded.disturbed = shielded.disturbed, managed.disturbed
    if shielded.disturbed and not before:
        return True
    return managed.interfaces != shielded.asked and {*managed.interfaces} != {*shielded.asked}


def _wanted(managed: ManagedRouter, now: Seconds) -> Setpoint | None:
    """Return the setpoint of a router that needs a shield.

    A router that does not respond to its cap keeps its shield: nothing else holds it. A loop
    without an actuator, or with a cap left to others, does not see its lease end.
    """
    instance = managed.instance
    if instance is None or not managed.plan.shield:
        return None
    if instance.mode is Mode.RELEASED and instance.finding is not Finding.UNRESPONSIVE:
        return None
    return managed.plan.setpoint if instance.lease.expired(now) else instance.setpoint


def _is_another(rate: Setpoint, before: Setpoint) -> bool:
    """Whether learning has changed a rate enough to be worth changing the filter."""
    return rate.unit is not before.unit or abs(rate.rate / before.rate - 1) > CHANGE


def _note_begun(shielded: Shielded, setpoint: Setpoint) -> None:
    """Note a shield that begins in the middle of a period, which then says less."""
    before = shielded.setpoint
    if shielded.rate is None or before is None or before.unit is not setpoint.unit:
        shielded.fresh = True
    elif setpoint != before:
        shielded.before = _larger(before, shielded.before)


def _larger(setpoint: Setpoint, other: Setpoint | None) -> Setpoint:
    """Return the larger of two setpoints of one unit."""
    if other is None or other.unit is not setpoint.unit or other.rate <= setpoint.rate:
        return setpoint
    return other


def _is_paused(managed: ManagedRouter) -> bool:
    return managed.instance is not None and managed.instance.paused


def _change(managed: ManagedRouter, rate: Setpoint, port: ShieldPort) -> None:
    """Change the rate; if that fails, set the shield again in the next period."""
    shielded = managed.shielded
    try:
        port.change(managed.plan.name, rate)
    except ActuatorError as error:
        shielded.problem, shielded.asked, shielded.fresh = str(error), (), True
    else:
        shielded.rate = rate


def _seen(managed: ManagedRouter, unit: Unit) -> Seen | None:
    """Return the law's input in a unit, None where a part of it is not known."""
    sample, dropped, instance = managed.sample, managed.shielded.dropped, managed.instance
    if sample is None or dropped is None or instance is None:
        return None
    rates = sample.counted_in(unit)
    if rates is None or rates.offered is None:
        return None
    binding = bool(sample.binding) and is_spent(sample)
    binding = binding and instance.finding is not Finding.AT_CEILING
    elapsed = managed.shielded.elapsed
    return Seen(rates.throughput, rates.offered, dropped, binding, elapsed)
