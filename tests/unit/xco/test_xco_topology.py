"""The paper's topologies, and every kind of mistake: which table and key, and how to mend it."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest

from xco.errors import TopologyError, UnitError
from xco.topology.graph import Host, Link, Paths, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology, tree_topology

GBPS = 10**9


def ring(tree: frozenset[int] | None) -> Topology:
    """Three switches in a ring, a host on each."""
    names = ["s1", "s2", "s3"]
    uplinks = [Link("s1", "s2", 10 * GBPS), Link("s2", "s3", 10 * GBPS), Link("s3", "s1", GBPS)]
    edges = [Link(f"h{name[1]}", name, GBPS) for name in names]
    hosts = tuple(Host(f"h{name[1]}") for name in names)
    return Topology(tuple(map(Switch, names)), hosts, (*uplinks, *edges), tree)


def test_the_tree_carries_what_the_ring_may_not() -> None:
    topology = ring(frozenset({0, 1, 3, 4, 5}))
    topology.check()
    assert Paths(topology).path(0, 2) == (2 * 3, 2 * 0, 2 * 1, 2 * 5 + 1)
    assert Paths(topology).path(2, 0) == (2 * 5, 2 * 1 + 1, 2 * 0 + 1, 2 * 3 + 1)
    assert Paths(topology).path(1, 1) == ()
    assert topology.spanning.senders(2 * 2) == 0


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        (lambda t: replace(t, tree=None), "link[2]", "closes a loop, and no tree is given"),
        (lambda t: replace(t, tree=frozenset(range(6))), "link[2].tree", "closes a loop within"),
        (lambda t: replace(t, tree=frozenset({0, 3, 4, 5})), "switch.s3", "by the tree"),
        (lambda t: replace(t, tree=frozenset({0, 1, 3, 4})), "host.h3", "by the tree"),
        (lambda t: replace(t, tree=frozenset({0, 99})), "tree", "there is no link 99"),
        (lambda t: replace(t, tree=frozenset({-1})), "tree", "there is no link -1"),
    ],
)
def test_a_tree_that_is_none_is_refused(
    change: Callable[[Topology], Topology], key: str, problem: str
) -> None:
    refused(change(ring(frozenset({0, 1, 3, 4, 5}))), key, problem)


@pytest.mark.parametrize(
    ("capacity", "said"), [(0, "0bps"), (-GBPS, "-1Gbps"), (10**14, "100Tbps")]
)
def test_a_capacity_that_cannot_be_is_refused(capacity: int, said: str) -> None:
    topology = dumbbell(2, 1, "1Gbps", "10Gbps")
    links = (*topology.links[:-1], replace(topology.links[-1], capacity_bps=capacity))
    refused(replace(topology, links=links), "link[3].capacity", f"left - right cannot carry {said}")


@pytest.mark.parametrize(
    ("link", "key", "problem"),
    [
        (Link("h1", "swich", GBPS), "link[2].between", "there is no switch or host 'swich'"),
        (Link("switch", "switch", GBPS), "link[2].between", "linked to itself"),
        (Link("h2", "switch", GBPS, -1), "link[2].buffer", "-1 bytes"),
        (Link("h2", "switch", GBPS), "host.h2", "has 2 links"),
    ],
)
def test_a_link_that_cannot_be_is_refused(link: Link, key: str, problem: str) -> None:
    star = star_topology(2, "1Gbps")
    refused(replace(star, links=(*star.links, link)), key, problem)


@pytest.mark.parametrize(
    ("hosts", "key", "problem"),
    [
        ((Host("h1"), Host("h2"), Host("h3")), "host.h3", "has no links"),
        ((Host("h1"), Host("h1")), "host.h1", "taken by host.h1"),
        ((Host("h1"), Host("switch")), "host.switch", "taken by switch.switch"),
        ((Host("h1"), Host("h 2")), "host.h 2", "is no name"),
        ((Host("h1"), Host("")), "host.", "is no name"),
        ((Host("h1", ("10.0.0.1/24",)), Host("h2")), "host.h1.addresses", "is no address"),
        (
            (Host("h1", ("224.0.0.1",)), Host("h2")),
            "host.h1.addresses",
            "cannot be the address of a VM",
        ),
        (
            (Host("h1", ("0.0.0.0",)), Host("h2")),
            "host.h1.addresses",
            "cannot be the address of a VM",
        ),
        (
            (Host("h1", ("FE80:0::1",)), Host("h2", ("fe80::1",))),
            "host.h2.addresses",
            "also one of h1",
        ),
        ((), "host", "there is none"),
        (tuple(Host(f"h{number}") for number in range(65_536)), "host", "65535 at most"),
    ],
)
def test_hosts_that_cannot_be_are_refused(hosts: tuple[Host, ...], key: str, problem: str) -> None:
    refused(replace(star_topology(2, "1Gbps"), hosts=hosts), key, problem)


def test_switches_that_nothing_connects_are_refused() -> None:
    star = star_topology(2, "1Gbps")
    lone = replace(star, switches=(*star.switches, Switch("lone")))
    refused(lone, "switch.lone", "not connected to switch.switch")
    halves = replace(
        dumbbell(1, 1, "1Gbps", "1Gbps"), links=dumbbell(1, 1, "1bps", "1bps").links[:2]
    )
    refused(halves, "switch.right", "not connected to switch.left")


def refused(topology: Topology, key: str, problem: str) -> None:
    with pytest.raises(TopologyError) as caught:
        topology.check()
    assert caught.value.key == key
    assert problem in caught.value.problem
    assert caught.value.fix


def test_addresses_find_their_host_however_they_are_written() -> None:
    star = star_topology(2, "1Gbps")
    hosts = (Host("h1", ("10.0.0.1", "2001:db8::1")), Host("h2", ("10.0.0.2",)))
    topology = replace(star, hosts=hosts)
    assert topology.host_of("10.0.0.2") == 1
    assert topology.host_of("2001:DB8:0:0::1") == 0
    assert topology.host_of("10.0.0.3") is None
    assert (topology.host_index("h2"), topology.host_index("switch")) == (1, None)
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        topology.host_of("10.0.0")


def test_in_an_incast_the_receivers_link_is_shared_by_all_who_may_send() -> None:
    topology = star_topology(6, "1Gbps")
    assert topology.safe_share_bps(0, 5) == GBPS // 5
    assert topology.safe_share_bps(3, 3) == GBPS


def test_flows_to_several_hosts_divide_what_they_share() -> None:
    topology = dumbbell(4, 2, "1Gbps", "2Gbps")
    alone = topology.safe_share_bps(0, 4)
    assert alone == GBPS // 5, "five others may send to r1"
    assert topology.safe_shares_bps(0, [4, 4]) == (alone // 2, alone // 2)
    assert topology.safe_shares_bps(0, [4, 5]) == (alone, alone)
    slow = dumbbell(4, 2, "1Gbps", "400Mbps")
    assert slow.safe_shares_bps(0, [4, 5]) == (50_000_000, 50_000_000)


def test_the_papers_tree_has_its_racks_rows_and_rates() -> None:
    topology = tree_topology(4)
    topology.check()
    assert len(topology.hosts) == 800
    assert len(topology.switches) == 1 + 4 + 40
    paths = Paths(topology)
    assert len(paths.path(0, 19)) == 2, "within a rack"
    assert len(paths.path(0, 20)) == 4, "within a row"
    across = paths.path(0, 799)
    assert [topology.capacity_bps(link) // GBPS for link in across] == [1, 10, 10, 10, 10, 1]
    assert topology.safe_share_bps(0, 799) == GBPS // 799
    assert topology.hosts[41].name == "h1-3-2"
    assert topology.host_of(topology.hosts[41].addresses[0]) == 41


def test_time_grows_with_the_number_of_hosts_and_not_with_its_square() -> None:
    # By turns, and the least of each: other work on the machine makes a turn cost more, never less.
    turns = [[seconds_for(rows) for rows in (25, 250)] for _ in range(3)]
    small, large = map(min, zip(*turns, strict=True))
    assert large < 40 * small


def seconds_for(rows: int) -> float:
    """Return the CPU seconds for a tree of 200 hosts a row: its check, and a path of each."""
    hosts, started = 200 * rows, time.process_time()
    topology = tree_topology(rows)
    topology.check()
    paths = Paths(topology)
    assert sum(len(paths.path(host, hosts - 1 - host)) for host in range(hosts)) > 5 * hosts
    return time.process_time() - started


def test_the_paths_of_fifty_thousand_hosts_are_small() -> None:
    topology = tree_topology(250)
    tracemalloc.start()
    paths = Paths(topology)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(paths.path(0, 49_999)) == 6
    assert peak < 1000 * 50_000, "no more than 1000 bytes a host"


def test_regular_shapes_refuse_counts_and_rates_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="at least one"):
        tree_topology(0)
    with pytest.raises(UnitError, match="capacity"):
        star_topology(2, "fast")
    with pytest.raises(ValueError, match="one tree"):
        Paths(ring(None))
