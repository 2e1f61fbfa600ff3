"""How often each client, or each kind of event, may come: token buckets; pure."""

from dataclasses import dataclass, field

MOST = 10_000
"""Buckets that are kept: half of them are forgotten where there are more."""


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
    most: int = MOST
    """Buckets that are kept: keys may be addresses, or names that others make up."""
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    """The one that was used last is the last."""

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._buckets)

    def wait(self, now: float, key: str) -> float:
        """Take one request out; return 0, or the seconds after which there will be one."""
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
        """Forget buckets that are full again, which say nothing, and else those used longest ago.

        Half of them go at once: to look through all for every new key would take too long.
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
