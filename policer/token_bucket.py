"""Rate limits of clients and of kinds of events: token buckets; pure."""

from dataclasses import dataclass, field

MOST = 10_000
"""Limit of the buckets; beyond it, half of them are dropped."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


@dataclass(slots=True)
class Buckets:
    """One bucket for each key, initially full."""

    rate: float
    """Requests a second, in the long run."""
    burst: float
    """Requests in a burst."""
    most: int = MOST
    """Limit of the buckets: keys may be addresses, or names made up by others."""
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    """The most recently used bucket is the last."""

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self._buckets)

    def wait(self, now: float, key: str) -> float:
        """Take one request; return 0, or the seconds until one is available."""
        bucket = self._buckets.pop(key, None)
        if bucket is None:
            self._make_room(now)
            bucket = _Bucket(self.burst, now)
        self._buckets[key] = bucket
        gained = self.rate * max(0.0, now - bucket.at)
        bucket.left, bucket.at = min(self.burst, bucket.left + gained), now
        if bucket.left < 1.0:
            return (1.0 - bucket.left) / self.rate
        bucket.left -= 1.0
        return 0.0

    def _make_room(self, now: float) -> None:
        """Drop full buckets, which carry no information, and then the least recently used ones.

        Half of them are dropped in one go: a search for every new key would take too long.
        """
        if len(self._buckets) < self.most:
            return
        full_after = self.burst / self.rate
        left = sorted(
            (bucket.at, key)
            for key, bucket in self._buckets.items()
            if now - bucket.at < full_after
        )
        self._buckets = {key: self._buckets[key] for _, key in left[-(self.most // 2) :]}
