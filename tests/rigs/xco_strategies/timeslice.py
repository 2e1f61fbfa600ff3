"""Timeslices: when a turn to send begins and ends, given the scheduler's grant."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xco.topology.graph import Paths, Topology


@dataclass(frozen=True, slots=True)
class Turn:
    """A host's turn: to send to one destination from start to end, in ns."""

    host: int
    destination: int
    rate_bps: int
    start_ns: int
    end_ns: int


@dataclass
class Calendar:
    """When each directed link becomes free, and its last host; starts turns so that none overlap.

    A turn starts when every link of its path is free, and `guard_ns` later where another host used
    it last: clocks are not exact, and the last packet is still in transit.
    """

    topology: Topology
    slice_ns: int
    guard_ns: int
    free: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By directed link: the instant in ns from which it is free, and the host that had it."""

    def starts(self, host: int, destination: int, rate_bps: int, at_ns: int) -> Turn:
        """Return the turn of a grant that was decided for an instant."""
        path = self._path(host, destination)
        start = max([at_ns, *(self._from(link, host) for link in path)])
        return Turn(host, destination, rate_bps, start, start + self.slice_ns)

    def ends(self, turn: Turn, at_ns: int) -> None:
        """Note that a turn ends at an instant: expired, preempted, or its host left."""
        for link in self._path(turn.host, turn.destination):
            if link not in self.free or at_ns > self.free[link][0]:
                self.free[link] = at_ns, turn.host

    def _from(self, link: int, host: int) -> int:
        free_ns, last = self.free.get(link, (0, host))
        return free_ns if last == host else free_ns + self.guard_ns

    def _path(self, host: int, destination: int) -> Sequence[int]:
        return Paths(self.topology).path(host, destination)


def congested(topology: Topology, turns: Iterable[Turn]) -> set[int]:
    """Return the directed links that turns together would overload at any instant (Eq. 1).

    Links are compared with their whole capacity; what turns send is their granted rate.
    """
    paths = Paths(topology)
    events: dict[int, list[tuple[int, int]]] = {}
    for turn in turns:
        for link in paths.path(turn.host, turn.destination):
            events.setdefault(link, []).append((turn.start_ns, turn.rate_bps))
            events[link].append((turn.end_ns, -turn.rate_bps))
    return {
        link for link, changes in events.items() if _peak(changes) > topology.capacity_bps(link)
    }


def _peak(changes: list[tuple[int, int]]) -> int:
    """Return the highest sum of rates; what ends at an instant ends before what starts."""
    peak = now = 0
    for _, change in sorted(changes):
        now += change
        peak = max(peak, now)
    return peak
