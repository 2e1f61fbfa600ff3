"""Algorithm 1 as published (paper, section 3.2.1): written for reading, the oracle of the others.

Where the paper leaves a choice, this follows its suggestions. Nodes are traversed in another order
at each event, the one that triggered it last. A node's destinations are tried from the one after
its last. Nodes active for less than a threshold are not preempted (lines 15 and 44). A node that
continues unchanged (D_x = D_x^old) gets no directive: a new one would begin a new timeslice, and
with enough events none would ever end.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from xco.scheduler.grant import Grant, Scheduler, check_group, check_host
from xco.topology.graph import Paths, Topology

__all__ = ["Grant", "PublishedScheduler", "Scheduler"]


class PublishedScheduler:
    """Algorithm 1, its state by the paper's names.

    It can starve: see `tests/unit/xco/test_xco_schedule.py`. `xco.scheduler.native` cannot.
    """

    def __init__(self, topology: Topology, threshold_ns: int = 0) -> None:
        """Take a checked topology, and how long a node that has started is not preempted."""
        self._topology = topology
        self._paths = Paths(topology)
        self._threshold_ns = threshold_ns
        self._events = 0
        self._now = 0
        self._backlog: dict[int, dict[int, None]] = defaultdict(dict)
        """B_x, in the order in which destinations are tried."""
        self._contending: dict[int, Counter[int]] = defaultdict(Counter)
        """beta_ij by link, with the destinations of each node behind that link counted."""
        self._active: dict[int, set[int]] = defaultdict(set)
        """alpha_ij by link."""
        self._current: dict[int, int] = {}
        """D_x of the nodes that may send."""
        self._started: dict[int, int] = {}

    def backlogged(self, now: int, host: int, destinations: Sequence[int]) -> list[Grant]:
        """Event 3; of a node that may send already, only its backlog group is renewed."""
        check_group(host, destinations, len(self._topology.hosts))
        for old in self._backlog[host].keys() - set(destinations):
            self._remove(host, old)
        for new in destinations:
            self._add(host, new)
        return [] if host in self._current else self._decide(now, host)

    def expired(self, now: int, host: int) -> list[Grant]:
        """Event 1."""
        check_host(host, len(self._topology.hosts))
        return self._decide(now, host) if host in self._current else []

    def gave_up(self, now: int, host: int) -> list[Grant]:
        """Event 2."""
        check_host(host, len(self._topology.hosts))
        return self._decide(now, host, work_conservation=True) if host in self._current else []

    def leave(self, now: int, host: int) -> list[Grant]:
        """Treat a node that left as one without backlog that ended its timeslice."""
        check_host(host, len(self._topology.hosts))
        for destination in list(self._backlog[host]):
            self._remove(host, destination)
        return self.expired(now, host)

    def _decide(self, now: int, t: int, *, work_conservation: bool = False) -> list[Grant]:
        """Lines 12 to 61, for the node t that triggered the event."""
        self._events, self._now = self._events + 1, now
        affected = self._affected(t)
        old = self._current.get(t)
        if old is not None:  # 18
            self._release(t, old)
            if work_conservation:  # 22
                self._remove(t, old)
        before = dict(self._current)
        scheduled = self._traverse(affected, t)
        changed = [x for x in scheduled if before.get(x) != self._current[x]]  # 58
        stopped = [Grant(t, None, 0)] if old is not None and t not in scheduled else []
        return [self._grant(x) for x in changed] + stopped

    def _traverse(self, affected: set[int], t: int) -> list[int]:
        """Lines 26 to 57: return N, in order."""
        scheduled: list[int] = []  # 26
        while affected:  # 27
            x = min(affected, key=lambda node: (node == t, self._turn(node)))  # 28
            destination = self._feasible(x)  # 29
            if destination is not None:
                affected |= self._assign(x, destination) - set(scheduled)  # 44
                scheduled.append(x)  # 55
            affected.discard(x)  # 52
        return scheduled

    def _affected(self, t: int) -> set[int]:
        """Lines 12 to 17. D_t counts even if it has left B_t: its links get free as well."""
        destinations = [*self._backlog[t], *([self._current[t]] if t in self._current else [])]
        affected = set().union(*(self._contenders(self._paths.path(t, d)) for d in destinations))
        return affected | ({t} if self._backlog[t] else set())

    def _contenders(self, links: Iterable[int]) -> set[int]:
        """Return the nodes that contend for these links, less those just started (lines 15, 44)."""
        nodes = set().union(*(self._contending[link].keys() for link in links))
        return {x for x in nodes if not self._is_young(x)}

    def _is_young(self, x: int) -> bool:
        return x in self._current and self._now - self._started[x] < self._threshold_ns

    def _turn(self, x: int) -> int:
        return (x - self._events) % len(self._topology.hosts)

    def _feasible(self, x: int) -> int | None:
        """Lines 29 to 37: return the first destination that is feasible at each link."""
        for d in self._backlog[x]:  # 30
            if all(self._is_feasible(x, link) for link in self._paths.path(x, d)):  # 31 to 36
                return d  # 38
        return None

    def _is_feasible(self, x: int, link: int) -> bool:
        """F({x} with alpha_ij, C_ij): Eq. 1."""
        rates = map(self._topology.host_rate_bps, self._active[link] | {x})
        return sum(rates) <= self._topology.capacity_bps(link)

    def _assign(self, x: int, d: int) -> set[int]:
        """Lines 40 to 50: let x send to d; return the nodes that what it stops to do may affect."""
        old, path = self._current.get(x), self._paths.path(x, d)
        left = [] if old is None else [k for k in self._paths.path(x, old) if k not in path]  # 42
        for link in left:
            self._active[link].discard(x)  # 43
        for link in path:  # 47
            self._active[link].add(x)  # 48
        if d != old:
            self._current[x], self._started[x] = d, self._now
        self._put_last(x, d)
        return self._contenders(left)

    def _release(self, t: int, old: int) -> None:
        """Lines 19 to 21."""
        for link in self._paths.path(t, old):
            self._active[link].discard(t)
        del self._current[t], self._started[t]

    def _grant(self, x: int) -> Grant:
        return Grant(x, self._current[x], self._topology.host_rate_bps(x))

    def _put_last(self, x: int, d: int | None) -> None:
        """Let line 30 come to d last: a node turns to its other destinations first."""
        if d in self._backlog[x]:
            self._backlog[x][d] = self._backlog[x].pop(d)

    def _add(self, x: int, d: int) -> None:
        if d not in self._backlog[x]:
            self._backlog[x][d] = None
            self._put_last(x, self._current.get(x))
            for link in self._paths.path(x, d):
                self._contending[link][x] += 1

    def _remove(self, x: int, d: int) -> None:
        """Take a destination from a backlog group, and from the contention groups (line 23)."""
        if d not in self._backlog[x]:
            return
        del self._backlog[x][d]
        for link in self._paths.path(x, d):
            self._contending[link][x] -= 1
            if not self._contending[link][x]:
                del self._contending[link][x]
