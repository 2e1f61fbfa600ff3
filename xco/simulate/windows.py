"""A model of TCP: windows that grow on delivery, halve on loss, and time out."""

import numpy as np

from xco.arrays import Flags, Floats

INITIAL_FRAMES = 10
"""RFC 6928."""
DUPLICATES = 4
"""Fewer frames than this in a window cannot give the three duplicate ACKs of a fast retransmit."""


class Windows:
    """Congestion windows of the flows that are TCP; arrays of shape (flows,), bytes.

    This is a model, not TCP. A round trip is one slot plus the flow's bytes in the ports. Losses
    are known at the end of their slot, in whole frames. Reno: slow start, one frame more per round
    trip, half on loss at most once per round trip, a timeout when most of a window is lost.
    Timeouts double until something arrives.
    """

    def __init__(self, windowed: Flags, *, frame: int, timeout_slots: int, most: int) -> None:
        """Take which flows are TCP, a frame's bytes, the least timeout, the largest window."""
        count = len(windowed)
        self._windowed, self._any = windowed, bool(windowed.any())
        self._frame, self._timeout, self._most = float(frame), timeout_slots, float(most)
        self._window = np.full(count, INITIAL_FRAMES * self._frame)
        self._threshold = np.full(count, self._most)
        self._in_ports = np.zeros(count)
        self._owed = np.zeros(count)
        self._resumes = np.zeros(count, np.int64)
        self._backoff = np.zeros(count, np.int64)
        self._halved = np.full(count, -1, np.int64)
        self.timeouts = np.zeros(count, np.int64)

    def room(self, slot: int) -> Floats:
        """Return how many bytes each flow may send now: no limit for flows that are not TCP."""
        if not self._any:
            return np.full(len(self._windowed), np.inf)
        room = np.where(self._resumes <= slot, np.maximum(self._window - self._in_ports, 0.0), 0.0)
        # A sender waits for room for a whole frame.
        room[room < self._frame] = 0.0
        return np.where(self._windowed, room, np.inf)

    def answered(self, slot: int, sent: Floats, delivered: Floats, dropped: Floats) -> None:
        """Update the windows with the outcome of a slot."""
        if not self._any:
            return
        self._in_ports = np.maximum(self._in_ports + sent - delivered - dropped, 0.0)
        self._owed += dropped
        lost = self._windowed & (self._owed >= self._frame)
        gone = np.where(lost, self._owed, 0.0)
        self._owed[lost] = 0.0
        timed_out = lost & (self._window - gone < DUPLICATES * self._frame)
        self._time_out(slot, timed_out)
        self._halve(slot, lost & ~timed_out)
        self._grow(self._windowed & ~lost & (delivered > 0), delivered)

    def _time_out(self, slot: int, flows: Flags) -> None:
        """Restart after the timeout, which doubles at most six times (RFC 6298)."""
        self._threshold[flows] = np.maximum(self._window[flows] / 2, 2 * self._frame)
        self._window[flows] = self._frame
        self._resumes[flows] = slot + 1 + (self._timeout << self._backoff[flows])
        self._backoff[flows] = np.minimum(self._backoff[flows] + 1, 6)
        self.timeouts += flows

    def _halve(self, slot: int, flows: Flags) -> None:
        flows = flows & (self._halved < slot - 1)
        self._threshold[flows] = np.maximum(self._window[flows] / 2, 2 * self._frame)
        self._window[flows] = self._threshold[flows]
        self._halved[flows] = slot

    def _grow(self, flows: Flags, delivered: Floats) -> None:
        slow_start = self._window < self._threshold
        growth = np.where(slow_start, delivered, self._frame * delivered / self._window)
        self._window = np.where(flows, np.minimum(self._window + growth, self._most), self._window)
        self._backoff[flows] = 0
