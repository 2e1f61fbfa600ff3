"""Controls one router's floor: its weight is captured, made durable, and written on change only.

Errors of a weight are reported, and never prevent a cap from being written.
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
from xtc.manager.cap import CapController
from xtc.spec import Original, Scale

RESTS: Final = 6
"""Checks that are skipped after a weight failed: a minute, at a period of 1 s."""
UNBOUNDED: Final = CapFraction(math.inf)


class FloorController:
    """The weight of one router."""

    def __init__(self, controller: CapController, mode: str | int) -> None:
        self.mode = mode
        """`auto`, `keep`, or a fixed weight."""
        self.need: CapFraction | None = None
        """CPUs that the setpoint needs; None while that is not known."""
        self.standing: int | None = None
        """The weight before xtc; None while it is not known."""
        self.weight: int | None = None
        """The weight in force, as far as it is known."""
        self.short = ""
        """Why the floor does not cover the need."""
        self.foreign = ""
        """That another process changed the weight, so that it is left alone."""
        self._controller = controller
        self._weights: Weights | None = None
        self._target: tuple[Unit, float] | None = None
        """Unit and setpoint of the need."""
        self._lease: Lease | None = None
        """The last lease checked."""
        self._wanted: int | None = None
        self._written: int | None = None
        """The last weight that this daemon wrote."""
        self._fresh = False
        """Whether the weight was just claimed, and not written yet."""
        self._problem: ActuatorError | None = None
        self._rests = 0
        """Checks to skip after a failure."""

    @property
    def problem(self) -> str:
        """Why the router has no floor, or none that covers its setpoint."""
        failed = "" if self._problem is None else str(self._problem)
        return self.foreign or failed or self.short

    @property
    def scale(self) -> Scale | None:
        """The weights that the platform accepts; None where it accepts none, or is not open."""
        weights = self._controller.weights
        return None if weights is None else weights.scale

    @property
    def claimed(self) -> bool:
        """Whether the original has a weight, which release restores."""
        return self._standing_in(self._controller.original) is not None

    @property
    def pending(self) -> bool:
        """Whether a weight waits to be written."""
        return self._wanted is not None and self._wanted != self._written

    @property
    def terms(self) -> tuple[object, ...]:
        """All inputs of a decision on the weight; equal inputs give the same decision."""
        return self.need, self.standing, self.may_weigh, self.mode

    @property
    def may_weigh(self) -> bool:
        """Whether xtc may change the weight now."""
        resting = self._rests > 0 or self.foreign != ""
        return self.mode != KEEP and self.scale is not None and not resting

    def is_due(self, lease: Lease, sample: Sample | None, *, turn: bool) -> bool:
        """Whether to check its need: in its turn, or as soon as a period adds information."""
        if self.mode == KEEP:
            return turn and self.claimed
        if lease is not self._lease:
            self._lease = lease
            turn = turn or self._target != (lease.unit, lease.target)
        return turn or self._learns(lease, sample)

    def _learns(self, lease: Lease, sample: Sample | None) -> bool:
        """Whether a period shows the cost of packets, or that a floor is too low for its router."""
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
        """Learn what the setpoint needs from a period."""
        self._retarget(lease)
        counted = None if sample is None else sample.counted_in(lease.unit)
        if counted is None or counted.used is None:
            return
        need = need_of(counted.used, counted.throughput, lease.target, most)
        if need is not None:
            self.need = noted(self.need, need)

    def _retarget(self, lease: Lease) -> None:
        """Carry the need over to another setpoint; in another unit it is learned again."""
        before, self._target = self._target, (lease.unit, lease.target)
        if before is None or before == self._target or self.need is None:
            return
        ratio = lease.target / before[1]
        self.need = CapFraction(self.need * ratio) if before[0] is lease.unit else None

    def look(self) -> None:
        """Check the current weight: one that another process changed is left alone."""
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
            self.foreign = f"another process set its weight to {found}: xtc does not change it"
            self._leave(weights)
        self.weight, self._problem = found, None
        original = self._standing_in(self._controller.original)
        self.standing = found if original is None else original

    def _leave(self, weights: Weights) -> None:
        """Give up the weight: release will not restore it."""
        self._wanted, self._written, self._fresh = None, None, False
        if self._controller.original is not None:
            self._controller.original = weights.disclaim(self._controller.original)

    def want(self, weight: int) -> None:
        """Decide on a weight; from here on the original contains the previous one."""
        weights = self._opened()
        if weights is None or self._controller.original is None:
            return
        if not self.claimed and weight == self.weight:
            return  # there is nothing to change
        self._guarded(lambda: self._claim(weights, weight))

    def _claim(self, weights: Weights, weight: int) -> None:
        assert self._controller.original is not None  # want() has checked
        self._fresh = self._fresh or not self.claimed
        self._controller.original = weights.claim(self._controller.original)
        self._wanted = weight

    def give_back(self) -> None:
        """Decide on the original weight, since none is wanted any longer."""
        standing = self._standing_in(self._controller.original)
        if standing is not None and self._opened() is not None:
            self._wanted = standing

    def carry_out(self) -> None:
        """Write the decided weight; the original must already be durable."""
        weights = self._opened()
        if weights is not None and self.pending:
            self._guarded(lambda: self._write(weights))

    def _write(self, weights: Weights) -> None:
        assert self._wanted is not None  # carry_out() has checked
        if self._fresh and weights.read() != self._standing_in(self._controller.original):
            self._leave(weights)  # changed just now: it is claimed again
            return
        self._controller.touch()
        weights.write(self._wanted)
        self.weight = self._written = self._wanted
        self._fresh = False
        if self.mode == KEEP:
            self._leave(weights)

    def rest(self) -> None:
        """Cancel decisions and forget written weights: what is found comes from a release."""
        self._wanted = self._written = None

    def reclaim(self) -> None:
        """Forget foreign changes of the weight, and failures."""
        self.foreign, self._problem, self._rests = "", None, 0

    def contended(self) -> float | None:
        """Return the share of time in which the router waited for a CPU; None where unknown."""
        weights = self._controller.weights
        return None if weights is None else weights.contended()

    def _opened(self) -> Weights | None:
        """Return the router's weights; a new object means another router, or a restart."""
        weights = self._controller.weights
        if weights is not self._weights:
            self._weights, self._fresh = weights, False
            self._wanted = self._written = self.standing = self.weight = None
            self.reclaim()
        return weights

    def _standing_in(self, original: Original | None) -> int | None:
        weights = self._controller.weights
        return None if weights is None or original is None else weights.standing(original)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Carry out an operation; an error becomes the problem and starts the backoff."""
        try:
            work()
        except Overtaken:
            if self._weights is not None:
                self._leave(self._weights)
        except ActuatorError as error:
            self._wanted = self._written = None
            if not isinstance(error, Gone):  # the cap's controller detects that
                self._problem, self._rests = error, RESTS
