"""Stops all ladders when too many routers would be punished at once: then the policer is to blame.

A wrong capacity, a model of another machine or a bad evidence rule shows as a fleet of culprits.
Such a mistake does not go away by itself, so the brake stays on for as long as they are that many.
Pure; what is punished already stays, and nothing climbs until an operator, or time, lets it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from policer.contract import Contract
from policer.state import UNPROMISED, HostState, ladder_of

WINDOW_S = 60.0
"""How far back convictions count."""
SHARE = 0.1
"""More than this share of the fleet's routers within the window is a mistake."""
ALWAYS = 3
"""So few are never one."""


@dataclass(frozen=True, slots=True)
class Brake:
    """The convictions of the last minute; instants of the policer's clock."""

    climbs: tuple[float, ...] = ()
    on: bool = False
    """Whether nothing may climb."""

    def after(self, now: float, climbs: int) -> "Brake":
        """Return the brake after so many more routers took the first step of their ladders.

        A router counts once (`policer.state.Round.convicted`): one that climbs three steps is
        one culprit, and no sign of a mistake.
        """
        return replace(self, climbs=(*self._recent(now), *[now] * climbs))

    def looked(self, now: float, routers: int, guilty: int) -> "Brake":
        """Return the brake put on or let go.

        Convictions within a minute put it on. It is let go when they are over and no more than
        as many are guilty; routers that became so one by one do not put it on.

        Args:
            now: seconds of the policer's clock.
            routers: of the whole fleet.
            guilty: how many of them stand guilty now (`culprits`).
        """
        most = max(ALWAYS, SHARE * routers)
        on = len(self._recent(now)) > most or (self.on and guilty > most)
        return self if on is self.on else replace(self, on=on)

    def _recent(self, now: float) -> Sequence[float]:
        return [at for at in self.climbs if now - at < WINDOW_S]


def culprits(contracts: Mapping[str, Contract], reported: Collection[str], state: HostState) -> int:
    """Return how many routers of a host stand guilty, of those that it reports.

    One without a ladder does not count: it is never convicted either.
    """
    return sum(
        known.evidence.guilty and vr in reported and ladder_of(contracts.get(vr, UNPROMISED)) != ()
        for vr, known in state.routers.items()
    )
