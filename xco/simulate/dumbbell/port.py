"""A switch port as a fluid: a finite queue that marks above a threshold."""

from dataclasses import dataclass
from typing import Final

from xco.arrays import Floats

PACKET_BITS: Final = 12_000.0
"""1,500 bytes."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What became of one step's bits, each of shape (senders,)."""

    kept: Floats
    marked: Floats
    """Of those kept."""
    lost: Floats
    left: float
    """Bits of all senders that left the port, of this step or earlier ones."""


class Port:
    """A port with a finite queue; what meets a queue above the threshold is marked, or dropped.

    RED with both thresholds at one place: for transports without ECN the queue ends there. Within
    a step it moves in a straight line, so that the marked share is that of the time above the
    threshold. Loss and marks are in proportion to what was sent.
    """

    def __init__(self, capacity_bps: float, buffer_bits: float, mark_bits: float) -> None:
        """Take bits/s, the size of the queue, and the threshold of marks in bits."""
        self._capacity_bps, self._buffer, self._threshold = capacity_bps, buffer_bits, mark_bits
        self.queue = 0.0
        """Bits that wait."""

    @property
    def delay_s(self) -> float:
        """The time that a new arrival waits."""
        return self.queue / self._capacity_bps

    def take(self, sent: Floats, step_s: float, capable: Floats | None = None) -> Passed:
        """Take the bits that each sender sends in a step.

        Args:
            sent: bits, shape (senders,).
            step_s: the step.
            capable: 1 for senders whose packets may be marked, 0 for the others; None if all may.
        """
        drained, before = self._capacity_bps * step_s, self.queue
        total = float(sent.sum())
        share = self._share_above(before, before + total - drained)
        arriving = sent
        if capable is not None and share > 0.0:
            arriving = self._without_excess(sent, capable, before + total - drained)
            total = float(arriving.sum())
        after = max(before + total - drained, 0.0)
        self.queue = min(after, self._buffer)
        left = before + total - after
        if after > self._buffer:
            arriving = arriving * (1.0 - (after - self._buffer) / total)
        marked = arriving * share if capable is None else arriving * (share * capable)
        return Passed(arriving, marked, sent - arriving, left)

    def _without_excess(self, sent: Floats, capable: Floats, after: float) -> Floats:
        """Return what RED takes, if the queue would be at `after` with all of it."""
        incapable = sent * (1.0 - capable)
        dropped = min(after - self._threshold, float(incapable.sum()))
        return sent - incapable * (max(0.0, dropped) / max(1.0, float(incapable.sum())))

    def _share_above(self, before: float, after: float) -> float:
        """Return the share of a step in which the queue is above the threshold."""
        low, high = min(before, after), min(max(before, after), self._buffer)
        low = max(min(low, high), 0.0)
        if high <= self._threshold:
            return 0.0
        return 1.0 if low >= self._threshold else (high - self._threshold) / (high - low)
