"""How often each token may ask: a token bucket for each; pure, time is a parameter."""

from dataclasses import dataclass, field

MOST = 10_000
"""Buckets that are kept; tokens are made by administrators, so that there are few."""


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

    def wait(self, now: float, key: str) -> float:
        """Take one request out; return 0, or the seconds after which there will be one."""
        bucket = self._buckets.get(key)
        if bucket is None:
            self._make_room(now)
            bucket = self._buckets[key] = _Bucket(self.burst, now)
        gained = self.rate * max(0.0, now - bucket.at)
        bucket.left, bucket.at = min(self.burst, bucket.left + gained), now
        if bucket.left < 1.0:
            return (1.0 - bucket.left) / self.rate
        bucket.left -= 1.0
        return 0.0

    def _make_room(self, now: float) -> None:
        """Forget buckets that are full again: they say nothing."""
        if len(self._buckets) >= MOST:
            full_after = self.burst / self.rate
            self._buckets = {k: b for k, b in self._buckets.items() if now - b.at < full_after}
