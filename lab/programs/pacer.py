"""How much is due by now: pacing against absolute deadlines, as pure arithmetic."""

from typing import Final

MAX_LAG_S: Final = 0.1


class Pacer:
    """Counts what a worker of a constant rate owes; the mean rate is exact, lags are made good.

    Who was stopped for longer than ``max_lag`` seconds forgets the rest: no endless burst.
    """

    def __init__(self, rate: float, now: float, max_lag: float = MAX_LAG_S) -> None:
        """Start owing nothing; ``rate`` in units/s, ``now`` in seconds of any monotonic clock."""
        self._rate, self._start, self._sent, self._max_lag = rate, now, 0, max_lag

    def due(self, now: float) -> int:
        """Return the units owed at this instant and count them as done."""
        owed = int((now - self._start) * self._rate) - self._sent
        limit = int(self._rate * self._max_lag) + 1
        if owed > limit:
            self._restart(now)
            return limit
        self._sent += owed
        return owed

    def set_rate(self, rate: float, now: float) -> None:
        """Owe at another rate from this instant on."""
        self._rate = rate
        self._restart(now)

    def _restart(self, now: float) -> None:
        self._start, self._sent = now, 0
