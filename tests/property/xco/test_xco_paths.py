"""Laws of paths and safe shares on random networks with a random spanning tree."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.errors import TopologyError
from xco.topology.graph import Host, Link, Paths, Switch, Topology

RATES = (7, 10**6, 10**9, 10**10)


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Switches in a random tree with links to spare, hosts on them, all in a random order."""
    dice = random.Random(draw(st.integers(0, 2**32)))
    switches = [f"s{number}" for number in range(draw(st.integers(1, 8)))]
    hosts = [f"h{number}" for number in range(draw(st.integers(1, 12)))]
    chosen = [
        (name, switches[dice.randrange(index)]) for index, name in enumerate(switches) if index
    ]
    chosen += [(name, dice.choice(switches)) for name in hosts]
    spare = [tuple(dice.sample(switches, 2)) for _ in range(dice.randrange(6)) if switches[1:]]
    cables = [(*ends, True) for ends in chosen] + [(a, b, False) for a, b in spare]
    dice.shuffle(cables)
    links = [
        Link(*(b, a) if dice.random() < 0.5 else (a, b), capacity_bps=dice.choice(RATES))
        for a, b, _ in cables
    ]
    tree = frozenset(index for index, (_, _, carries) in enumerate(cables) if carries)
    given_tree = tree if spare or dice.random() < 0.5 else None
    topology = Topology(
        tuple(map(Switch, switches)), tuple(map(Host, hosts)), tuple(links), given_tree
    )
    topology.check()
    return topology


def ends(topology: Topology, directed: int) -> tuple[str, str]:
    link = topology.links[directed >> 1]
    return (link.b, link.a) if directed & 1 else (link.a, link.b)


def pairs(topology: Topology) -> list[tuple[int, int]]:
    hosts = range(len(topology.hosts))
    return [(source, destination) for source in hosts for destination in hosts]


@given(networks())
def test_a_path_leads_from_source_to_destination_along_the_tree(topology: Topology) -> None:
    paths = Paths(topology)
    for source, destination in pairs(topology):
        path = paths.path(source, destination)
        nodes = [topology.hosts[source].name]
        for directed in path:
            assert directed >> 1 in set(topology.active_links)
            here, there = ends(topology, directed)
            assert here == nodes[-1]
            nodes.append(there)
        assert nodes[-1] == topology.hosts[destination].name
        assert len(set(nodes)) == len(nodes), "a path is simple"


@given(networks())
def test_the_way_back_is_the_reverse(topology: Topology) -> None:
    paths = Paths(topology)
    for source, destination in pairs(topology):
        back = tuple(directed ^ 1 for directed in reversed(paths.path(destination, source)))
        assert paths.path(source, destination) == back


@given(networks())
def test_a_host_sends_at_the_capacity_of_its_own_link(topology: Topology) -> None:
    paths = Paths(topology)
    for source, destination in pairs(topology):
        if source != destination:
            first = paths.path(source, destination)[0]
            assert topology.uplink(source) == first
            assert topology.host_rate_bps(source) == topology.capacity_bps(first)


@given(networks(), st.randoms(use_true_random=False))
def test_safe_shares_fill_no_link_whoever_sends_to_whom(
    topology: Topology, dice: random.Random
) -> None:
    hosts = range(len(topology.hosts))
    load: Counter[int] = Counter()
    for source in hosts:
        destinations = [dice.choice(hosts) for _ in range(dice.randrange(5))]
        shares = topology.safe_shares_bps(source, destinations)
        for destination, share in zip(destinations, shares, strict=True):
            for directed in Paths(topology).path(source, destination):
                load[directed] += share
    assert all(rate <= topology.capacity_bps(directed) for directed, rate in load.items())


@given(networks())
def test_one_safe_share_is_all_that_could_be_given_to_everyone(topology: Topology) -> None:
    """Some link on the path would overflow if all who may cross it had one bit/s more."""
    hosts = range(len(topology.hosts))
    for source, destination in pairs(topology):
        path = Paths(topology).path(source, destination)
        share = topology.safe_share_bps(source, destination)
        crossing = [
            sum(any(link in Paths(topology).path(s, d) for d in hosts) for s in hosts)
            for link in path
        ]
        assert not path or any(
            count * (share + 1) > topology.capacity_bps(link)
            for link, count in zip(path, crossing, strict=True)
        )


@given(networks(), st.data())
def test_a_tree_that_lacks_a_link_is_refused(topology: Topology, data: st.DataObject) -> None:
    lost = data.draw(st.sampled_from(list(topology.active_links)))
    broken = replace(topology, tree=frozenset(topology.active_links) - {lost})
    with pytest.raises(TopologyError, match="not connected"):
        broken.check()


@given(networks(), st.data())
def test_a_link_too_many_is_refused(topology: Topology, data: st.DataObject) -> None:
    names = [switch.name for switch in topology.switches]
    if len(names) < 2:
        return
    a, b = data.draw(st.permutations(names))[:2]
    index = len(topology.links)
    more = replace(
        topology,
        links=(*topology.links, Link(a, b, 10**9)),
        tree=frozenset(topology.active_links) | {index},
    )
    with pytest.raises(TopologyError, match="closes a loop"):
        more.check()


@given(networks())
def test_a_digest_tells_topologies_apart(topology: Topology) -> None:
    same = replace(topology, tree=frozenset(topology.active_links))
    slower = replace(topology.links[0], capacity_bps=topology.links[0].capacity_bps + 1)
    assert topology.digest() == same.digest()
    other = replace(topology, links=(slower, *topology.links[1:]))
    assert topology.digest() != other.digest()
    assert topology.hosts_digest() == other.hosts_digest()
    moved = replace(other, hosts=(Host(topology.hosts[0].name, ("10.0.0.1",)), *other.hosts[1:]))
    assert topology.hosts_digest() == moved.hosts_digest()
    named = replace(other, hosts=(Host("another"), *other.hosts[1:]))
    assert topology.hosts_digest() != named.hosts_digest()
