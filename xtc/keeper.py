"""Keeps one router's cap: original made durable first, writes on change, reads back, backs off."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from xtc.actuator.base import Actuator, CapLimits, CpuUsage
from xtc.actuator.spec import ActuatorSpec, Original
from xtc.errors import ActuatorError, Gone, Permanent
from xtc.units import CapFraction, Seconds

T = TypeVar("T")

MAX_CONFLICTS = 3
"""Foreign changes within CONFLICT_MEMORY after which the cap is left to whoever changes it."""
CONFLICT_MEMORY = 60
"""Periods after which a foreign change is forgotten."""
MAX_BACKOFF = 32
"""Periods between tries of an actuator that keeps failing."""
BINDING_USE = 0.9
"""Share of its cap that a held router uses, where the platform counts no throttling."""
SAME_CAP = 1e-3
"""Relative difference up to which a cap read back is the one that was written."""


@dataclass(frozen=True, slots=True)
class CapView:
    """What the actuator showed of one period."""

    cap: CapFraction | None
    """In force now; None where the router is uncapped."""
    used: CapFraction | None
    binding: bool | None


class Keeper:
    """The cap of one router. Errors become `problem`; a failing router delays no other."""

    def __init__(
        self,
        spec: ActuatorSpec,
        open_actuator: Callable[[ActuatorSpec, Original | None], Actuator],
        *,
        original: Original | None = None,
    ) -> None:
        self.spec = spec
        self.original = original
        """What stood there before; None until it is captured."""
        self.problem: ActuatorError | None = None
        self._open = open_actuator
        self._actuator: Actuator | None = None
        self._wanted: CapFraction | None = None
        self._usage: tuple[Seconds, CpuUsage] | None = None
        self._failures = 0
        self._rest = 0
        self._conflicts: list[int] = []
        self._periods = 0

    @property
    def limits(self) -> CapLimits | None:
        """What the actuator can express, once it is open."""
        return None if self._actuator is None else self._actuator.limits

    @property
    def yielded(self) -> bool:
        """Whether somebody else keeps changing the cap, so that it is left alone."""
        return len(self._conflicts) >= MAX_CONFLICTS

    def reclaim(self) -> None:
        """Forget that others changed the cap, and try again."""
        self._conflicts, self._rest = [], 0

    def prepare(self) -> bool:
        """Open the actuator and capture the original; whether caps can be written after this."""
        if self._rest > 0:
            self._rest -= 1
            return False
        return self._guarded(self._prepare) is not None

    def _prepare(self) -> bool:
        if self._actuator is None:
            self._actuator = self._open(self.spec, self.original)
        if self.original is None:
            self.original = self._actuator.capture()
        return True

    def view(self, now: Seconds) -> CapView | None:
        """Return what was in force and in use since the last view; None where it cannot be read."""
        self._periods += 1
        if self._actuator is None:
            return None
        return self._guarded(lambda: self._view(now))

    def _view(self, now: Seconds) -> CapView:
        assert self._actuator is not None  # view() has looked
        cap = self._actuator.applied()
        self._note_conflict(cap)
        usage = self._actuator.usage()
        before, self._usage = self._usage, (now, usage)
        if before is None or now <= before[0] or usage.used is None or before[1].used is None:
            return CapView(cap, None, None)
        used = CapFraction(max(0.0, (usage.used - before[1].used) / (now - before[0])))
        return CapView(cap, used, _binding(cap, used, before[1], usage))

    def _note_conflict(self, cap: CapFraction | None) -> None:
        self._conflicts = [p for p in self._conflicts if p > self._periods - CONFLICT_MEMORY]
        if self._wanted is None or same_cap(cap, self._wanted):
            return
        self._wanted = None
        limits = self.limits
        if cap is not None or limits is None or not limits.volatile:
            self._conflicts.append(self._periods)

    def set(self, cap: CapFraction) -> None:
        """Put a cap in force, unless it already is; the original must be durable by now."""
        if self._actuator is None or self.original is None or self.yielded or self._rest > 0:
            return
        if self._wanted is not None and same_cap(cap, self._wanted):
            return
        actuator = self._actuator
        got = self._guarded(lambda: actuator.apply(cap))
        self._wanted = got

    def release(self) -> bool:
        """Put back what stood there before; whether that is done (a router gone is released)."""
        original, actuator = self.original, self._actuator
        if original is None:
            return True
        if actuator is None:
            done = self._guarded(lambda: _restored(self._open(self.spec, self.original), original))
        else:
            done = self._guarded(lambda: _restored(actuator, original))
        released = done is not None or isinstance(self.problem, Gone)
        if released:
            self.forget()
        return released

    def forget(self) -> None:
        """Start from nothing: what is opened next may be another router, or others' work on it."""
        self._actuator, self._wanted, self._usage, self.original = None, None, None, None
        self._conflicts = []

    def _guarded(self, call: Callable[[], T]) -> T | None:
        """Carry out a call; an error becomes the problem, and tries become rarer."""
        try:
            result = call()
        except ActuatorError as error:
            self.problem = error
            self._failures += 1
            permanent = isinstance(error, Permanent)
            self._rest = MAX_BACKOFF if permanent else min(2**self._failures, MAX_BACKOFF)
            if isinstance(error, Gone):
                self._actuator, self._wanted, self._usage = None, None, None
            return None
        self.problem, self._failures = None, 0
        return result


def _restored(actuator: Actuator, original: Original) -> bool:
    actuator.restore(original)
    return True


def same_cap(one: CapFraction | None, other: CapFraction | None) -> bool:
    """Whether two caps are the same within what a read-back can tell."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= SAME_CAP * max(one, other)


def _binding(cap: CapFraction | None, used: CapFraction, before: CpuUsage, after: CpuUsage) -> bool:
    if cap is None:
        return False
    if before.throttled is not None and after.throttled is not None:
        return after.throttled > before.throttled
    return used >= BINDING_USE * cap
