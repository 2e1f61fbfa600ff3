"""Effect of contracts on recorded traffic: overload of hosts, packets held back; pure.

The samples show what was offered under the contracts of that time. The load of TCP depends on what
is forwarded, so it would have differed. Samples of a minute hide the peaks within it, so the
results are lower bounds. Bursts above a ceiling are counted as held back.
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
"""Resolution of the hours of contracts."""


class Sample(NamedTuple):
    """Traffic of a router during one sample."""

    at: datetime
    """Begin of the sample, with its zone."""
    host: str
    vr: str
    """Its name on that host."""
    offered_pps: float
    throughput_pps: float
    known_s: float
    """Known seconds of the sample; rates are means over these."""


class Recording(Protocol):
    """Recorded telemetry, in the order of time."""

    @property
    def span_s(self) -> float:
        """Length of a sample, seconds."""

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples; those of one instant are consecutive."""


class Fleet(NamedTuple):
    """Contracts to replay recorded traffic against."""

    hosts: Mapping[str, Host]
    classes: Classes
    contracts: Mapping[tuple[str, str], Contract]
    """By host and router; the host is ANYWHERE if they follow their routers."""
    follows: Mapping[tuple[str, str], str] = {}
    """Contracts that follow routers under another name, by host and router."""


class HostReplay(msgspec.Struct, frozen=True):
    """Result for one host."""

    host: str
    capacity_pps: float
    known_s: float = 0.0
    """Seconds with recorded telemetry."""
    overloaded_s: float = 0.0
    """Seconds in which routers wanted more, within their guarantees, than the host can forward."""
    most_pps: float = 0.0
    """The most that they wanted within their guarantees, in the unit of the capacity."""
    most_at: datetime | None = None
    """When that was; None if they wanted nothing."""


class RouterReplay(msgspec.Struct, frozen=True):
    """Traffic of a router that a ceiling would have held back."""

    host: str
    vr: str
    held_back_packets: float = 0.0
    """Packets offered beyond the ceiling."""
    lost_packets: float = 0.0
    """Of these, the packets that were forwarded at that time."""
    held_back_s: float = 0.0
    """Seconds in which the ceiling would have held something back."""


class Replay(msgspec.Struct, frozen=True):
    """Effect that contracts would have had."""

    begin: datetime | None
    """Begin of the first sample; None without samples."""
    end: datetime | None
    hosts: tuple[HostReplay, ...]
    """All hosts that have samples and an entry."""
    routers: tuple[RouterReplay, ...]
    """Routers that would have been held back."""


class Replayed(msgspec.Struct, frozen=True):
    """Effect that contracts would have had on the recorded traffic of some hosts."""

    begin: datetime
    end: datetime
    span_s: int
    """Seconds of a point: peaks within it are invisible."""
    hosts: tuple[HostReplay, ...]
    """All examined hosts."""
    routers: tuple[RouterReplay, ...]
    """Routers that would have been held back, the most first; 1000 at most."""
    left_out: tuple[str, ...] = ()
    """Hosts that were skipped because there was too much to read."""


def replay(recording: Recording, fleet: Fleet, now: datetime) -> Replay:
    """Return the effect that contracts would have had on recorded traffic.

    Contracts count as if they had begun already, at their hours; expired contracts do not count.

    Args:
        recording: the recorded traffic.
        fleet: the contracts.
        now: with its zone; contracts that ended before are expired.
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
    """Terms that hold for a router at an instant."""

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
        """Terms that hold at all hours."""
        self._held: dict[tuple[str, str], Contract | None] = {}
        """Terms that hold in this minute: hours have a resolution of minutes."""

    def begin(self, at: datetime) -> None:
        """Advance to another instant."""
        minute = at.timestamp() // _MINUTE_S
        if minute != self._minute:
            self._minute, self._held = minute, {}

    def of(self, sample: Sample) -> Contract | None:
        """Return the terms of a router for a sample of this instant."""
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
        """Return the terms in force: a contract of the host precedes one that follows."""
        terms = (in_force(contract, self._fleet.classes, at) for contract in contracts)
        return next(filter(None, terms), None)


class _State:
    """Intermediate result."""

    def __init__(self, terms: _Terms) -> None:
        self._terms = terms
        self.hosts: dict[str, HostReplay] = {}
        self.routers: dict[tuple[str, str], RouterReplay] = {}

    def take(self, at: datetime, samples: Iterable[Sample]) -> None:
        """Add all samples of an instant."""
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
    """Return what a router would have taken of its host, within its guarantee."""
    return min(taken_pps(terms), terms.cost * sample.offered_pps)
