"""Senders of the dumbbell: UDP, TCP with and without ECN, and DCTCP, each as a fluid."""

import math
from enum import StrEnum
from typing import Final

import numpy as np

from xco.arrays import Flags, Floats
from xco.simulate.dumbbell.port import PACKET_BITS, Passed

INITIAL: Final = 10 * PACKET_BITS
"""RFC 6928."""
LEAST: Final = 2 * PACKET_BITS
FAST_RETRANSMIT: Final = 4 * PACKET_BITS
"""A window below this gives no three duplicate ACKs."""
LARGEST: Final = 1_000 * PACKET_BITS
"""The receive window."""
GAIN: Final = 1 / 16
"""DCTCP's g (RFC 8257)."""
DOUBLINGS: Final = 6
FULL: Final = 0.9
"""A window of which less than this is used does not grow (RFC 7661)."""


class Kind(StrEnum):
    """A transport."""

    UDP = "udp"
    TCP = "tcp"
    ECN = "ecn"
    """TCP that halves its window at marks as at losses (RFC 3168)."""
    DCTCP = "dctcp"


class Senders:
    """The transports behind the limiters; arrays of shape (senders,), bits.

    A model, not TCP: Reno's window, one decision a round trip, losses and marks known a step later.
    A whole packet must be lost or marked to be noticed.
    """

    def __init__(self, kinds: list[Kind], *, rto_s: float) -> None:
        """Take the senders' transports and the least retransmission timeout."""
        count = len(kinds)
        self._windowed = np.array([kind is not Kind.UDP for kind in kinds])
        self._ecn = np.array([kind is Kind.ECN for kind in kinds])
        self._dctcp = np.array([kind is Kind.DCTCP for kind in kinds])
        self._any, self._any_dctcp = bool(self._windowed.any()), bool(self._dctcp.any())
        self._rto_s = rto_s
        self._window, self._threshold = np.full(count, INITIAL), np.full(count, LARGEST)
        self._lost, self._marked, self._kept = np.zeros(count), np.zeros(count), np.zeros(count)
        self._alpha = np.ones(count)
        self._round_ends, self._resumes = np.zeros(count), np.full(count, -math.inf)
        self._backoff = np.zeros(count)
        self._full: Flags = np.zeros(count, np.bool_)
        self._noticed = False
        """Whether a loss or mark waits for a decision."""

    def send(self, now: float, limit: Floats, active: Flags, step_s: float, rtt_s: float) -> Floats:
        """Return the bits of a step: what windows permit, at most what the limiters do.

        Args:
            now: seconds.
            limit: bits/s of each limiter, at most the link's.
            active: which senders have something to send.
            step_s: the step.
            rtt_s: the round trip, with the queue.
        """
        allowed = limit * (active * step_s)
        if not self._any:
            return allowed
        by_window = np.where(self._resumes <= now, self._window * step_s / rtt_s, 0.0)
        sent = np.where(self._windowed, np.minimum(allowed, by_window), allowed)
        self._full = self._windowed & (sent > FULL * by_window)
        return sent

    def hear(self, now: float, passed: Passed, rtt_s: float, *, marks_seen: bool) -> None:
        """Update the windows with what became of a step."""
        if not self._any:
            return
        self._lost += np.where(self._windowed, passed.lost, 0.0)
        self._kept += passed.kept
        if marks_seen:
            self._marked += passed.marked
        self._grow(passed.kept)
        self._noticed = self._noticed or bool(passed.lost.any() or self._marked.any())
        ended = self._windowed & (now >= self._round_ends)
        if not (self._noticed or self._any_dctcp) or not ended.any():
            return
        self._reduce(now, ended)
        self._noticed = bool(self._lost.any())
        self._round_ends[ended] = now + rtt_s
        for counted in (self._marked, self._kept):
            counted[ended] = 0.0

    def _grow(self, kept: Floats) -> None:
        slow_start = self._window < self._threshold
        growth = np.where(slow_start, kept, PACKET_BITS * kept / self._window)
        self._window = np.minimum(self._window + np.where(self._full, growth, 0.0), LARGEST)

    def _reduce(self, now: float, ended: Flags) -> None:
        """Decide once a round trip."""
        lost = ended & (self._lost >= PACKET_BITS)
        marked = ended & (self._marked >= PACKET_BITS) & ~lost
        share = np.divide(
            self._marked, self._kept, out=np.zeros_like(self._kept), where=self._kept > 0
        )
        heard = ended & self._dctcp & (self._kept > 0)
        self._alpha[heard] += GAIN * (share - self._alpha)[heard]
        timed_out = lost & ((self._window < FAST_RETRANSMIT) | (self._lost > self._window / 2))
        factor = np.where(lost | self._ecn, 0.5, 1.0 - self._alpha / 2)
        cut = lost | (marked & (self._ecn | self._dctcp))
        self._window[cut] = np.maximum((self._window * factor)[cut], LEAST)
        self._threshold[cut] = self._window[cut]
        self._window[timed_out] = PACKET_BITS
        self._wait(now, timed_out)
        self._lost[lost] = 0.0

    def _wait(self, now: float, timed_out: Flags) -> None:
        """Wait for the timeout, twice as long if the last one was just over (RFC 6298)."""
        again = now - self._resumes[timed_out] <= self._rto_s
        backoff = np.where(again, np.minimum(self._backoff[timed_out] + 1, DOUBLINGS), 0.0)
        self._backoff[timed_out] = backoff
        self._resumes[timed_out] = now + self._rto_s * 2.0**backoff
