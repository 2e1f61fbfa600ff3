"""How often each client may ask: a token bucket for each; pure, time is a parameter."""

from dataclasses import dataclass, field

MOST = 10_000
"""Buckets that are kept: who did not ask for the longest time is forgotten first."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


@dataclass(slots=True)
class Buckets:
    """One bucket for each key, full at first."""

    rate: float
    """Requests a second, in the long run."""
    burst: float
    """Requests at once."""
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    """The one that was used last is the last."""

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._buckets)

    def wait(self, now: float, key: str) -> float:
        """Take one request out; return 0, or the seconds after which there will be one."""
        bucket = self._buckets.pop(key, None)
        if bucket is None:
            self._make_room()
            bucket = _Bucket(self.burst, now)
        self._buckets[key] = bucket
        gained = self.rate * max(0.0, now - bucket.at)
        bucket.left, bucket.at = min(self.burst, bucket.left + gained), now
        if bucket.left < 1.0:
            return (1.0 - bucket.left) / self.rate
        bucket.left -= 1.0
        return 0.0

    def _make_room(self) -> None:
        if len(self._buckets) >= MOST:
            del self._buckets[next(iter(self._buckets))]
