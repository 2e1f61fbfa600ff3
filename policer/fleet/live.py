"""What is known of the fleet at this moment, for those who read: REST, page, metrics.

The service alone writes, in one thread. It replaces whole frozen values, so that a reader in
another thread always sees one round of one host, and never half of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from policer.contracts.admission import exceeds
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.in_force import Book, Classes, is_timed
from policer.contracts.location import present
from policer.contracts.overrides import Overrides
from policer.contracts.peak import peak_pps
from policer.decide.state import HostState, Order
from policer.decide.telemetry import Sight
from policer.fleet.compliance import Kept


@dataclass(frozen=True, slots=True)
class HostLive:
    """One host as of its last round."""

    host: Host
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)
    """Names of the contracts that followed their routers there, by router."""
    tenants: Mapping[str, str] = field(default_factory=dict)
    """Whose routers are by their contracts, also while these do not hold."""
    here: frozenset[str] = frozenset()
    """Names of all contracts that follow routers and whose router is there."""
    entered: tuple[Contract, ...] = ()
    """All its contracts as they were entered, those that do not hold now too."""
    classes: Classes = field(default_factory=dict)
    """The terms of the classes that contracts may name."""
    sight: Sight = field(default_factory=Sight)
    state: HostState = field(default_factory=HostState)
    orders: Mapping[str, Order] = field(default_factory=dict)
    link_problem: str = ""
    """Why its daemon could not be told or heard, while it could not."""
    unread: int = 0
    """Ticks that the link did not look at, or could not read: a flood, or no telemetry at all."""
    rounds_failed: int = 0
    """Rounds that raised, since its loop began: each is a bug."""
    events_left_out: int = 0
    """Events that were not noted, since it causes too many."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """What the daemon would not do, by router, in its own words."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """How well its daemon kept what it was told, by router; none of an older daemon's."""

    @property
    def guaranteed_pps(self) -> float:
        """All guarantees that hold now, in the unit of the capacity."""
        return sum(c.cost * c.reserve_pps for c in self.contracts.values())

    def promised_pps(self, today: datetime) -> float:
        """Return the most that guarantees take from the beginning of an hour on."""
        if not any(map(is_timed, self.entered)):
            return self.guaranteed_pps
        hour = today.replace(minute=0, second=0, microsecond=0)
        return _most(self.entered, tuple(self.classes.items()), hour)

    @property
    def overpromised(self) -> bool:
        """Whether routers brought more guarantees than it can keep; it may not overcommit."""
        return not self.host.overcommit and exceeds(self.guaranteed_pps, self.host)


@lru_cache(maxsize=2048)
def _most(
    entered: tuple[Contract, ...], classes: tuple[tuple[str, Contract], ...], hour: datetime
) -> float:
    return peak_pps(entered, Book(dict(classes), hour))


@dataclass(frozen=True, slots=True)
class Leadership:
    """Whether this policer gives the orders."""

    leading: bool = False
    epoch: int = 0
    holder: str = ""
    """Who leads, as far as is known."""
    problem: str = ""
    """Why it is not known who leads; the database's words."""
    since: int = 0
    """Of a leader: nobody else led since this epoch, which may be one that it had before."""


class Fleet:
    """All hosts by name, and who leads."""

    def __init__(self) -> None:
        self._hosts: dict[str, HostLive] = {}
        self.leadership = Leadership()
        self.braked = False
        """Whether all ladders are stopped: by the count of guilty routers, or by an operator."""
        self.braked_hosts: frozenset[str] = frozenset()
        """Hosts whose own ladders are stopped, by the count of guilty routers."""
        self.counted: Mapping[str, datetime] = {}
        """The brakes that the count of guilty routers puts on, by host, with the time of day since
        when; "" is the fleet's. The leader alone counts."""
        self.overrides = Overrides()
        """What operators override now."""

    @property
    def hosts(self) -> Mapping[str, HostLive]:
        """Every host as of now; what changes later is not in it."""
        return dict(self._hosts)

    def host(self, name: str) -> HostLive:
        """Return one host; raises KeyError where there is none of that name."""
        return self._hosts[name]

    def get(self, name: str) -> HostLive | None:
        """Return one host; None where there is none of that name."""
        return self._hosts.get(name)

    def put(self, live: HostLive) -> None:
        """Take over what a round made of a host."""
        self._hosts[live.host.name] = live

    def put_all(self, lives: Mapping[str, HostLive]) -> None:
        """Take over another fleet."""
        self._hosts = dict(lives)

    def homes(self) -> dict[str, str]:
        """Return the host of each router that a contract follows, by the contract's name."""
        return {router: name for name, live in self.hosts.items() for router in live.here}

    def located(self) -> dict[str, tuple[str, str]]:
        """Return host and name there of each router whose contract followed it."""
        lives = self.hosts.items()
        return {r: (name, vr) for name, live in lives for vr, r in live.follows.items()}

    def having(self, router: str, now: float) -> list[str]:
        """Return the hosts that report a router of this name or UUID."""
        return [
            name
            for name, live in sorted(self.hosts.items())
            if live.sight.reachable(now) and any(present({router}, live.sight.routers))
        ]

    def routers(self) -> Iterator[tuple[HostLive, str]]:
        """Yield every router that was promised or seen, by host and name."""
        for _, live in sorted(self.hosts.items()):
            for vr in sorted({*live.contracts, *live.sight.routers}):
                yield live, vr
