"""Brake: stops escalation when too many routers would be punished at the same time; pure.

So many violations suggest a fault of the policer: a wrong capacity, the model of another machine or
a bad evidence rule. Such a fault does not go away by itself, so the brake stays on while the number
of guilty routers is that high. Only routers with a ladder count, and only a few of each host count
for the fleet. So neither the reports of one host nor the conflicts of its tenants can stop the
ladders of others or disable the fleet's brake. Existing punishments stay.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policer.contracts.contract import Contract
from policer.decide.state import UNPROMISED, HostState, ladder_of

WINDOW_S = 60.0
"""Length of the window in which convictions count."""
SHARE = 0.1
"""Convictions of more than this share of the fleet's routers in the window put the brake on."""
MAJORITY = 0.5
"""Convictions of more than this share of one host's routers put that host's brake on."""
ALWAYS = 3
"""Up to this number of convictions never puts a brake on."""
OF_ONE_HOST = 2
"""At most this many convictions of one host count for the fleet."""


class Routers(NamedTuple):
    """Number of routers of a host that have a ladder."""

    all: int
    guilty: int
    """How many of them are guilty now."""


@dataclass(frozen=True, slots=True)
class Brake:
    """Convictions of the last minute; times are on the policer's clock."""

    climbs: tuple[tuple[float, str], ...] = ()
    """When a router took its first step, and on which host."""
    on: bool = False
    """Whether all ladders are stopped."""
    hosts: frozenset[str] = field(default_factory=frozenset)
    """Hosts on which ladders are stopped, independently of the fleet."""

    def stops(self, host: str) -> bool:
        """Whether ladders are stopped on a host."""
        return self.on or host in self.hosts

    def after(self, now: float, host: str, climbs: int) -> "Brake":
        """Return the brake after `climbs` more routers of a host took their first step.

        A router counts once (`policer.decide.state.Round.convicted`)): three steps of one router
        are no sign of a fault.
        """
        recent = [(at, name) for at, name in self.climbs if now - at < WINDOW_S]
        return replace(self, climbs=(*recent, *[(now, host)] * climbs))

    def looked(self, now: float, fleet: Mapping[str, Routers]) -> "Brake":
        """Return the brake with the fleet and each host put on or released.

        Convictions within a minute put it on. It is released when these have expired and no more
        routers than the limit are guilty. Routers that became guilty one by one do not put it on.

        Args:
            now: seconds of the policer's clock.
            fleet: the routers of each host.
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

    A router without a ladder is never convicted. So a host that claims thousands of routers changes
    nothing.
    """
    ours = [vr for vr in reported if ladder_of(contracts.get(vr, UNPROMISED))]
    guilty = sum(vr in state.routers and state.routers[vr].evidence.guilty for vr in ours)
    return Routers(len(ours), guilty)
