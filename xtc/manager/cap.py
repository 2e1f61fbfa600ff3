"""Controls one router's cap: durable original first, write on change, read back, back off."""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import TypeVar

import msgspec

from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import Actuator, CapLimits, CpuUsage
from xtc.actuator.weights import Weighted, Weights
from xtc.control.binding import Evidence
from xtc.errors import ActuatorError, Admission, Gone, Overtaken, Permanent
from xtc.spec import ActuatorSpec, Original
from xtc.state.journal import Entry

T = TypeVar("T")

MAX_CONFLICTS = 3
"""Foreign changes within CONFLICT_MEMORY after which xtc stops controlling the cap."""
CONFLICT_MEMORY = 60
"""Periods after which a foreign change is forgotten."""
MAX_BACKOFF = 32
"""Maximum periods between retries of an actuator that keeps failing."""
COARSE = 5.0
"""Below this many grains of CPU time a period, usage of a cap cannot be measured."""
OVERUSED = 1.25
"""A router that used this multiple of its cap had another cap for part of the period."""
LATEST_PERIODS = 2
"""A cap takes effect late by fewer periods than this."""
SAME_CAP = 1e-3
"""Relative difference up to which a cap read back equals the one written."""
WORTH_WRITING = 3e-3
"""Relative difference below which a new cap is too small to measure."""


class _Work(Enum):
    """The operation that was tried on an actuator."""

    OPEN = auto()
    VIEW = auto()
    SET = auto()
    RELEASE = auto()


class CapView(msgspec.Struct, frozen=True, gc=False):
    """The actuator's measurements of one period."""

    cap: CapFraction | None
    """In force now; None where the router is uncapped."""
    used: CapFraction | None = None
    """CPUs used on average."""
    hottest: CapFraction | None = None
    """The same if every part with its own share had used as much of it as the hottest part; None
    where CPU time is counted too coarsely for the cap."""
    throttled: float | None = None
    """Share of the periods in which the cap stopped the router."""
    refill: Seconds = Seconds(0.0)
    """Seconds after which the cap is refilled; 0 where several refills fall into every period."""
    late: bool = False
    """Whether the cap took effect so late that usage exceeds it."""

    def evidence(
        self,
        throughput: PacketsPerSecond | None,
        offered: PacketsPerSecond | None,
        *,
        cap: CapFraction | None,
    ) -> Evidence:
        """Return the evidence of whether a cap was binding, with the throughput of that period."""
        return Evidence(cap, throughput, offered, self.hottest, self.throttled)


class CapController:
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
        """The settings before xtc; None until they are captured."""
        self.problem: ActuatorError | None = None
        """The last error, until the same operation succeeds."""
        self.limits: CapLimits | None = None
        """The caps that the actuator can express, once it is open."""
        self.weights: Weights | None = None
        """The router's weights, where its actuator is open and its platform has weights."""
        self._entry: Entry | None = None
        """The last entry given to the journal."""
        self.yielded = False
        """Whether another process keeps changing the cap, so that xtc leaves it alone."""
        self._open = open_actuator
        self._actuator: Actuator | None = None
        self._wanted: CapFraction | None = None
        self._underway = False
        """Whether the result of the last accepted cap is still unknown."""
        self._untouched = original is None
        """Whether nothing was written since the original was captured."""
        self._uncapped = original is None
        """Whether no cap was written, so that a different cap found is the original."""
        self._later = False
        """Whether caps are applied after they were accepted, and so may take effect late."""
        self._usage: tuple[Seconds, CpuUsage, int] | None = None
        """The last reading of CPU time: instant, counters, and period."""
        self._earlier: deque[CapFraction | None] = deque(maxlen=LATEST_PERIODS)
        """The caps in force at the last readings, None where there was none."""
        self._failing: _Work | None = None
        self._failures = 0
        self._rests_until = 0
        self._refused: CapFraction | None = None
        """The cap for which no CPU time was left; smaller caps need no backoff."""
        self._conflicts: list[int] = []
        self._periods = 0

    @property
    def entry(self) -> Entry | None:
        """The entry that the journal must hold; None while there is nothing to restore."""
        if self.original is None:
            return None
        if self._entry is None or self._entry.original is not self.original:
            self._entry = Entry(self.spec, self.original)
        return self._entry

    @property
    def resting(self) -> bool:
        """Whether the actuator is backing off after a recent failure."""
        return self._periods < self._rests_until

    @property
    def untouched(self) -> bool:
        """Whether nothing was written yet, so that there is nothing to restore."""
        return self._untouched

    @property
    def slow(self) -> bool:
        """Whether a cap takes so long to write that it should not change within a period."""
        return self._actuator is not None and self._actuator.slow

    def take_over(self) -> None:
        """Record that the current cap was set by an earlier xtc, and must be restored."""
        self._untouched = self._uncapped = False

    def begin_period(self) -> None:
        """Count a period: backoff and the memory of conflicts are measured in periods."""
        self._periods += 1

    def reclaim(self) -> None:
        """Forget foreign changes of the cap, and try again."""
        self._conflicts, self.yielded = [], False
        self.retry()

    def retry(self) -> None:
        """Clear the backoff after an operator request, which may have fixed the problem."""
        self._rests_until = 0

    def prepare(self) -> bool:
        """Open the actuator and capture the original; return whether caps can be written now."""
        if self._actuator is not None and self.original is not None:
            return True
        return not self.resting and self._guarded(_Work.OPEN, self._prepare) is not None

    def _prepare(self) -> bool:
        actuator = self._opened(self.original)
        if self.original is None:
            self.original = actuator.capture()
        if isinstance(self.problem, Gone):
            self.problem, self._failing = None, None  # it was reported gone, and exists again
        return True

    def view(self, now: Seconds) -> CapView | None:
        """Return the cap and its usage since the last view; None where they cannot be read."""
        self._settle()
        if self._actuator is None:
            return None
        return self._guarded(_Work.VIEW, lambda: self._view(now))

    def _settle(self) -> None:
        """Get the result of the last cap, where caps are applied asynchronously."""
        if self._actuator is None:
            return
        try:
            settled = self._actuator.settle()
        except ActuatorError as error:
            self._wanted, self._underway = None, False
            self._note_failure(_Work.SET, error)
            if isinstance(error, Overtaken):
                self.forget()  # nothing of ours is left: the original is captured again
            return
        if settled and self._underway:
            self._underway = False
            self._note_success(_Work.SET)

    def _view(self, now: Seconds) -> CapView:
        assert self._actuator is not None  # view() has checked
        cap = self._actuator.applied()
        self._note_conflict(cap)
        earlier = tuple(self._earlier)
        self._earlier.append(cap)
        usage = self._actuator.usage()
        at = now if usage.at is None else usage.at
        before = self._usage
        if before is None or at > before[0]:
            self._usage = (at, usage, self._periods)
        if before is None or at <= before[0] or usage.used is None or before[1].used is None:
            return CapView(cap)
        if self._periods > before[2] + 1:
            return CapView(cap)  # earlier usage says nothing about this period
        elapsed = at - before[0]
        used = CapFraction(max(0.0, (usage.used - before[1].used) / elapsed))
        grain = CapFraction(usage.grain / elapsed)
        late = self._later and _lowered(cap, earlier) and _overused(cap, used, grain)
        coarse = _is_coarse(cap, CapFraction(grain * max(1, len(usage.parts))))
        hottest = None if coarse else _hottest(before[1], usage, elapsed, used)
        return CapView(cap, used, hottest, _throttled(before[1], usage), usage.refill, late)

    def _note_conflict(self, cap: CapFraction | None) -> None:
        self._conflicts = [p for p in self._conflicts if p > self._periods - CONFLICT_MEMORY]
        if self._wanted is None or same_cap(cap, self._wanted):
            return
        self._wanted = None
        limits = self.limits
        if cap is not None or limits is None or not limits.volatile:
            self._conflicts.append(self._periods)
            self.yielded = len(self._conflicts) >= MAX_CONFLICTS

    def set(self, cap: CapFraction) -> bool:
        """Put a cap in force, unless it already is; the original must already be durable.

        Returns:
            Whether the cap is in force, or accepted and pending.
        """
        if self._actuator is None or self.original is None or self.yielded:
            return False
        if self.resting and not (self._refused is not None and cap < self._refused):
            return False
        if self._wanted is not None and same_cap(cap, self._wanted, WORTH_WRITING):
            self.rebalance()
            return True
        actuator = self._actuator
        if not self._stands_still(actuator):
            return False
        self._wanted = self._guarded(_Work.SET, lambda: actuator.apply(cap))
        self._refused = cap if isinstance(self.problem, Admission) and not self._wanted else None
        self._underway = self._wanted is not None
        if self._underway and self._failing is _Work.RELEASE:
            self.problem, self._failing = None, None  # under control again: nothing to release
        self._settle()
        self._later = self._underway
        return self._wanted is not None

    def touch(self) -> None:
        """Record that something other than a cap is written now, which release must undo."""
        self._untouched = False

    def _stands_still(self, actuator: Actuator) -> bool:
        """Whether a first cap may be written: the current settings are still the original."""
        if not self._uncapped:
            return True
        self._untouched = self._uncapped = False  # settings found from here on may be ours
        return bool(self._guarded(_Work.SET, lambda: self._is_original(actuator)))

    def _is_original(self, actuator: Actuator) -> bool:
        """Whether the original is in force; a new one must be durable before the first cap."""
        found = actuator.capture()
        same, self.original = found == self.original, found
        return same

    def rebalance(self) -> None:
        """Redistribute the cap in force by need; do nothing without one.

        A volatile cap that disappeared is set again: the actuator decides this.
        """
        actuator = self._actuator
        if actuator is None or self.limits is None or self.yielded or self.resting:
            return
        if self._wanted is None and not self.limits.volatile:
            return
        divided = self._guarded(_Work.SET, actuator.rebalance)
        if divided is not None:
            self._wanted = divided
            self._note_success(_Work.SET)

    def release(self) -> bool:
        """Restore the original settings; return whether that is done (or the router gone)."""
        original = self.original
        self._wanted, self._underway = None, False  # caps found now come from the release
        if original is None or self._untouched:
            self.forget()
            return True
        done = self._guarded(_Work.RELEASE, lambda: self._restore(original))
        if done is None and not isinstance(self.problem, Gone):
            return False
        self.problem, self._failing = None, None
        self.forget()
        return True

    def _restore(self, original: Original) -> bool:
        actuator = self._opened(original)
        if self._uncapped:
            original = actuator.capture()  # a cap that another process set in between stays
        actuator.restore(original)
        return True

    def _opened(self, original: Original | None) -> Actuator:
        """Return the actuator, opening it if needed: it knows about pending caps."""
        if self._actuator is None:
            actuator = self._open(self.spec, original)
            self.limits, self._actuator = actuator.limits, actuator
            self.weights = actuator.weights if isinstance(actuator, Weighted) else None
        return self._actuator

    def forget(self) -> None:
        """Start from scratch: the next one opened may be another router, or changed by others."""
        self._close()
        self.original, self._untouched, self._uncapped = None, True, True
        self._conflicts, self.yielded = [], False
        self._earlier.clear()

    def _close(self) -> None:
        self._actuator, self.limits, self._wanted, self._usage = None, None, None, None
        self.weights = None
        self._underway = False

    def _guarded(self, work: _Work, call: Callable[[], T]) -> T | None:
        """Carry out a call; an error becomes the problem until the same operation succeeds."""
        try:
            result = call()
        except ActuatorError as error:
            self._note_failure(work, error)
            return None
        if work is not _Work.SET:  # a cap may be accepted now and fail later: see _settle
            self._note_success(work)
        return result

    def _note_success(self, work: _Work) -> None:
        if work is not _Work.VIEW:
            self._failures, self._rests_until = 0, 0
        if self._failing is work:
            self.problem, self._failing = None, None

    def _note_failure(self, work: _Work, error: ActuatorError) -> None:
        """Store the error and back off; reading continues: the ladder counts missing samples."""
        self.problem, self._failing = error, work
        if isinstance(error, Gone):
            self._close()
        if work is _Work.VIEW:
            return
        tries = 2 ** min(self._failures, 10)
        self._failures += 1
        rest = MAX_BACKOFF if isinstance(error, Permanent) else min(tries, MAX_BACKOFF)
        self._rests_until = self._periods + rest


def same_cap(one: CapFraction | None, other: CapFraction | None, within: float = SAME_CAP) -> bool:
    """Whether two caps are the same within the precision of a read-back."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= within * max(one, other)


def _lowered(cap: CapFraction | None, earlier: Iterable[CapFraction | None]) -> bool:
    """Whether a cap is lower than earlier ones by enough to explain overuse.

    A steady cap cannot be late: what a small quota grants beyond it is the kernel's granularity.
    """
    return cap is not None and any(one is None or one > OVERUSED * cap for one in earlier)


def _overused(cap: CapFraction | None, used: CapFraction, grain: CapFraction) -> bool:
    """Whether usage exceeds a cap by more than the granularity of CPU time."""
    return cap is not None and used > max(OVERUSED * cap, cap + COARSE * grain)


def _is_coarse(cap: CapFraction | None, grain: CapFraction) -> bool:
    """Whether CPU time is counted too coarsely to measure the usage of a cap."""
    return cap is not None and cap < COARSE * grain


def _hottest(before: CpuUsage, after: CpuUsage, elapsed: float, used: CapFraction) -> CapFraction:
    """Return n times the CPUs that the busiest of n parts used; the total if there is one part.

    If parts were added or removed in between, all count as one.
    """
    parts = len(after.parts)
    if not parts or parts != len(before.parts):
        return used
    each = [new - old for old, new in zip(before.parts, after.parts, strict=True)]
    return used if min(each) < 0 else CapFraction(parts * max(each) / elapsed)


def _throttled(before: CpuUsage, after: CpuUsage) -> float | None:
    """Return the share of its periods in which the cap stopped the router."""
    if before.throttled is None or after.throttled is None:
        return None
    throttled = max(0, after.throttled - before.throttled)
    if before.periods is None or after.periods is None or after.periods <= before.periods:
        return float(throttled > 0)
    return min(1.0, throttled / (after.periods - before.periods))
