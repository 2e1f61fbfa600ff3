"""Until when contracts were counted that follow their routers: two hosts may tell of one instant.

A contract is on one host at a time, but each host's ticks are of periods by its own clock: the last
one of a router's old host and the first one of its new host may overlap.
"""

from policer.recording.stretch import ADRIFT_S, BACK_S, LONGEST_S, Stretch

LATEST_S = LONGEST_S + ADRIFT_S
"""No tick tells of what was longer ago."""


class Counted:
    """The end of what was counted of each such contract; all hosts of one recorder share it."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def share(self, contract: str, stretch: Stretch) -> float:
        """Return which share of a stretch is not counted yet, and take it to be counted."""
        until = self._until.get(contract, 0.0)
        if until > stretch.end + BACK_S:  # the time of day was wrong before
            until = 0.0
        self._until[contract] = max(until, stretch.end)
        rest = stretch.end - max(until, stretch.begin)
        return max(0.0, rest / (stretch.end - stretch.begin))

    def forget_old(self, wall: float) -> None:
        """Forget what no tick that is still to come can tell of, at a time of day."""
        oldest = wall - LATEST_S
        self._until = {name: until for name, until in self._until.items() if until > oldest}
