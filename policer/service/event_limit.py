"""Which events a host may cause: many of a kind at once, few in the long run; the rest is counted.

What a host reports, and what is sent to its routers, decides which events there are. Without a
limit one host could fill the disk, and push the events of all others out of sight.
"""

from typing import Final

from policer.token_bucket import Buckets

MANY: Final = 100.0
"""Events of one kind that a host may cause at once."""
SOME_PER_S: Final = 1 / 60
"""The same in the long run."""
AGAIN_S: Final = 600.0
"""The same words about the same router are noted again after so long."""
MOST_ROUTERS: Final = 1000
"""Routers whose words are remembered: a daemon can make up names."""


class EventLimit:
    """The limit of one host."""

    def __init__(self) -> None:
        self._repeated = Buckets(1 / AGAIN_S, 1.0, most=MOST_ROUTERS)
        self._any = Buckets(SOME_PER_S, MANY)
        self._left_out: dict[str, int] = {}
        self.left_out = 0
        """Events left out in all."""

    def repeated(self, now: float, kind: str, vr: str | None) -> bool:
        """Whether an event of this kind was noted of this router lately."""
        return self._repeated.wait(now, f"{kind} {vr}") > 0

    def admits(self, now: float, kind: str) -> bool:
        """Whether another event of a kind may be noted; it counts as left out where not."""
        if not self._any.wait(now, kind):
            return True
        self._left_out[kind] = self._left_out.get(kind, 0) + 1
        self.left_out += 1
        return False

    def left_out_before(self, kind: str) -> int:
        """Return how many of a kind were left out since this was last asked."""
        return self._left_out.pop(kind, 0)
