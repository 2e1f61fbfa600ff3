"""Keeps one router's floor: its weight is captured and durable first, written on change alone.

What goes wrong with a weight is told, and never keeps a cap from being written.
"""

import math
from collections.abc import Callable
from typing import Final

from common.setpoint import Unit
from common.units import CapFraction
from xtc.actuator.weights import Weights
from xtc.control.floors import COVERED, KEEP, need_of, noted
from xtc.control.law import Sample
from xtc.errors import ActuatorError, Gone, Overtaken
from xtc.lease import Lease
from xtc.manager.cap import Keeper
from xtc.spec import Original, Scale

RESTS: Final = 6
"""Looks that are left out after a weight failed: a minute, at a period of 1 s."""
UNBOUNDED: Final = CapFraction(math.inf)


class FloorKeeper:
    """The weight of one router."""

    def __init__(self, keeper: Keeper, mode: str | int) -> None:
        self.mode = mode
        """`auto`, `keep`, or the weight to hold."""
        self.need: CapFraction | None = None
        """CPUs that the setpoint needs; None while that is not known."""
        self.standing: int | None = None
        """The weight before xtc; None while it is not known."""
        self.weight: int | None = None
        """In force, as far as it is known."""
        self.short = ""
        """Why the need is not backed."""
        self.foreign = ""
        """That somebody else changed the weight, so that it is left alone."""
        self._keeper = keeper
        self._weights: Weights | None = None
        self._target: tuple[Unit, float] | None = None
        """Unit and setpoint that the need is of."""
        self._lease: Lease | None = None
        """The one that was looked at last."""
        self._wanted: int | None = None
        self._written: int | None = None
        """What was written last, by this daemon."""
        self._fresh = False
        """Whether the weight was claimed just now, and not written yet."""
        self._problem: ActuatorError | None = None
        self._rests = 0
        """Looks to be left out after a failure."""

    @property
    def problem(self) -> str:
        """Why the router has no floor, or none that backs its setpoint."""
        failed = "" if self._problem is None else str(self._problem)
        return self.foreign or failed or self.short

    @property
    def scale(self) -> Scale | None:
        """The weights that the platform takes; None where it takes none, or is not open."""
        weights = self._keeper.weights
        return None if weights is None else weights.scale

    @property
    def claimed(self) -> bool:
        """Whether the original has a weight, which release puts back."""
        return self._standing_in(self._keeper.original) is not None

    @property
    def pending(self) -> bool:
        """Whether a weight is to be written."""
        return self._wanted is not None and self._wanted != self._written

    @property
    def terms(self) -> tuple[object, ...]:
        """All that a decision on the weight goes by; while it is the same, the decision is too."""
        return self.need, self.standing, self.may_weigh, self.mode

    @property
    def may_weigh(self) -> bool:
        """Whether the weight is xtc's to change now."""
        resting = self._rests > 0 or self.foreign != ""
        return self.mode != KEEP and self.scale is not None and not resting

    def is_due(self, lease: Lease, sample: Sample | None, *, turn: bool) -> bool:
        """Whether its need is to be looked at: in its turn, or as soon as a period tells more."""
        if self.mode == KEEP:
            return turn and self.claimed
        if lease is not self._lease:
            self._lease = lease
            turn = turn or self._target != (lease.unit, lease.target)
        return turn or self._learns(lease, sample)

    def _learns(self, lease: Lease, sample: Sample | None) -> bool:
        """Whether a period tells what packets cost, or that a floor is too low for its router."""
        if self.need is None:
            return sample is not None and bool(sample.throughput)
        counted = None if sample is None else sample.counted_in(lease.unit)
        if counted is None or counted.used is None:
            return False
        if counted.throughput >= COVERED * lease.target:
            return False
        need = need_of(counted.used, counted.throughput, lease.target, UNBOUNDED)
        return need is not None and need > self.need

    def observe(self, lease: Lease, sample: Sample | None, most: CapFraction) -> None:
        """Learn what the setpoint needs from what a period showed."""
        self._retarget(lease)
        counted = None if sample is None else sample.counted_in(lease.unit)
        if counted is None or counted.used is None:
            return
        need = need_of(counted.used, counted.throughput, lease.target, most)
        if need is not None:
            self.need = noted(self.need, need)

    def _retarget(self, lease: Lease) -> None:
        """Take the need along to another setpoint; one in another unit is learned anew."""
        before, self._target = self._target, (lease.unit, lease.target)
        if before is None or before == self._target or self.need is None:
            return
        ratio = lease.target / before[1]
        self.need = CapFraction(self.need * ratio) if before[0] is lease.unit else None

    def look(self) -> None:
        """Look at what stands there: a weight that somebody else changed is theirs."""
        weights = self._opened()
        if weights is None or self.mode == KEEP or self.foreign:
            return
        self._rests = max(0, self._rests - 1)
        if self._rests == 0:
            self._guarded(lambda: self._look(weights))

    def _look(self, weights: Weights) -> None:
        found = weights.read()
        changed = self._written is not None and found != self._written
        if changed:
            self.foreign = f"somebody else set its weight to {found}: it is left to them"
            self._leave(weights)
        self.weight, self._problem = found, None
        original = self._standing_in(self._keeper.original)
        self.standing = found if original is None else original

    def _leave(self, weights: Weights) -> None:
        """Let go of the weight: release will not put it back."""
        self._wanted, self._written, self._fresh = None, None, False
        if self._keeper.original is not None:
            self._keeper.original = weights.disclaim(self._keeper.original)

    def want(self, weight: int) -> None:
        """Decide on a weight; the original has what stood there from here on."""
        weights = self._opened()
        if weights is None or self._keeper.original is None:
            return
        if not self.claimed and weight == self.weight:
            return  # nothing is to be changed
        self._guarded(lambda: self._claim(weights, weight))

    def _claim(self, weights: Weights, weight: int) -> None:
        assert self._keeper.original is not None  # want() has looked
        self._fresh = self._fresh or not self.claimed
        self._keeper.original = weights.claim(self._keeper.original)
        self._wanted = weight

    def give_back(self) -> None:
        """Decide on the weight that stood there, since none is wanted any longer."""
        standing = self._standing_in(self._keeper.original)
        if standing is not None and self._opened() is not None:
            self._wanted = standing

    def carry_out(self) -> None:
        """Write what was decided; the original must be durable by now."""
        weights = self._opened()
        if weights is not None and self.pending:
            self._guarded(lambda: self._write(weights))

    def _write(self, weights: Weights) -> None:
        assert self._wanted is not None  # carry_out() has looked
        if self._fresh and weights.read() != self._standing_in(self._keeper.original):
            self._leave(weights)  # changed just now: it is claimed anew
            return
        self._keeper.touch()
        weights.write(self._wanted)
        self.weight = self._written = self._wanted
        self._fresh = False
        if self.mode == KEEP:
            self._leave(weights)

    def rest(self) -> None:
        """Decide on nothing, and know of nothing written: what is found is a release's doing."""
        self._wanted = self._written = None

    def reclaim(self) -> None:
        """Forget that somebody else changed the weight, and what failed."""
        self.foreign, self._problem, self._rests = "", None, 0

    def contended(self) -> float | None:
        """Return the share of time in which the router waited for a CPU; None where unknown."""
        weights = self._keeper.weights
        return None if weights is None else weights.contended()

    def _opened(self) -> Weights | None:
        """Return what weighs the router; another one than before is another router's, or run."""
        weights = self._keeper.weights
        if weights is not self._weights:
            self._weights, self._fresh = weights, False
            self._wanted = self._written = self.standing = self.weight = None
            self.reclaim()
        return weights

    def _standing_in(self, original: Original | None) -> int | None:
        weights = self._keeper.weights
        return None if weights is None or original is None else weights.standing(original)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Carry out work on the weight; an error becomes the problem, and lets it rest."""
        try:
            work()
        except Overtaken:
            if self._weights is not None:
                self._leave(self._weights)
        except ActuatorError as error:
            self._wanted = self._written = None
            if not isinstance(error, Gone):  # that is for the keeper to find
                self._problem, self._rests = error, RESTS
