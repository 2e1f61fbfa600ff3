"""Shields of held routers: set, changed, counted and lifted, as the loop's state asks for.

Where a shield cannot be set the cap alone holds the router, as it would have anyway, and the
reports say why. What is set is in the journal beforehand.
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
from xtc.manager.router import Managed
from xtc.measure.collector import Side
from xtc.modes import Finding, Mode

LOOK_EVERY = 60
"""Periods between two looks whether every interface still bears its shield: a look takes as long as
the rest of a router's period. One whose interfaces came, went or were reset is looked at in that
period."""
LOOK_AGAIN = 10
"""The same where one does not bear it."""
MOST_NEW = 32
"""Routers that get a new shield in a period: the kernel takes 10 ms to check the program of one."""
NOTHING = PacketsPerSecond(0.0)
CHANGE = 0.001
"""Relative difference to the rate in force below which that is left alone."""


class ShieldPort(Protocol):
    """What is needed of `xtc.shield.router`; owners are routers."""

    def limit(
        self, owner: str, interfaces: Sequence[str], rate: Setpoint, side: Side
    ) -> Mapping[str, ActuatorError]:
        """Let so much by on all interfaces together; return those that do not bear it, and why.

        What stands already is changed in place; an interface that lost it bears it again.
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
        """Say which filters of others decide before ours, "" where none does."""
        ...


class Shields:
    """The shields of all routers; without a port there are none."""

    def __init__(self, port: ShieldPort | None, guard: Firewall) -> None:
        self._port = port
        self.lifts = Lifts("shield", self._lift_one, guard)
        """What is still to be lifted."""
        self._bearers: dict[str, str] = {}
        """Who claimed an interface last: it may move from one router to another."""
        self._new = 0
        """Routers that had none yet, of those looked at in this period."""

    def look(self, managed: Managed, now: Seconds) -> None:
        """See what a router's shield dropped in the last period."""
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

    def claim(self, managed: Managed, now: Seconds) -> bool:
        """Note which interfaces are about to bear a shield; whether the journal must know first."""
        new = {*managed.interfaces} - {*managed.shielded.claimed}
        if self._port is None or not new or managed.observing or _is_paused(managed):
            return False
        if _wanted(managed, now) is None:
            return False
        self._bearers |= dict.fromkeys(new, managed.plan.name)
        managed.shielded.claimed = tuple(sorted({*managed.shielded.claimed, *new}))
        self.lifts.leave(new)
        return True

    def tend(self, managed: Managed, now: Seconds, *, may_set: bool = True) -> None:
        """Set, change or lift a router's shield, as its loop stands now.

        Args:
            managed: the router.
            now: the instant of this tick.
            may_set: whether the journal knows of every interface that is to bear one. Else those
                that bear it follow the setpoint all the same.
        """
        if self._port is None or managed.observing:
            return
        setpoint = _wanted(managed, now)
        if setpoint is None:
            self.lift(managed)
        elif not managed.interfaces:
            managed.shielded.asked = ()  # what comes back is to bear it at once
        elif not _is_paused(managed):
            self._learn(managed)
            self._set(managed, setpoint, now, may_set=may_set)

    def follow(self, managed: Managed, now: Seconds, *, may_set: bool) -> None:
        """Set or change a router's shield between two ticks, by what was learned so far."""
        setpoint = _wanted(managed, now)
        if self._port is None or managed.observing or setpoint is None or _is_paused(managed):
            return
        if managed.interfaces:
            shielded = managed.shielded
            _note_begun(shielded, setpoint)
            self._set(managed, setpoint, now, may_set=may_set)

    def holds(self, managed: Managed) -> bool | None:
        """Whether a shield holds a router on all its interfaces; None while that is not known."""
        if self._port is None or not managed.plan.shield:
            return False
        shielded = managed.shielded
        if not managed.interfaces or {*shielded.asked} != {*managed.interfaces}:
            return None
        return shielded.rate is not None and not shielded.problem

    def _learn(self, managed: Managed) -> None:
        shielded = managed.shielded
        before, shielded.before = shielded.before, None
        if shielded.setpoint is None or not shielded.whole:
            return
        setpoint = _larger(shielded.setpoint, before)
        seen = _seen(managed, setpoint.unit)
        if seen is not None:
            shielded.law = learned(shielded.law, setpoint, seen)

    def _set(self, managed: Managed, setpoint: Setpoint, now: Seconds, *, may_set: bool) -> None:
        assert self._port is not None  # tend() has looked
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
        """Whether a shield may be looked at in this period; a new one is among the first few."""
        self._new += shielded.rate is None
        return shielded.rate is not None or self._new <= MOST_NEW

    def _put(self, managed: Managed, rate: Setpoint, port: ShieldPort) -> None:
        """Put the shield on the router's interfaces, as far as they bear it, and on no others."""
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

    def _borne(self, managed: Managed) -> set[str]:
        """Return the interfaces that may bear the router's shield, and no other router's."""
        name = managed.plan.name
        return {one for one in managed.shielded.claimed if self._bearers.get(one, name) == name}

    def lift(self, managed: Managed) -> str:
        """Lift a router's shield; why not, in words, where it must be tried again."""
        if self._port is None or not managed.shielded.claimed:
            return ""
        trouble = self.lifts.lift(sorted(self._borne(managed)))
        self._port.forget(managed.plan.name)
        managed.shielded = Shielded()
        return trouble

    def look_ahead(self, managed: Managed) -> None:
        """See whether another owner's filter decides before a router's shield or limit.

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
        """End a period: try to lift what could not be lifted."""
        self._new = 0
        self.lifts.try_again()

    def interfaces(self, routers: Iterable[Managed]) -> dict[str, tuple[str, ...]]:
        """Return what the journal must hold: the interfaces that may bear a shield, by router."""
        claimed = {m.plan.name: m.shielded.claimed for m in routers if m.shielded.claimed}
        return claimed | self.lifts.left()


def _is_upset(managed: Managed) -> bool:
    """Whether a router's interfaces are others than before, or are counted no longer."""
    shielded = managed.shielded
    before, shielded.disturbed = shielded.disturbed, managed.disturbed
    if shielded.disturbed and not before:
        return True
    return managed.interfaces != shielded.asked and {*managed.interfaces} != {*shielded.asked}


def _wanted(managed: Managed, now: Seconds) -> Setpoint | None:
    """Return the setpoint of a router that is to have a shield.

    One that does not answer to its cap keeps it: the shield is all that holds it. A loop whose
    actuator is not to be had, or whose cap is left to others, does not see its lease end.
    """
    instance = managed.instance
    if instance is None or not managed.plan.shield:
        return None
    if instance.mode is Mode.RELEASED and instance.finding is not Finding.UNRESPONSIVE:
        return None
    return managed.plan.setpoint if instance.lease.expired(now) else instance.setpoint


def _is_another(rate: Setpoint, before: Setpoint) -> bool:
    """Whether what was learned has changed a rate enough to be worth a change of the filter."""
    return rate.unit is not before.unit or abs(rate.rate / before.rate - 1) > CHANGE


def _note_begun(shielded: Shielded, setpoint: Setpoint) -> None:
    """Note what a shield is about to be in the middle of a period, of which that then tells less.

    What was let by for a larger setpoint was right; a period without a shield tells nothing.
    """
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


def _is_paused(managed: Managed) -> bool:
    return managed.instance is not None and managed.instance.paused


def _change(managed: Managed, rate: Setpoint, port: ShieldPort) -> None:
    """Change the rate; where that fails, the shield is set again in the next period."""
    shielded = managed.shielded
    try:
        port.change(managed.plan.name, rate)
    except ActuatorError as error:
        shielded.problem, shielded.asked, shielded.fresh = str(error), (), True
    else:
        shielded.rate = rate


def _seen(managed: Managed, unit: Unit) -> Seen | None:
    """Return what the law learns from in a unit, None where a part of it is not known."""
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
