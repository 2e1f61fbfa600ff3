"""Bytes that wait in the hosts: per-flow queues, filled by applications."""

import numpy as np

from xco.arrays import Flags, Floats
from xco.simulate.traffic import Traffic
from xco.simulate.windows import Windows

BYTE = 1.0
"""Less than a byte is a rounding error, not a backlog."""


class Sources:
    """The queues of all flows in their hosts.

    Applications write whole messages into queues of limited size and wait while one is full, so
    hosts drop nothing. A greedy one keeps its queue full.
    """

    def __init__(
        self, traffic: Traffic, windows: Windows, *, slot_s: float, message: int, limit: Floats,
        seed: int,
    ) -> None:  # fmt: skip
        """Take the slot's length, a message's bytes, and each queue's limit in bytes."""
        self._greedy = np.isinf(traffic.rate_bps)
        pace = np.where(self._greedy, 0.0, traffic.rate_bps) * slot_s / 8
        self._pace, self._message = pace, float(message)
        self._limit = np.maximum(limit, 2.0 * message)
        self._owed = np.random.default_rng(seed).random(len(traffic)) * message
        self._windows = windows
        self.queued = np.zeros(len(traffic))
        self.offered = np.zeros(len(traffic))

    def waiting(self, slot: int) -> Floats:
        """Let the applications write, and return the bytes that each flow could send now."""
        self._owed += self._pace
        due = np.floor(self._owed / self._message)
        fits = np.floor((self._limit - self.queued) / self._message)
        written = np.where(
            self._greedy, self._limit - self.queued, np.minimum(due, fits) * self._message
        )
        # Bytes that did not fit are never written: the application delays its next message.
        self._owed -= due * self._message
        self.queued += written
        self.offered += written
        return np.minimum(self.queued, self._windows.room(slot))

    def sent(self, sent: Floats) -> None:
        """Subtract the bytes sent in a slot from the queues."""
        self.queued -= sent


def backlogged(waiting: Floats) -> Flags:
    """Return which flows have something to send, shape (flows,)."""
    some: Flags = waiting >= BYTE
    return some
