"""Pacing against absolute deadlines, as pure arithmetic."""

from typing import Final

MAX_LAG_S: Final = 0.1


class Pacer:
    """Counts the units due at a constant rate; the mean rate is exact, delays are caught up.

    After a stop longer than ``max_lag`` seconds, the rest is dropped, to bound the burst.
    """

    def __init__(self, rate: float, now: float, max_lag: float = MAX_LAG_S) -> None:
        """Start with nothing due; ``rate`` in units/s, ``now`` in seconds of a monotonic clock."""
        self._rate, self._start, self._sent, self._max_lag = rate, now, 0, max_lag

    def due(self, now: float) -> int:
        """Return the units due at this instant and count them as done."""
        owed = int((now - self._start) * self._rate) - self._sent
        limit = int(self._rate * self._max_lag) + 1
        if owed > limit:
            self._restart(now)
            return limit
        self._sent += owed
        return owed

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate from this instant on."""
        self._rate = rate
        self._restart(now)

    def _restart(self, now: float) -> None:
        self._start, self._sent = now, 0
