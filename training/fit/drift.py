"""Change of the host's speed during a sweep, in figures for a report; pure.

A visit samples the host at one time. If the means of several visits of one cap differ by more than
the noise of their samples, the host's speed changed (`training.fit.levels`). If no change shows,
the upper limit says how large one could have been.
"""

from collections.abc import Sequence

import msgspec

from training.fit.means import VisitMean
from training.fit.points import Curve


class Variation(msgspec.Struct, frozen=True):
    """Spread of the visits of one cap; shares are of the cap's mean throughput."""

    speed: float
    """Standard deviation of the host's speed from one visit to another, noise taken off."""
    low: float
    high: float
    """Its 95 % interval; if no change is certain, one above ``high`` would have shown."""
    sure: bool
    """Whether the speed changed by more than chance explains."""
    trend: float
    """Change of the speed from the sweep's begin to its end."""
    trend_error: float
    """The standard error of that."""
    span: float
    """The largest distance between two visits of one cap, noise included."""
    caps: int
    """Caps that were visited more than once."""
    visits: int
    """Visits of those caps."""

    @property
    def drifts(self) -> bool:
        """Whether the trend is significant."""
        return abs(self.trend) > 2 * self.trend_error


def variation_of(means: Sequence[VisitMean], curve: Curve) -> Variation | None:
    """Return how the host's speed varied; None if no cap below the top was visited twice."""
    groups: dict[float, list[float]] = {}
    for one in means:
        if one.cap is not None and one.cap < curve.threshold and one.mean > 0:
            groups.setdefault(one.cap, []).append(one.mean)
    again = [visits for visits in groups.values() if len(visits) > 1]
    if not again or curve.speed is None:
        return None
    speed = curve.speed
    return Variation(
        speed=speed.sd,
        low=speed.low,
        high=speed.high,
        sure=speed.sure or speed.drifts,
        trend=speed.trend,
        trend_error=min(speed.trend_error, 1.0),
        span=max((max(visits) - min(visits)) * len(visits) / sum(visits) for visits in again),
        caps=len(again),
        visits=sum(map(len, again)),
    )
