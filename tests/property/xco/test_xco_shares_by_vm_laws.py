"""Laws of guarantees and weights: of the readable model, and of the controller, which equals it."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part
from xco_controller_scenes import MS, Scene
from xco_strategies.rate import GREEDY, MBPS, Flow, capacities, guaranteed_shares, max_min_shares

from xco.topology.graph import Host, Link, Paths, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology, tree_topology

UNEVEN = Topology(
    (Switch("left"), Switch("right")),
    tuple(Host(f"h{index}") for index in range(5)),
    (
        *(Link(f"h{index}", "left", 10**9 // (index + 1) + index) for index in range(3)),
        *(Link(f"h{index}", "right", 10**9) for index in range(3, 5)),
        Link("left", "right", 15 * 10**8),
    ),
)
TOPOLOGIES = st.sampled_from(
    [
        star_topology(4, "1Gbps"),
        dumbbell(3, 3, "1Gbps", "2Gbps"),
        tree_topology(2, 2, 1, "1Gbps", "1Gbps"),
        UNEVEN,
    ]
)
U16 = 2**16 - 1
WEIGHTS = st.one_of(st.integers(1, 9), st.integers(1, U16), st.integers(1, 10**6 * U16))
ALL_GREEDY = st.just(GREEDY)
DEMANDS = st.one_of(ALL_GREEDY, st.integers(1, 10**9))
GUARANTEES = st.one_of(st.just(0), st.integers(1, 400), st.integers(1, U16))
Case = tuple[Topology, list[Flow]]


@st.composite
def cases(
    draw: st.DrawFn,
    weights: st.SearchStrategy[int] = WEIGHTS,
    demands: st.SearchStrategy[int] = ALL_GREEDY,
) -> Case:
    """Draw a topology and flows between its hosts, each pair at most once."""
    topology = draw(TOPOLOGIES)
    host = st.integers(0, len(topology.hosts) - 1)
    ends = st.tuples(host, host).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.lists(ends, min_size=1, max_size=12, unique=True))
    return topology, [
        Flow(*pair, draw(weights), draw(GUARANTEES), draw(demands)) for pair in sorted(pairs)
    ]


def carried(topology: Topology, amounts: Mapping[Flow, int]) -> Counter[int]:
    """Return the sum of amounts over each link."""
    paths, load = Paths(topology), Counter[int]()
    for flow, amount in amounts.items():
        for link in paths.path(flow.source, flow.destination):
            load[link] += amount
    return load


def promisable(left_bps: int) -> int:
    """Return what guarantees can take: a twentieth is always shared by weight."""
    return left_bps - left_bps // 20


@given(cases(demands=DEMANDS))
def test_no_link_carries_or_promises_more_than_it_has(case: Case) -> None:
    topology, flows = case
    left = capacities(topology)
    floors = carried(topology, guaranteed_shares(topology, flows, left))
    rates = carried(topology, max_min_shares(topology, flows, left))
    assert all(floors[link] <= promisable(left[link]) for link in floors)
    assert all(rates[link] <= left[link] for link in rates)


@given(cases())
def test_each_flow_gets_its_guarantee_or_its_part_of_the_tightest_link(case: Case) -> None:
    topology, flows = case
    left, paths = capacities(topology), Paths(topology)
    floors = guaranteed_shares(topology, flows, left)
    rates = max_min_shares(topology, flows, left)
    claimed = carried(topology, {flow: flow.guarantee_mbps * MBPS for flow in flows})
    for flow in flows:
        path = paths.path(flow.source, flow.destination)
        assert floors[flow] <= rates[flow]
        assert floors[flow] <= flow.guarantee_mbps * MBPS
        if all(claimed[link] <= promisable(left[link]) for link in path):
            assert floors[flow] == flow.guarantee_mbps * MBPS


@given(cases(), st.data())
def test_a_claim_leaves_half_of_what_the_others_of_a_link_are_promised(
    case: Case, data: st.DataObject
) -> None:
    topology, flows = case
    left, claim = capacities(topology), data.draw(st.integers(1, U16))
    liar = data.draw(st.sampled_from(flows))
    honest = [flow for flow in flows if flow != liar]
    before = guaranteed_shares(topology, honest, left)
    lying = [*honest, replace(liar, guarantee_mbps=claim)]
    after = guaranteed_shares(topology, lying, left)
    rounding = MBPS  # of its cut
    assert all(2 * after[flow] + rounding >= before[flow] for flow in honest)


@given(cases(demands=DEMANDS))
def test_each_flow_crosses_a_full_link(case: Case) -> None:
    """Full but for less than 1 bit/s of each of its flows: what no flow demands is given too."""
    topology, flows = case
    left, paths = capacities(topology), Paths(topology)
    load = carried(topology, max_min_shares(topology, flows, left))
    count = carried(topology, dict.fromkeys(flows, 1))
    for flow in flows:
        path = paths.path(flow.source, flow.destination)
        assert any(left[link] - load[link] < count[link] for link in path)


@given(cases(demands=DEMANDS))
def test_who_gets_less_than_it_demands_is_held_by_a_link_that_gives_none_more_by_weight(
    case: Case,
) -> None:
    """Raising its share lowers one that is not larger by weight: weighted max-min.

    That holds of what all demand: what they get beyond that is nothing that others could use.
    """
    topology, flows = case
    left, paths = capacities(topology), Paths(topology)
    floors = guaranteed_shares(topology, flows, left)
    rates = max_min_shares(topology, flows, left)
    demanded = {flow: min(rates[flow], flow.demand_bps) for flow in flows}
    share = {flow: demanded[flow] - floors[flow] for flow in flows}
    load, count = carried(topology, demanded), carried(topology, dict.fromkeys(flows, 1))
    for flow in (flow for flow in flows if demanded[flow] < flow.demand_bps):
        holding = [
            link
            for link in paths.path(flow.source, flow.destination)
            if left[link] - load[link] < count[link]
            and all(
                share[other] * flow.weight < (share[flow] + 1) * other.weight
                for other in flows
                if link in paths.path(other.source, other.destination)
            )
        ]
        assert holding


@given(cases(st.integers(1, 10**6), DEMANDS), st.integers(1, U16))
def test_only_the_proportions_of_weights_count(case: Case, factor: int) -> None:
    topology, flows = case
    left = capacities(topology)
    more = {flow: replace(flow, weight=flow.weight * factor) for flow in flows}
    rates = max_min_shares(topology, flows, left)
    scaled = max_min_shares(topology, list(more.values()), left)
    assert {flow: scaled[more[flow]] for flow in flows} == rates


def connected(topology: Topology, flows: list[Flow], first: Flow) -> list[Flow]:
    """Return the flows that share links with one, directly or through others."""
    paths = Paths(topology)
    found, links = [first], set(paths.path(first.source, first.destination))
    while more := [
        flow
        for flow in flows
        if flow not in found and links.intersection(paths.path(flow.source, flow.destination))
    ]:
        found += more
        links.update(*(paths.path(flow.source, flow.destination) for flow in more))
    return found


@given(cases(demands=DEMANDS), st.data())
def test_flows_that_share_no_link_do_not_matter(case: Case, data: st.DataObject) -> None:
    topology, flows = case
    left = capacities(topology)
    some = connected(topology, flows, data.draw(st.sampled_from(flows)))
    alone, all_ = max_min_shares(topology, some, left), max_min_shares(topology, flows, left)
    assert alone == {flow: all_[flow] for flow in some}


@contextmanager
def scene(topology: Topology, weights: Mapping[str, int], strategy: str) -> Iterator[Scene]:
    with tempfile.TemporaryDirectory() as folder:
        options = {"strategy": strategy, "drop": "10s", "silence": "1s"}
        made = Scene(Path(folder), topology, weights, max_min=True, **options)
        try:
            made.join()
            yield made
        finally:
            made.node.close()


def report(
    scene_: Scene,
    flows: list[Flow],
    promised: Mapping[Flow, tuple[int, int]],
    quiet: Mapping[Flow, int],
) -> None:
    for host in range(len(scene_.hosts)):
        own = [flow for flow in flows if flow.source == host]
        by_destination = {flow.destination: promised[flow] for flow in own}
        rates = {flow.destination: quiet[flow] for flow in own if flow in quiet}
        scene_.report(host, *by_destination, promised=by_destination, quiet=rates)


def told(
    scene_: Scene,
    flows: list[Flow],
    promised: Mapping[Flow, tuple[int, int]],
    quiet: Mapping[Flow, int] | None = None,
) -> list[int]:
    """Report flows with their weights and guarantees; return the rate of each.

    `quiet` has the rates in kbit/s of those for which nothing waits, for longer than they are taken
    for greedy.
    """
    report(scene_, flows, promised, quiet or {})
    for _ in range(2 if quiet else 0):
        scene_.run_until(scene_.now_ns + 250 * MS)
        report(scene_, flows, promised, quiet or {})
    scene_.run_until(scene_.now_ns + MS)
    rates = {
        (host.host, permit.destination): permit.rate_bps
        for host in scene_.hosts
        for permit in host.directive.permits
    }
    return [rates[flow.source, flow.destination] for flow in flows]


@settings(max_examples=part(60), deadline=None)
@given(cases(st.just(1)), st.sampled_from(["rate", "gcc"]), st.data())
def test_the_controller_gives_what_the_model_gives(
    case: Case, strategy: str, data: st.DataObject
) -> None:
    """A flow's weight is that of its host times that of its VMs, 0 as 1.

    Where nothing waits, it demands half more than it uses, and 1 Mb/s.
    """
    topology, flows = case
    of_host = [data.draw(st.one_of(st.just(1), st.integers(1, 10**6))) for _ in topology.hosts]
    of_vms = [data.draw(st.one_of(st.integers(0, 9), st.integers(0, U16))) for _ in flows]
    weights = {host.name: of_host[at] for at, host in enumerate(topology.hosts)}
    promised = {
        flow: (weight, flow.guarantee_mbps) for flow, weight in zip(flows, of_vms, strict=True)
    }
    calm = data.draw(st.sets(st.sampled_from(flows)))
    quiet = {flow: data.draw(st.integers(1, 10**6)) for flow in flows if flow in calm}
    weighted = [
        replace(
            flow,
            weight=of_host[flow.source] * max(1, promised[flow][0]),
            demand_bps=1500 * quiet[flow] + MBPS if flow in quiet else GREEDY,
        )
        for flow in flows
    ]
    wanted = max_min_shares(topology, weighted, capacities(topology, 980))
    with scene(topology, weights, strategy) as scene_:
        assert told(scene_, flows, promised, quiet) == [max(1, wanted[flow]) for flow in weighted]


@settings(max_examples=part(30), deadline=None)
@given(cases(st.just(1)), st.sampled_from(["rate", "gcc"]), st.data())
def test_weights_of_one_and_no_guarantee_change_nothing(
    case: Case, strategy: str, data: st.DataObject
) -> None:
    topology, flows = case
    neutral = {flow: (data.draw(st.integers(0, 1)), 0) for flow in flows}
    with scene(topology, {}, strategy) as scene_:
        before = told(scene_, flows, dict.fromkeys(flows, (0, 0)))
    with scene(topology, {}, strategy) as scene_:
        assert told(scene_, flows, neutral) == before
