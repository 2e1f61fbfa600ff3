"""Random topologies and events, a driver that keeps timeslices, and the laws of schedules."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from xco.scheduler.grant import Grant, Scheduler
from xco.topology.graph import Host, Link, Paths, Switch, Topology

SLICE_NS = 1000
MBPS = 1_000_000


@st.composite
def topologies(draw: st.DrawFn, *, alike: bool = False) -> Topology:
    """Trees of up to 4 switches and 8 hosts; alike: every link carries as much as a host sends."""
    switches, hosts = draw(st.integers(1, 4)), draw(st.integers(2, 8))
    speeds = st.just(100) if alike else st.sampled_from([100, 100, 200, 220, 250, 1000])
    links = [
        Link(f"s{n}", f"s{draw(st.integers(0, n - 1))}", draw(speeds) * MBPS)
        for n in range(1, switches)
    ]
    links += [
        Link(f"h{n}", f"s{draw(st.integers(0, switches - 1))}", draw(speeds) * MBPS)
        for n in range(hosts)
    ]
    topology = Topology(
        tuple(Switch(f"s{n}") for n in range(switches)),
        tuple(Host(f"h{n}") for n in range(hosts)),
        tuple(links),
    )
    topology.check()
    return topology


@dataclass(frozen=True)
class Event:
    """What happens to a host, so long after what happened before."""

    kind: str
    after_ns: int
    host: int
    destinations: tuple[int, ...]


any_events = st.lists(
    st.builds(
        Event,
        kind=st.sampled_from(["backlogged", "backlogged", "gave_up", "leave", "wait"]),
        after_ns=st.integers(0, SLICE_NS),
        host=st.integers(0, 7),
        destinations=st.lists(st.integers(0, 7), max_size=5).map(tuple),
    ),
    max_size=30,
)


def with_slices(scheduler: Scheduler, topology: Topology) -> "Run":
    """Return a run that begins with nothing backlogged."""
    return Run(scheduler, topology)


@dataclass
class Run:
    """A scheduler, and what an observer knows of it from events and grants alone."""

    scheduler: Scheduler
    topology: Topology
    now: int = 0
    backlog: dict[int, set[int]] = field(default_factory=dict)
    sending: dict[int, Grant] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    waits_since: dict[tuple[int, int], int] = field(default_factory=dict)
    backlogged_then: dict[tuple[int, int], int] = field(default_factory=dict)
    served: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paths = Paths(self.topology)
        self.hosts = len(self.topology.hosts)

    def happen(self, event: Event) -> list[list[Grant]]:
        """Let slices end up to the event, then let it happen; return each answer."""
        until = self.now + event.after_ns
        answers = self.pass_time(until)
        host = event.host % self.hosts
        group = sorted({d % self.hosts for d in event.destinations} - {host})
        if event.kind == "backlogged":
            answers.append(self.report(host, group))
        elif event.kind == "gave_up":
            answers.append(self.give_up(host))
        elif event.kind == "leave":
            answers.append(self.leave(host))
        return answers

    def pass_time(self, until: int) -> list[list[Grant]]:
        """Let slices end, in order, up to a moment."""
        answers = []
        while self.ends and (end := min(self.ends.items(), key=lambda it: it[1]))[1] <= until:
            self.now = end[1]
            answers.append(self.expire(end[0]))
        self.now = until
        return answers

    def report(self, host: int, group: Sequence[int]) -> list[Grant]:
        self.backlog[host] = set(group)
        return self._take(self.scheduler.backlogged(self.now, host, group))

    def expire(self, host: int) -> list[Grant]:
        return self._take(self.scheduler.expired(self.now, host))

    def give_up(self, host: int) -> list[Grant]:
        if host in self.sending:
            self.backlog[host].discard(_destination(self.sending[host]))
        return self._take(self.scheduler.gave_up(self.now, host))

    def leave(self, host: int) -> list[Grant]:
        self.backlog[host] = set()
        return self._take(self.scheduler.leave(self.now, host))

    def _take(self, answer: list[Grant]) -> list[Grant]:
        assert len({grant.host for grant in answer}) == len(answer)
        for grant in answer:
            self._apply(grant)
        self._note_waiting({(g.host, _destination(g)) for g in answer if g.destination is not None})
        return answer

    def _apply(self, grant: Grant) -> None:
        self.sending.pop(grant.host, None)
        self.ends.pop(grant.host, None)
        if grant.destination is None:
            assert grant.rate_bps == 0
            return
        assert grant.destination in self.backlog[grant.host]
        self.sending[grant.host] = grant
        self.ends[grant.host] = self.now + SLICE_NS
        flow = grant.host, grant.destination
        self.served[flow] = self.served.get(flow, 0) + 1

    def _note_waiting(self, granted: set[tuple[int, int]]) -> None:
        flows = {(x, d) for x, group in self.backlog.items() for d in group}
        waiting = flows - {(x, _destination(grant)) for x, grant in self.sending.items()}
        self.waits_since = {
            flow: self.now if flow in granted else self.waits_since.get(flow, self.now)
            for flow in waiting
        }
        self.backlogged_then = {
            flow: self.backlogged_then.get(flow, len(flows)) for flow in waiting
        }

    def used_bps(self) -> dict[int, int]:
        """Return what is granted over each directed link."""
        used: dict[int, int] = {}
        for host, grant in self.sending.items():
            for link in self.paths.path(host, _destination(grant)):
                used[link] = used.get(link, 0) + grant.rate_bps
        return used

    def overloaded(self) -> list[int]:
        """Return the directed links with more granted than they carry (Eq. 1)."""
        return [k for k, rate in self.used_bps().items() if rate > self.topology.capacity_bps(k)]

    def idle_that_fit(self, used: dict[int, int]) -> list[tuple[int, int]]:
        """Return flows of idle hosts that would fit at their host's full rate."""
        return [
            (x, d)
            for x, group in self.backlog.items()
            if x not in self.sending
            for d in group
            if self.fits(used, x, d, self.topology.host_rate_bps(x))
        ]

    def fits(self, used: dict[int, int], x: int, d: int, rate: int) -> bool:
        """Whether so much more fits on each link of a path."""
        path = self.paths.path(x, d)
        return all(used.get(k, 0) + rate <= self.topology.capacity_bps(k) for k in path)


def _destination(grant: Grant) -> int:
    assert grant.destination is not None
    return grant.destination
