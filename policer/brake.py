"""Stops all ladders when too many routers would be punished at once: then the policer is to blame.

A wrong capacity, a model of another machine or a bad evidence rule shows as a fleet of culprits.
Pure; what is punished already stays, and nothing climbs until an operator, or time, lets it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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

    def after(self, now: float, climbs: int) -> "Brake":
        """Return the brake after so many more routers took the first step of their ladders.

        A router counts once (`policer.state.Round.convicted`): one that climbs three steps is
        one culprit, and no sign of a mistake.
        """
        return Brake((*self._recent(now), *[now] * climbs))

    def on(self, now: float, routers: int) -> bool:
        """Whether nothing may climb now."""
        return len(self._recent(now)) > max(ALWAYS, SHARE * routers)

    def _recent(self, now: float) -> Sequence[float]:
        return [at for at in self.climbs if now - at < WINDOW_S]
