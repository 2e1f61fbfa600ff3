"""Limits the events that a host may cause: bursts of a kind, few in the long run; counts the rest.

The reports of a host and the traffic to its routers cause events. Without a limit one host could
fill the disk, and hide the events of all others.
"""

from typing import Final

from policer.token_bucket import Buckets

MANY: Final = 100.0
"""Events of one kind that a host may cause in a burst."""
SOME_PER_S: Final = 1 / 60
"""The same in the long run."""
AGAIN_S: Final = 600.0
"""A repeated event about the same router is noted again after this time."""
MOST_ROUTERS: Final = 1000
"""Limit of the remembered routers: a daemon can make up names."""


class EventLimit:
    """The limit of one host."""

    def __init__(self) -> None:
        self._repeated = Buckets(1 / AGAIN_S, 1.0, most=MOST_ROUTERS)
        self._any = Buckets(SOME_PER_S, MANY)
        self._left_out: dict[str, int] = {}
        self.left_out = 0
        """Events left out in total."""

    def repeated(self, now: float, kind: str, vr: str | None) -> bool:
        """Whether an event of this kind about this router was noted recently."""
        return self._repeated.wait(now, f"{kind} {vr}") > 0

    def admits(self, now: float, kind: str) -> bool:
        """Whether another event of a kind may be noted; if not, it counts as left out."""
        if not self._any.wait(now, kind):
            return True
        self._left_out[kind] = self._left_out.get(kind, 0) + 1
        self.left_out += 1
        return False

    def left_out_before(self, kind: str) -> int:
        """Return how many events of a kind were left out since the last call."""
        return self._left_out.pop(kind, 0)
