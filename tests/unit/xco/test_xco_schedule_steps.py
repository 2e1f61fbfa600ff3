"""Algorithm 1 step by step: who is tried when, who is left alone, what is renewed and released."""

import pytest

from xco.errors import ControllerError
from xco.scheduler.grant import Grant
from xco.scheduler.reference import PublishedScheduler
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology

GBPS = 10**9


def star(hosts: int = 5, threshold_ns: int = 0) -> PublishedScheduler:
    return PublishedScheduler(star_topology(hosts, "1Gbps"), threshold_ns)


def fast_receiver(senders: int, receiver_bps: int) -> Topology:
    """Return senders of 1 Gbit/s and one receiver, the last host, of another speed."""
    hosts = tuple(Host(f"h{n}") for n in range(senders + 1))
    rates = [GBPS] * senders + [receiver_bps]
    links = tuple(Link(h.name, "s", rate) for h, rate in zip(hosts, rates, strict=True))
    return Topology((Switch("s"),), hosts, links)


def test_a_link_is_granted_up_to_its_capacity_to_the_bit() -> None:
    exact = PublishedScheduler(fast_receiver(3, 2 * GBPS))
    assert exact.backlogged(0, 0, [3]) == [Grant(0, 3, GBPS)]
    assert exact.backlogged(0, 1, [3]) == [Grant(1, 3, GBPS)]
    assert exact.backlogged(0, 2, [3]) == []
    short = PublishedScheduler(fast_receiver(3, 2 * GBPS - 1))
    assert short.backlogged(0, 0, [3]) == [Grant(0, 3, GBPS)]
    assert short.backlogged(0, 1, [3]) == []


def test_destinations_are_tried_in_the_order_of_the_report() -> None:
    assert star().backlogged(0, 0, [2, 1, 3]) == [Grant(0, 2, GBPS)]
    busy = star()
    busy.backlogged(0, 4, [2])
    assert busy.backlogged(0, 0, [2, 1, 3]) == [Grant(0, 1, GBPS)]


def test_a_node_turns_to_its_other_destinations_in_a_circle() -> None:
    scheduler = star()
    turns = scheduler.backlogged(0, 0, [1, 2, 3])
    for now in range(1, 7):
        turns += scheduler.expired(now, 0)
    assert [grant.destination for grant in turns] == [1, 2, 3, 1, 2, 3, 1]


def test_a_new_destination_is_tried_before_the_one_being_sent_to() -> None:
    scheduler = star()
    assert scheduler.backlogged(0, 0, [1]) == [Grant(0, 1, GBPS)]
    assert scheduler.backlogged(1, 0, [1, 2]) == [], "only its backlog is renewed"
    assert scheduler.expired(2, 0) == [Grant(0, 2, GBPS)]
    assert scheduler.expired(3, 0) == [Grant(0, 1, GBPS)]


def test_reporting_a_destination_again_does_not_move_it() -> None:
    scheduler = star()
    scheduler.backlogged(0, 0, [1, 2, 3])
    scheduler.backlogged(1, 0, [3, 2, 1])
    assert scheduler.expired(2, 0) == [Grant(0, 2, GBPS)]


def test_a_destination_that_is_left_out_is_forgotten() -> None:
    scheduler = star()
    scheduler.backlogged(0, 0, [1, 2])
    scheduler.backlogged(1, 0, [1])
    assert scheduler.expired(2, 0) == [Grant(0, 1, GBPS)]
    scheduler.backlogged(3, 0, [])
    assert scheduler.expired(4, 0) == [Grant(0, None, 0)]
    assert scheduler.expired(5, 0) == []


def test_a_slice_that_is_given_up_takes_its_destination_from_the_backlog() -> None:
    scheduler = star()
    scheduler.backlogged(0, 0, [1, 2])
    assert scheduler.gave_up(1, 0) == [Grant(0, 2, GBPS)]
    assert scheduler.expired(2, 0) == [Grant(0, 2, GBPS)]
    assert scheduler.gave_up(3, 0) == [Grant(0, None, 0)]
    assert scheduler.gave_up(4, 0) == []


def test_a_slice_that_expires_does_not() -> None:
    scheduler = star()
    scheduler.backlogged(0, 0, [1])
    assert scheduler.expired(1, 0) == [Grant(0, 1, GBPS)]


def test_who_waits_is_asked_before_who_triggered_the_event() -> None:
    scheduler = star()
    scheduler.backlogged(0, 0, [4])
    scheduler.backlogged(0, 1, [4])
    assert scheduler.expired(1, 0) == [Grant(1, 4, GBPS), Grant(0, None, 0)]
    assert scheduler.expired(2, 1) == [Grant(0, 4, GBPS), Grant(1, None, 0)]


def test_the_order_of_those_who_wait_turns_with_each_event() -> None:
    scheduler = star()
    for host in (0, 1, 2, 3):
        scheduler.backlogged(0, host, [4])
    served = [0]
    for now in range(1, 9):
        (started,) = (g.host for g in scheduler.expired(now, served[-1]) if g.rate_bps)
        served.append(started)
    # Before event n the nodes are ordered from n mod 5 on; who triggered it comes last.
    assert served == [0, 1, 2, 3, 0, 1, 0, 1, 2]


@pytest.mark.parametrize("event", ["expired", "gave_up"])
def test_an_event_of_a_node_that_does_not_send_turns_no_order(event: str) -> None:
    scheduler = star()
    for host in (0, 1, 2, 3):
        scheduler.backlogged(0, host, [4])
    for _ in range(2):
        assert getattr(scheduler, event)(1, 1) == []
    assert scheduler.expired(1, 0) == [Grant(1, 4, GBPS), Grant(0, None, 0)]


@pytest.mark.parametrize(("now", "moves"), [(10, False), (11, True), (12, True)])
def test_an_active_node_is_left_alone_until_it_has_sent_for_the_threshold(
    now: int, moves: bool
) -> None:
    scheduler = star(threshold_ns=10)
    scheduler.backlogged(0, 1, [4])
    assert scheduler.backlogged(1, 0, [4, 3]) == [Grant(0, 3, GBPS)]
    assert scheduler.backlogged(1, 2, [3]) == []
    answer = scheduler.gave_up(now, 1)
    if moves:
        assert answer == [Grant(0, 4, GBPS), Grant(2, 3, GBPS), Grant(1, None, 0)]
    else:
        assert answer == [Grant(1, None, 0)]


def test_a_node_that_goes_on_with_what_it_does_is_told_nothing() -> None:
    scheduler = PublishedScheduler(fast_receiver(3, 2 * GBPS))
    for host in (0, 1, 2):
        scheduler.backlogged(0, host, [3])
    assert scheduler.expired(1, 0) == [Grant(2, 3, GBPS), Grant(0, None, 0)]
    assert scheduler.expired(2, 1) == [Grant(0, 3, GBPS), Grant(1, None, 0)]


def test_a_node_that_goes_on_keeps_its_age() -> None:
    """It does not begin again, and so is old enough to be moved."""
    scheduler = star(threshold_ns=10)
    scheduler.backlogged(0, 1, [4])
    scheduler.backlogged(0, 0, [4, 3])
    scheduler.backlogged(5, 2, [3])
    assert scheduler.expired(9, 1) == [Grant(1, 4, GBPS)]
    assert scheduler.gave_up(20, 1) == [
        Grant(0, 4, GBPS),
        Grant(2, 3, GBPS),
        Grant(1, None, 0),
    ]


def test_leaving_frees_the_links_and_forgets_the_backlog() -> None:
    scheduler = star(threshold_ns=10)
    scheduler.backlogged(0, 0, [4, 3])
    scheduler.backlogged(0, 1, [4])
    assert scheduler.leave(1, 0) == [Grant(1, 4, GBPS), Grant(0, None, 0)]
    assert scheduler.expired(2, 1) == [Grant(1, 4, GBPS)], "host 0 contends no more"
    assert scheduler.leave(3, 0) == []
    assert scheduler.leave(4, 2) == []


def test_a_host_that_waits_may_leave_unheard() -> None:
    scheduler = star()
    scheduler.backlogged(0, 0, [4])
    scheduler.backlogged(0, 1, [4])
    assert scheduler.leave(1, 1) == []
    assert scheduler.expired(2, 0) == [Grant(0, 4, GBPS)]


def test_an_uplink_is_shared_by_as_many_as_it_carries() -> None:
    topology = dumbbell(3, 3, "1Gbps", "2Gbps")
    scheduler = PublishedScheduler(topology)
    assert scheduler.backlogged(0, 0, [3]) == [Grant(0, 3, GBPS)]
    assert scheduler.backlogged(0, 1, [4]) == [Grant(1, 4, GBPS)]
    assert scheduler.backlogged(0, 2, [5]) == []
    assert scheduler.backlogged(0, 3, [2]) == [Grant(3, 2, GBPS)], "the other way is free"
    assert scheduler.gave_up(1, 0) == [Grant(2, 5, GBPS), Grant(0, None, 0)]


@pytest.mark.parametrize("host", [-1, 5])
def test_a_number_that_is_no_host_is_refused_by_every_event(host: int) -> None:
    scheduler = star()
    for event in (scheduler.expired, scheduler.gave_up, scheduler.leave):
        with pytest.raises(ControllerError, match=f"host: {host} is no host"):
            event(0, host)
    with pytest.raises(ControllerError, match=f"host: {host} is no host"):
        scheduler.backlogged(0, host, [1])
    with pytest.raises(ControllerError, match="destination: 5 is no host"):
        scheduler.backlogged(0, 0, [1, 5])
    assert scheduler.backlogged(0, 0, [1]) == [Grant(0, 1, GBPS)], "nothing was kept"
