"""Stops ladders when too many routers would be punished at once: then the policer is to blame.

A wrong capacity, a model of another machine or a bad evidence rule shows as a fleet of culprits, or
as a host of them. Such a mistake does not go away by itself, so a brake stays on for as long as
they are that many. Only routers with a ladder count, and of one host only a few count for the
fleet: what one host says, or what its tenants do to each other, neither stops the others' ladders
nor keeps the fleet's brake from working. Pure; what is punished already stays.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policer.contracts.contract import Contract
from policer.decide.state import UNPROMISED, HostState, ladder_of

WINDOW_S = 60.0
"""How far back convictions count."""
SHARE = 0.1
"""More than this share of the fleet's routers within the window is a mistake."""
MAJORITY = 0.5
"""So is more than this share of one host's, of that host."""
ALWAYS = 3
"""So few are never one."""
OF_ONE_HOST = 2
"""Convictions of one host that count for the fleet at most."""


class Routers(NamedTuple):
    """The routers of a host that have a ladder."""

    all: int
    guilty: int
    """Of them, those that stand guilty now."""


@dataclass(frozen=True, slots=True)
class Brake:
    """The convictions of the last minute; instants of the policer's clock."""

    climbs: tuple[tuple[float, str], ...] = ()
    """When a router took its first step, and on which host."""
    on: bool = False
    """Whether nothing may climb anywhere."""
    hosts: frozenset[str] = field(default_factory=frozenset)
    """Hosts on which nothing may climb, whatever the fleet does."""

    def stops(self, host: str) -> bool:
        """Whether nothing may climb on a host."""
        return self.on or host in self.hosts

    def after(self, now: float, host: str, climbs: int) -> "Brake":
        """Return the brake after so many more routers of a host took their first step.

        A router counts once (`policer.decide.state.Round.convicted`): one that climbs three steps
        is one culprit, and no sign of a mistake.
        """
        recent = [(at, name) for at, name in self.climbs if now - at < WINDOW_S]
        return replace(self, climbs=(*recent, *[(now, host)] * climbs))

    def looked(self, now: float, fleet: Mapping[str, Routers]) -> "Brake":
        """Return the brake put on or let go, of the fleet and of each host.

        Convictions within a minute put it on. It is let go when they are over and no more than
        as many are guilty; routers that became so one by one do not put it on.

        Args:
            now: seconds of the policer's clock.
            fleet: what routers each host has.
        """
        recent = self._recent(now)
        hosts = frozenset(
            name
            for name, routers in fleet.items()
            if _too_many(
                recent.get(name, 0),
                routers.guilty if name in self.hosts else 0,
                MAJORITY * routers.all,
            )
        )
        on = _too_many(
            sum(min(count, OF_ONE_HOST) for count in recent.values()),
            sum(min(one.guilty, OF_ONE_HOST) for one in fleet.values()) if self.on else 0,
            SHARE * sum(one.all for one in fleet.values()),
        )
        same = on is self.on and hosts == self.hosts
        return self if same else replace(self, on=on, hosts=hosts)

    def _recent(self, now: float) -> dict[str, int]:
        found = dict[str, int]()
        for at, host in self.climbs:
            if now - at < WINDOW_S:
                found[host] = found.get(host, 0) + 1
        return found


def _too_many(convicted: int, guilty: int, share: float) -> bool:
    return max(convicted, guilty) > max(ALWAYS, share)


def routers_of(
    contracts: Mapping[str, Contract], reported: Collection[str], state: HostState
) -> Routers:
    """Return the routers of a host that it reports and that have a ladder.

    One without a ladder is never convicted, so that a host that claims thousands of routers
    changes nothing.
    """
    ours = [vr for vr in reported if ladder_of(contracts.get(vr, UNPROMISED))]
    guilty = sum(vr in state.routers and state.routers[vr].evidence.guilty for vr in ours)
    return Routers(len(ours), guilty)
