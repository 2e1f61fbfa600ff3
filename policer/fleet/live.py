"""Current state of the fleet, for its readers: REST, page, metrics.

Only the service writes, in one thread. It replaces whole frozen values, so a reader in another
thread always sees one complete round of a host.
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
from policer.decide.telemetry import HostTelemetry
from policer.fleet.compliance import Kept


@dataclass(frozen=True, slots=True)
class HostLive:
    """One host as of its last round."""

    host: Host
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)
    """Names of the contracts that followed their routers there, by router."""
    tenants: Mapping[str, str] = field(default_factory=dict)
    """Tenants of routers by their contracts, also while these do not hold."""
    here: frozenset[str] = frozenset()
    """Names of all contracts that follow a router which is there."""
    unnamed: frozenset[str] = frozenset()
    """UUIDs of those routers whose names there are not known yet, as after a start of the
    policer."""
    entered: tuple[Contract, ...] = ()
    """All its contracts as entered, including those that do not hold now."""
    classes: Classes = field(default_factory=dict)
    """Terms of the classes that contracts may name."""
    telemetry: HostTelemetry = field(default_factory=HostTelemetry)
    state: HostState = field(default_factory=HostState)
    orders: Mapping[str, Order] = field(default_factory=dict)
    link_problem: str = ""
    """Link error while its daemon cannot be reached."""
    unread: int = 0
    """Ticks that the link skipped or could not read: a flood, or no telemetry at all."""
    rounds_failed: int = 0
    """Rounds that raised an exception, since its loop began: each is a bug."""
    events_left_out: int = 0
    """Events that were dropped, since it causes too many."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Orders that the daemon refused, by router, in the daemon's words."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """How well its daemon followed its orders, by router; empty for an older daemon."""

    @property
    def guaranteed_pps(self) -> float:
        """Sum of all guarantees that hold now, in the unit of the capacity."""
        return sum(c.cost * c.reserve_pps for c in self.contracts.values())

    def promised_pps(self, today: datetime) -> float:
        """Return the most that guarantees take from the current hour on."""
        if not any(map(is_timed, self.entered)):
            return self.guaranteed_pps
        hour = today.replace(minute=0, second=0, microsecond=0)
        return _most(self.entered, tuple(self.classes.items()), hour)

    @property
    def overpromised(self) -> bool:
        """Whether routers brought more guarantees than the host, without overcommit, can keep."""
        return not self.host.overcommit and exceeds(self.guaranteed_pps, self.host)


@lru_cache(maxsize=2048)
def _most(
    entered: tuple[Contract, ...], classes: tuple[tuple[str, Contract], ...], hour: datetime
) -> float:
    return peak_pps(entered, Book(dict(classes), hour))


@dataclass(frozen=True, slots=True)
class Leadership:
    """Whether this policer leads."""

    leading: bool = False
    epoch: int = 0
    holder: str = ""
    """The leader, as far as known."""
    problem: str = ""
    """Why the leader is unknown; the database's error."""
    since: int = 0
    """For a leader: the epoch since which no other policer led, possibly an earlier one of its
    own."""


class Fleet:
    """All hosts by name, and the leadership."""

    def __init__(self) -> None:
        self._hosts: dict[str, HostLive] = {}
        self.leadership = Leadership()
        self.braked = False
        """Whether all ladders are stopped: by the count of guilty routers, or by an operator."""
        self.braked_hosts: frozenset[str] = frozenset()
        """Hosts on which ladders are stopped, by the count of guilty routers."""
        self.counted: Mapping[str, datetime] = {}
        """Brakes put on by the count of guilty routers, by host, with the time of day since when;
        "" is the fleet's. Only the leader counts."""
        self.overrides = Overrides()
        """Current overrides."""

    @property
    def hosts(self) -> Mapping[str, HostLive]:
        """All hosts in their current state; later changes are not included."""
        return dict(self._hosts)

    def host(self, name: str) -> HostLive:
        """Return one host; raises KeyError if it does not exist."""
        return self._hosts[name]

    def get(self, name: str) -> HostLive | None:
        """Return one host; None if it does not exist."""
        return self._hosts.get(name)

    def put(self, live: HostLive) -> None:
        """Set a host's state after a round."""
        self._hosts[live.host.name] = live

    def put_all(self, lives: Mapping[str, HostLive]) -> None:
        """Replace all hosts."""
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
            if live.telemetry.reachable(now) and any(present({router}, live.telemetry.routers))
        ]

    def routers(self) -> Iterator[tuple[HostLive, str]]:
        """Yield every router with a contract or a report, by host and name."""
        for _, live in sorted(self.hosts.items()):
            for vr in sorted({*live.contracts, *live.telemetry.routers}):
                yield live, vr
