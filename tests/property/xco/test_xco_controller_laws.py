"""Laws of the controller under random reports, losses and silences, in simulated time.

Hosts obey what they hear, at once. What they then send together must never be more than a link
carries; every host that waits gets its turn; rates are those of the oracles.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part
from xco_controller_scenes import MS, US, Scene, Speaker
from xco_strategies.rate import Flow, capacities, equal_shares, max_min_shares
from xco_strategies.timeslice import Turn, congested

from xco.protocol.messages import Directive, Mode, Status
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology, tree_topology

UNEVEN = Topology(
    (Switch("left"), Switch("right")),
    tuple(Host(f"h{index}") for index in range(6)),
    (
        *(Link(f"h{index}", "left", 10**9 // (index + 1)) for index in range(3)),
        *(Link(f"h{index}", "right", 10**9) for index in range(3, 6)),
        Link("left", "right", 15 * 10**8),
    ),
)
FOR_EVER = 2**63
TOPOLOGIES = st.sampled_from(
    [
        star_topology(5, "1Gbps"),
        dumbbell(4, 3, "1Gbps", "2Gbps"),
        tree_topology(2, 2, 2, "1Gbps", "1Gbps"),
        UNEVEN,
    ]
)


@contextmanager
def scene(topology: Topology, **options: object) -> Iterator[Scene]:
    with tempfile.TemporaryDirectory() as folder:
        made = Scene(Path(folder), topology, drop="10s", silence="1s", **options)
        try:
            made.join()
            yield made
        finally:
            made.node.close()


def turns_of(host: Speaker, gave_up: dict[int, int], way_ns: int = 0) -> Iterator[Turn]:
    """Yield when a host that obeys as soon as it hears may send, given when it gave up what."""
    in_force: list[tuple[Directive, int, int]] = []
    for directive in host.heard:
        heard = directive.header.sent_ns + way_ns
        start = max(heard, directive.start_ns)
        while in_force and in_force[-1][1] >= start:
            in_force.pop()
        if in_force:
            before, since, until = in_force[-1]
            in_force[-1] = before, since, min(until, start)
        if directive.permits:
            in_force.append((directive, start, directive.end_ns or FOR_EVER))
    for directive, start, end in in_force:
        until = min(end, gave_up.get(directive.header.sequence, end))
        for permit in directive.permits:
            if start < until:
                yield Turn(host.host, permit.destination, permit.rate_bps, start, until)


@st.composite
def events(draw: st.DrawFn, hosts: int) -> list[tuple[int, int, tuple[int, ...], int | None]]:
    """Draw reports: after how many µs, by whom, its backlog group, in how many µs it gives up."""
    one = st.integers(0, hosts - 1).flatmap(
        lambda host: st.tuples(
            st.integers(0, 3000),
            st.just(host),
            st.sets(st.integers(0, hosts - 1).filter(lambda other: other != host), max_size=3).map(
                lambda group: tuple(sorted(group))
            ),
            st.none() | st.just(0) | st.integers(1, 3000),
        )
    )
    return draw(st.lists(one, min_size=1, max_size=40))


@settings(max_examples=part(60))
@given(
    TOPOLOGIES,
    st.sampled_from(["published", "fair"]),
    st.sampled_from(["timeslice", "rate", "hybrid"]),
    st.data(),
)
def test_what_is_allowed_together_never_congests_a_link(
    topology: Topology, policy: str, strategy: str, data: st.DataObject
) -> None:
    happenings = data.draw(events(len(topology.hosts)))
    with scene(topology, policy=policy, strategy=strategy, preempt_after="100us") as scene_:
        gave_up: dict[int, dict[int, int]] = defaultdict(dict)
        for wait_us, host, group, leaves_us in happenings:
            scene_.run_until(scene_.now_ns + wait_us * US)
            directive = scene_.hosts[host].directive
            started = directive.mode is Mode.SLICE and directive.start_ns <= scene_.now_ns
            sequence = free_ns = 0
            if leaves_us is not None and started and scene_.now_ns < directive.end_ns:
                sequence = directive.header.sequence
                free_ns = gave_up[host].setdefault(sequence, scene_.now_ns + leaves_us * US)
            scene_.report(host, *group, gave_up=sequence, free_ns=free_ns)
        scene_.run_until(scene_.now_ns + 20 * MS)
        turns = [turn for host in scene_.hosts for turn in turns_of(host, gave_up[host.host])]
        assert congested(topology, turns) == set()


def obeyed(host: Speaker, now_ns: int, way_ns: int) -> Directive | None:
    """Return the directive by which a host sends at an instant, if it has heard it by then."""
    here = [one for one in host.heard if one.header.sent_ns + way_ns <= now_ns]
    begun = [one for one in here if one.start_ns <= now_ns]
    return begun[-1] if begun else None


@settings(max_examples=part(60))
@given(TOPOLOGIES, st.sampled_from(["published", "fair"]), st.data())
def test_slices_never_congest_a_link_though_messages_are_on_their_way(
    topology: Topology, policy: str, data: st.DataObject
) -> None:
    """Each host's messages take up to 90 us each way, within the lead time of 200 us."""
    happenings = data.draw(events(len(topology.hosts)))
    ways = [data.draw(st.integers(0, 90)) * US for _ in topology.hosts]
    with scene(topology, policy=policy, preempt_after="100us") as scene_:
        gave_up: dict[int, dict[int, int]] = defaultdict(dict)
        for wait_us, host, group, leaves_us in happenings:
            scene_.run_until(scene_.now_ns + wait_us * US)
            speaker, way_ns = scene_.hosts[host], ways[host]
            said_ns = scene_.now_ns - way_ns
            directive = obeyed(speaker, said_ns, way_ns)
            sequence = free_ns = 0
            if leaves_us is not None and directive and directive.mode is Mode.SLICE:
                sequence = directive.header.sequence
                free_ns = gave_up[host].setdefault(sequence, said_ns + leaves_us * US)
            scene_.report(host, *group, gave_up=sequence, free_ns=free_ns)
        scene_.run_until(scene_.now_ns + 20 * MS)
        turns = [
            turn
            for host in scene_.hosts
            for turn in turns_of(host, gave_up[host.host], ways[host.host])
        ]
        assert congested(topology, turns) == set()


@settings(max_examples=part(40))
@given(TOPOLOGIES, st.data())
def test_every_flow_that_waits_gets_its_turn(topology: Topology, data: st.DataObject) -> None:
    hosts = len(topology.hosts)
    flows = data.draw(
        st.sets(
            st.tuples(st.integers(0, hosts - 1), st.integers(0, hosts - 1)).filter(
                lambda flow: flow[0] != flow[1]
            ),
            min_size=1,
            max_size=8,
        )
    )
    with scene(topology) as scene_:
        for host in range(hosts):
            scene_.report(host, *(to for source, to in flows if source == host))
        scene_.run_until(scene_.now_ns + 100 * MS + 2 * len(flows) * 2 * MS)
        served = {
            (host.host, permit.destination)
            for host in scene_.hosts
            for directive in host.heard
            for permit in directive.permits
        }
        assert served == flows


@settings(max_examples=part(40))
@given(TOPOLOGIES, st.booleans(), st.data())
def test_rates_are_the_oracles(topology: Topology, max_min: bool, data: st.DataObject) -> None:
    hosts = len(topology.hosts)
    groups = data.draw(
        st.lists(st.sets(st.integers(0, hosts - 1), max_size=4), min_size=hosts, max_size=hosts)
    )
    flows = [Flow(host, to) for host in range(hosts) for to in groups[host] if to != host]
    with scene(topology, strategy="rate", max_min=max_min) as scene_:
        for host in range(hosts):
            scene_.report(host, *(flow.destination for flow in flows if flow.source == host))
        scene_.run_until(scene_.now_ns + MS)
        oracle = max_min_shares if max_min else equal_shares
        wanted = oracle(topology, flows, capacities(topology, 980)) if flows else {}
        told = {
            Flow(host.host, permit.destination): permit.rate_bps
            for host in scene_.hosts
            for permit in host.directive.permits
        }
        assert told == wanted


@settings(max_examples=part(40))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("hrlds"), st.integers(0, 5)), max_size=60)
)
def test_any_order_of_messages_leaves_it_working(
    happenings: list[tuple[int, str, int]],
) -> None:
    """Hello, report, leave, a duplicate, silence: afterwards a host still joins and is served."""
    with scene(star_topology(6, "1Gbps")) as scene_:
        for host, what, number in happenings:
            speaker = scene_.hosts[host]
            if what == "h":
                scene_.say(speaker.hello(scene_.now_ns))
            elif what == "r":
                scene_.report(host, *({number} - {host}))
            elif what == "l":
                scene_.say(speaker.leave(scene_.now_ns))
            elif what == "d":
                again = speaker.report(scene_.now_ns, 5)
                scene_.say(again)
                scene_.say(again)
            else:
                scene_.run_until(scene_.now_ns + number * MS)
        for host in range(4):
            scene_.say(scene_.hosts[host].leave(scene_.now_ns))
        scene_.join([4])
        assert scene_.hosts[4].welcomes[-1].status is Status.JOINED
        scene_.report(4, 5)
        scene_.run_until(scene_.now_ns + 3 * MS)
        assert scene_.hosts[4].directive.mode is Mode.SLICE


@settings(deadline=None, max_examples=part(60))
@given(st.binary(max_size=900))
def test_any_datagram_is_counted_and_nothing_else(datagram: bytes) -> None:
    with scene(star_topology(2, "1Gbps")) as scene_:
        before = scene_.node.counters
        assert scene_.say(datagram) == 2
        after = scene_.node.counters
        changed = {
            name: after[name] - before[name] for name in after if after[name] != before[name]
        }
        assert list(changed.values()) == [1]
        assert next(iter(changed)).startswith("dropped_")
