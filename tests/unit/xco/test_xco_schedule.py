"""Algorithm 1 on the paper's examples; where it starves, and where the compiled one does not."""

from itertools import pairwise

import pytest
from xco_schedule_rig import MBPS, SLICE_NS, Run

from xco.errors import ControllerError
from xco.scheduler.grant import Grant
from xco.scheduler.reference import PublishedScheduler
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology

GBPS = 1_000_000_000


def test_incast_one_sender_at_a_time_in_turns() -> None:
    """Figure 10(a)."""
    topology = star_topology(6, "1Gbps")
    run = Run(PublishedScheduler(topology, SLICE_NS), topology)
    for host in range(5):
        run.report(host, [5])
    turns = []
    for slice_ in range(1, 11):
        assert len(run.sending) == 1
        turns.append(next(iter(run.sending)))
        run.pass_time(slice_ * SLICE_NS)
    assert set(turns) == {0, 1, 2, 3, 4}
    assert all(a != b for a, b in pairwise(turns))


def test_uplink_of_ten_senders_rates_carries_ten_of_thirteen() -> None:
    """Figure 10(b)."""
    topology = dumbbell(13, 13, "1Gbps", "10Gbps")
    run = Run(PublishedScheduler(topology, SLICE_NS), topology)
    for host in range(13):
        run.report(host, [13 + host])
    assert len(run.sending) == 10
    run.pass_time(20 * SLICE_NS)
    assert len(run.sending) == 10
    assert {x for x, _ in run.served} == set(range(13))


def test_unused_slice_goes_to_the_next_sender() -> None:
    topology = star_topology(3, "1Gbps")
    scheduler = PublishedScheduler(topology)
    assert scheduler.backlogged(0, 0, [2]) == [Grant(0, 2, GBPS)]
    assert scheduler.backlogged(1, 1, [2]) == []
    assert scheduler.gave_up(2, 0) == [Grant(1, 2, GBPS), Grant(0, None, 0)]
    assert scheduler.gave_up(3, 1) == [Grant(1, None, 0)]
    assert scheduler.gave_up(4, 1) == []


def contested() -> Topology:
    """Hosts 0 to 4 on one switch; host 0 will send to 3, and has something for 4 as well."""
    return star_topology(5, "1Gbps")


def test_active_node_turns_to_another_destination_where_that_helps_others() -> None:
    """Lines 40 to 46: the path that it leaves is another's at once."""
    scheduler = PublishedScheduler(contested())
    scheduler.backlogged(0, 1, [4])
    assert scheduler.backlogged(0, 0, [4, 3]) == [Grant(0, 3, GBPS)]
    assert scheduler.backlogged(2, 2, [3]) == []
    assert scheduler.gave_up(3, 1) == [
        Grant(0, 4, GBPS),
        Grant(2, 3, GBPS),
        Grant(1, None, 0),
    ]


def test_active_node_is_left_alone_until_the_threshold() -> None:
    scheduler = PublishedScheduler(contested(), threshold_ns=10)
    scheduler.backlogged(0, 1, [4])
    assert scheduler.backlogged(0, 0, [4, 3]) == [Grant(0, 3, GBPS)]
    assert scheduler.backlogged(2, 2, [3]) == []
    assert scheduler.gave_up(3, 1) == [Grant(1, None, 0)]


def test_destination_without_backlog_keeps_its_grant_to_the_end() -> None:
    scheduler = PublishedScheduler(contested(), threshold_ns=SLICE_NS)
    assert scheduler.backlogged(0, 0, [3]) == [Grant(0, 3, GBPS)]
    assert scheduler.backlogged(1, 1, [3]) == []
    assert scheduler.backlogged(2, 0, []) == []
    assert scheduler.expired(SLICE_NS, 0) == [Grant(1, 3, GBPS), Grant(0, None, 0)]
    assert scheduler.expired(2 * SLICE_NS, 1) == [Grant(1, 3, GBPS)]


def test_sender_faster_than_its_path_never_sends() -> None:
    """Section 7: the limitation that `limit_rates` of the compiled scheduler takes away."""
    topology = dumbbell(1, 1, "10Gbps", "1Gbps")
    assert PublishedScheduler(topology).backlogged(0, 0, [1]) == []


def staggered() -> Topology:
    """Hosts 0, 2 on one switch and 1, 3, 4 on another, all links alike."""
    hosts = tuple(Host(f"h{n}") for n in range(5))
    sides = ["left", "right", "left", "right", "right"]
    links = tuple(Link(h.name, side, 100 * MBPS) for h, side in zip(hosts, sides, strict=True))
    uplink = Link("left", "right", 100 * MBPS)
    return Topology((Switch("left"), Switch("right")), hosts, (*links, uplink))


def test_algorithm_1_starves_a_flow_whose_links_are_never_free_at_once() -> None:
    """Host 0's flow to 4 needs the uplink and 4's link; 2 and 1 hold one each, out of step.

    Whenever a slice ends, one of the two is busy, and the one that is free goes back to who had
    it: no order of traversal and no preemption changes that, since neither has another
    destination. The paper says that preemption prevents starvation; here it does not.
    """
    topology = staggered()
    for threshold_ns in (0, SLICE_NS):
        run = Run(PublishedScheduler(topology, threshold_ns), topology)
        run.report(2, [3])
        run.pass_time(SLICE_NS // 2)
        run.report(1, [4])
        run.report(0, [4])
        run.pass_time(1000 * SLICE_NS)
        assert run.served.get((0, 4), 0) == 0
        assert run.served[1, 4] >= 999
        assert run.served[2, 3] >= 999


def test_host_that_is_none_is_refused_by_name() -> None:
    scheduler = PublishedScheduler(star_topology(3, "1Gbps"))
    with pytest.raises(ControllerError, match="host: 3 is no host"):
        scheduler.expired(0, 3)
    with pytest.raises(ControllerError, match="destination: -1 is no host"):
        scheduler.backlogged(0, 0, [-1])
    with pytest.raises(ControllerError, match="host 1 is backlogged to itself"):
        scheduler.backlogged(0, 1, [0, 1])


def test_a_host_that_left_may_come_back() -> None:
    scheduler = PublishedScheduler(star_topology(3, "1Gbps"))
    scheduler.backlogged(0, 0, [2])
    scheduler.backlogged(0, 1, [2])
    assert scheduler.leave(1, 0) == [Grant(1, 2, GBPS), Grant(0, None, 0)]
    assert scheduler.leave(2, 0) == []
    assert scheduler.backlogged(3, 0, [1]) == [Grant(0, 1, GBPS)]
