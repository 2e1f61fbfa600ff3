"""What contracts would have meant for recorded traffic: overload of hosts, packets held back; pure.

The samples say what was offered under the contracts of that time: routers that are offered more as
they forward more (TCP) would have been offered something else. Samples of a minute hide the peaks
within it, so that what is found is the least. Bursts above a ceiling are counted as held back.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple, Protocol

import msgspec

from policer.contracts.admission import exceeds
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.in_force import Classes, in_force, taken_pps
from policer.contracts.promised import ANYWHERE

_MINUTE_S = 60
"""How finely the hours of contracts are given."""


class Sample(NamedTuple):
    """What a router did from an instant on, for as long as a sample is."""

    at: datetime
    """When it began, with its zone."""
    host: str
    vr: str
    """Its name on that host."""
    offered_pps: float
    throughput_pps: float
    known_s: float
    """Seconds of it that are known; rates are means over these."""


class Recording(Protocol):
    """Recorded telemetry, in the order of time."""

    @property
    def span_s(self) -> float:
        """Length of a sample, seconds."""

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples; those of one instant follow each other."""


class Fleet(NamedTuple):
    """The contracts that recorded traffic is held against."""

    hosts: Mapping[str, Host]
    classes: Classes
    contracts: Mapping[tuple[str, str], Contract]
    """By host and router; the host is ANYWHERE where they follow their routers."""
    follows: Mapping[tuple[str, str], str] = {}
    """The contracts that follow routers by another name than theirs, by host and router."""


class HostReplay(msgspec.Struct, frozen=True):
    """What a host would have had to do."""

    host: str
    capacity_pps: float
    known_s: float = 0.0
    """Seconds for which anything was recorded."""
    overloaded_s: float = 0.0
    """Seconds in which routers wanted more, within their guarantees, than it can forward."""
    most_pps: float = 0.0
    """The most that they wanted within their guarantees, in the unit of the capacity."""
    most_at: datetime | None = None
    """When that was; None where they wanted nothing."""


class RouterReplay(msgspec.Struct, frozen=True):
    """What a ceiling would have held back of a router's traffic."""

    host: str
    vr: str
    held_back_packets: float = 0.0
    """Offered beyond it."""
    lost_packets: float = 0.0
    """Of these, forwarded at that time: what would be new."""
    held_back_s: float = 0.0
    """Seconds in which it would have held something back."""


class Replay(msgspec.Struct, frozen=True):
    """What contracts would have meant."""

    begin: datetime | None
    """Of the first sample; None where nothing was recorded."""
    end: datetime | None
    hosts: tuple[HostReplay, ...]
    """All that have samples and an entry."""
    routers: tuple[RouterReplay, ...]
    """Those of which something would have been held back."""


class Replayed(msgspec.Struct, frozen=True):
    """What contracts would have meant for the recorded traffic of some hosts."""

    begin: datetime
    end: datetime
    span_s: int
    """Seconds of a point: peaks within it are not seen."""
    hosts: tuple[HostReplay, ...]
    """All that were looked at."""
    routers: tuple[RouterReplay, ...]
    """Those of which something would have been held back, the most first; 1000 at most."""
    left_out: tuple[str, ...] = ()
    """Hosts that were not looked at, since there was too much to read."""


def replay(recording: Recording, fleet: Fleet, now: datetime) -> Replay:
    """Return what contracts would have meant for recorded traffic.

    Contracts count as if their dates had come already, and as their hours say; those that are over
    count no more.

    Args:
        recording: what routers did.
        fleet: the contracts.
        now: with its zone; contracts that ended before it are over.
    """
    state = _State(_Terms(fleet, now))
    begin, end = None, None
    for at, samples in groupby(recording, key=lambda sample: sample.at):
        begin, end = begin or at, at + timedelta(seconds=recording.span_s)
        state.take(at, samples)
    hosts = tuple(state.hosts[name] for name in sorted(state.hosts))
    routers = tuple(state.routers[key] for key in sorted(state.routers))
    return Replay(begin, end, hosts, routers)


class _Terms:
    """Which terms hold for a router at an instant."""

    def __init__(self, fleet: Fleet, now: datetime) -> None:
        self.hosts = fleet.hosts
        self._fleet = fleet
        self._contracts = {
            key: msgspec.structs.replace(one, valid_from=None, valid_until=None)
            for key, one in fleet.contracts.items()
            if one.valid_until is None or one.valid_until > now
        }
        self._minute = -1.0
        self._lasting: dict[tuple[str, str], Contract | None] = {}
        """What holds at all hours."""
        self._held: dict[tuple[str, str], Contract | None] = {}
        """What holds in this minute: hours are given in minutes."""

    def begin(self, at: datetime) -> None:
        """Go on to another instant."""
        minute = at.timestamp() // _MINUTE_S
        if minute != self._minute:
            self._minute, self._held = minute, {}

    def of(self, sample: Sample) -> Contract | None:
        """Return what holds for a router at a sample of this instant."""
        key = sample.host, sample.vr
        for known in (self._lasting, self._held):
            if key in known:
                return known[key]
        following = ANYWHERE, self._fleet.follows.get(key, key[1])
        contracts = [*filter(None, map(self._contracts.get, (key, following)))]
        terms = self._in_force(contracts, sample.at)
        lasts = not any(contract.hours for contract in contracts)
        (self._lasting if lasts else self._held)[key] = terms
        return terms

    def _in_force(self, contracts: Iterable[Contract], at: datetime) -> Contract | None:
        """Return what holds: a contract on the host comes before one that follows the router."""
        terms = (in_force(contract, self._fleet.classes, at) for contract in contracts)
        return next(filter(None, terms), None)


class _State:
    """What was found so far."""

    def __init__(self, terms: _Terms) -> None:
        self._terms = terms
        self.hosts: dict[str, HostReplay] = {}
        self.routers: dict[tuple[str, str], RouterReplay] = {}

    def take(self, at: datetime, samples: Iterable[Sample]) -> None:
        """Take over all samples of an instant."""
        self._terms.begin(at)
        wanted: dict[str, float] = {}
        known: dict[str, float] = {}
        for sample in samples:
            name = sample.host
            if name in self._terms.hosts:
                terms = self._terms.of(sample)
                taken = 0.0 if terms is None else _taken(terms, sample)
                wanted[name] = wanted.get(name, 0.0) + taken
                known[name] = max(known.get(name, 0.0), sample.known_s)
                self._hold_back(terms, sample)
        for name, pps in wanted.items():
            self._load(self._terms.hosts[name], pps, at, known[name])

    def _load(self, host: Host, pps: float, at: datetime, known_s: float) -> None:
        found = self.hosts.get(host.name) or HostReplay(host.name, host.capacity_pps)
        is_most = pps > found.most_pps
        self.hosts[host.name] = msgspec.structs.replace(
            found,
            known_s=found.known_s + known_s,
            overloaded_s=found.overloaded_s + (known_s if exceeds(pps, host) else 0.0),
            most_pps=pps if is_most else found.most_pps,
            most_at=at if is_most else found.most_at,
        )

    def _hold_back(self, terms: Contract | None, sample: Sample) -> None:
        if terms is None or sample.offered_pps <= terms.ceiling:
            return
        key, seconds = (sample.host, sample.vr), sample.known_s
        found = self.routers.get(key) or RouterReplay(*key)
        held_back = seconds * (sample.offered_pps - terms.ceiling)
        lost = seconds * max(0.0, sample.throughput_pps - terms.ceiling)
        self.routers[key] = RouterReplay(
            *key,
            held_back_packets=found.held_back_packets + held_back,
            lost_packets=found.lost_packets + lost,
            held_back_s=found.held_back_s + seconds,
        )


def _taken(terms: Contract, sample: Sample) -> float:
    """Return what a router would have taken of its host, as far as it was guaranteed that."""
    return min(taken_pps(terms), terms.cost * sample.offered_pps)
