"""What the loop decides, in simulated time, against the oracles of xco_strategies."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from xco_controller_scenes import MS, US, Scene
from xco_strategies.hybrid import leftover_rates
from xco_strategies.rate import Flow, capacities, equal_shares, max_min_shares
from xco_strategies.timeslice import Calendar, Turn, congested

from xco.protocol.messages import Mode, Permit, Status, Strategy
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.shapes import dumbbell, star_topology

GBPS = 10**9
PACED = 98 * GBPS // 100


def uneven() -> Topology:
    """Return a fast and two slow senders on one switch, with a fast receiver."""
    rates = {"fast": GBPS, "slow1": GBPS // 10, "slow2": GBPS // 10, "sink": GBPS}
    links = tuple(Link(name, "switch", rate) for name, rate in rates.items())
    return Topology((Switch("switch"),), tuple(map(Host, rates)), links)


@pytest.fixture
def scenes() -> Iterator[list[Scene]]:
    opened: list[Scene] = []
    yield opened
    for scene in opened:
        scene.node.close()


@pytest.fixture
def star(tmp_path: Path, scenes: list[Scene]) -> Scene:
    scenes.append(Scene(tmp_path, star_topology(4, "1Gbps")))
    scenes[0].join()
    return scenes[0]


def test_who_joins_is_told_the_times_and_is_closed(star: Scene) -> None:
    for host in star.hosts:
        (welcome,) = host.welcomes
        assert welcome.status is Status.JOINED
        assert (welcome.slice_ns, welcome.silence_ns) == (2 * MS, 50 * MS)
        assert host.directive.mode is Mode.CLOSED


def test_the_first_backlog_is_granted_at_once(star: Scene) -> None:
    star.report(0, 3)
    directive = star.hosts[0].directive
    assert directive.mode is Mode.SLICE
    assert (directive.start_ns, directive.end_ns) == (star.now_ns, star.now_ns + 2 * MS)
    assert directive.permits == (Permit(3, PACED),)


def test_the_next_sender_starts_a_guard_time_after_the_end_and_knows_it_before(
    star: Scene,
) -> None:
    star.report(0, 3)
    star.report(1, 3)
    first = star.hosts[0].directive
    assert star.hosts[1].directive.mode is Mode.CLOSED
    star.run_until(first.end_ns - 200 * US)
    second = star.hosts[1].directive
    assert second.header.sent_ns == first.end_ns - 200 * US
    assert second.start_ns == first.end_ns + 30 * US
    assert second.end_ns == second.start_ns + 2 * MS


def test_a_slice_given_up_passes_on_at_once(star: Scene) -> None:
    star.report(0, 3)
    star.report(1, 3)
    star.now_ns += 300 * US
    star.report(0, gave_up=star.hosts[0].directive.header.sequence)
    assert star.hosts[1].directive.mode is Mode.SLICE
    assert star.hosts[1].directive.start_ns == star.now_ns


def test_giving_up_an_older_slice_gives_up_nothing(star: Scene) -> None:
    star.report(0, 3)
    old = star.hosts[0].directive.header.sequence
    star.report(1, 3)
    star.run_until(star.now_ns + 5 * MS)
    assert star.hosts[0].directive.header.sequence > old
    before = star.node.counters["events_gave_up"]
    star.report(0, 3, gave_up=old)
    assert star.node.counters["events_gave_up"] == before


def test_a_renewed_slice_is_given_up_with_the_one_before(
    tmp_path: Path, scenes: list[Scene]
) -> None:
    star = Scene(tmp_path, star_topology(4, "1Gbps"), policy="published")
    scenes.append(star)
    star.join()
    star.report(0, 3)
    star.report(1, 2)
    first = star.hosts[0].directive
    star.run_until(first.end_ns - 100 * US)
    assert star.hosts[0].directive.start_ns == first.end_ns, "renewed"
    star.report(0, gave_up=first.header.sequence)
    assert star.node.counters["events_gave_up"] == 1


def test_all_senders_get_turns(star: Scene) -> None:
    for host in (0, 1, 2):
        star.report(host, 3)
    star.run_until(star.now_ns + 60 * MS)
    turns = [sum(heard.mode is Mode.SLICE for heard in star.hosts[i].heard) for i in (0, 1, 2)]
    assert min(turns) > 20 / 3
    assert max(turns) - min(turns) <= 5


def test_a_host_that_leaves_ends_its_slice_at_once(star: Scene) -> None:
    star.report(0, 3)
    star.report(1, 3)
    star.now_ns += 100 * US
    star.say(star.hosts[0].leave(star.now_ns))
    assert star.hosts[1].directive.mode is Mode.SLICE
    assert star.hosts[1].directive.start_ns == star.now_ns + 30 * US


def test_a_host_that_falls_silent_is_dropped_and_the_others_go_on(star: Scene) -> None:
    star.report(0, 3)
    for _ in range(50):
        star.report(1, 3)
        star.report(2, 1)
        star.report(3)
        star.run_until(star.now_ns + 5 * MS)
    assert star.node.counters["hosts_gone_silent"] == 1
    assert star.node.counters["hosts_joined"] == 3
    before = len(star.hosts[1].heard)
    star.run_until(star.now_ns + 10 * MS)
    later = star.hosts[1].heard[before:]
    assert all(now.start_ns <= then.end_ns <= now.end_ns for then, now in pairwise(later))
    star.report(0, 3)
    assert star.hosts[0].welcomes[-1].status is Status.HELLO_FIRST


def test_every_host_hears_within_each_heartbeat(star: Scene) -> None:
    start = star.now_ns
    for _ in range(10):
        for host in range(4):
            star.report(host)
        star.run_until(star.now_ns + 10 * MS)
    for host in star.hosts:
        heard = [start, *(directive.header.sent_ns for directive in host.heard)]
        gaps = [after - before for before, after in pairwise(heard)]
        assert max(gaps) <= 10 * MS


def test_directives_carry_the_instants_for_the_hosts_clock(star: Scene) -> None:
    report = star.hosts[0].report(123_456, 3)
    star.now_ns += 7
    star.say(report)
    directive = star.hosts[0].directive
    assert (directive.echo_sent_ns, directive.echo_received_ns) == (123_456, star.now_ns)


def test_equal_shares_are_the_papers(tmp_path: Path, scenes: list[Scene]) -> None:
    topology = dumbbell(13, 13, "1Gbps", "10Gbps")
    scene = Scene(tmp_path, topology, strategy="rate")
    scenes.append(scene)
    scene.join()
    for host in range(13):
        scene.report(host, 13 + host)
    scene.run_until(scene.now_ns + MS)
    flows = [Flow(host, 13 + host) for host in range(13)]
    wanted = equal_shares(topology, flows, capacities(topology, 980))
    assert set(wanted.values()) == {9_800_000_000 // 13}
    for flow in flows:
        directive = scene.hosts[flow.source].directive
        assert directive.mode is Mode.RATE
        assert directive.permits == (Permit(flow.destination, wanted[flow]),)


def test_who_may_speed_up_waits_until_the_others_have_heard(
    tmp_path: Path, scenes: list[Scene]
) -> None:
    scene = Scene(tmp_path, star_topology(3, "1Gbps"), strategy="rate")
    scenes.append(scene)
    scene.join()
    scene.report(0, 2)
    scene.run_until(scene.now_ns + MS)
    scene.report(1, 2)
    scene.run_until(scene.now_ns + MS)
    slower, faster = scene.hosts[0].directive, scene.hosts[1].directive
    assert slower.permits == (Permit(2, PACED // 2),)
    assert faster.start_ns == slower.start_ns + 200 * US


def test_max_min_gives_the_slow_what_they_can_use_and_the_fast_the_rest(
    tmp_path: Path, scenes: list[Scene]
) -> None:
    scene = Scene(tmp_path, uneven(), strategy="rate", max_min=True)
    scenes.append(scene)
    scene.join()
    for host in (0, 1, 2):
        scene.report(host, 3)
    scene.run_until(scene.now_ns + MS)
    flows = [Flow(host, 3) for host in (0, 1, 2)]
    wanted = max_min_shares(uneven(), flows, capacities(uneven(), 980))
    assert [wanted[flow] for flow in flows] == [784_000_000, 98_000_000, 98_000_000]
    for flow in flows:
        assert scene.hosts[flow.source].directive.permits == (Permit(3, wanted[flow]),)


def test_hybrid_gives_what_slices_leave(tmp_path: Path, scenes: list[Scene]) -> None:
    scene = Scene(tmp_path, uneven(), strategy="hybrid", preempt_after="1s")
    scenes.append(scene)
    scene.join()
    scene.report(1, 3)
    scene.report(0, 3)
    scene.run_until(scene.now_ns + MS)
    assert scene.hosts[1].directive.mode is Mode.SLICE
    turn = Turn(1, 3, GBPS // 10, 0, 1)
    wanted = leftover_rates(uneven(), [turn], [Flow(0, 3)], 980)
    assert wanted == {Flow(0, 3): 882_000_000}
    assert scene.hosts[0].directive.mode is Mode.RATE
    assert scene.hosts[0].directive.permits == (Permit(3, 882_000_000),)


def test_hybrid_does_not_delay_a_turn_for_what_comes_on_top(
    tmp_path: Path, scenes: list[Scene]
) -> None:
    scene = Scene(tmp_path, uneven(), strategy="hybrid")
    scenes.append(scene)
    scene.join()
    scene.report(0, 1, 2)
    turn = scene.hosts[0].directive
    assert (turn.start_ns, len(turn.permits)) == (scene.now_ns, 1)
    scene.run_until(scene.now_ns + MS)
    both = scene.hosts[0].directive
    assert both.end_ns == turn.end_ns
    assert sorted(both.permits, key=lambda permit: permit.destination) == [
        Permit(1, 98_000_000),
        Permit(2, 98_000_000),
    ]


def test_on_demand_only_those_who_meet_at_a_link_are_coordinated(
    tmp_path: Path, scenes: list[Scene]
) -> None:
    scene = Scene(tmp_path, star_topology(5, "1Gbps"), on_demand=True, calm="20ms")
    scenes.append(scene)
    scene.join()
    assert {host.directive.mode for host in scene.hosts} == {Mode.OPEN}
    scene.report(0, 3, rate_kbps=800_000)
    scene.run_until(scene.now_ns + MS)
    assert scene.hosts[0].directive.mode is Mode.OPEN
    scene.report(1, 3, rate_kbps=100_000)
    scene.report(2, 4, rate_kbps=900_000)
    scene.run_until(scene.now_ns + MS)
    modes = [host.directive.mode for host in scene.hosts]
    assert modes[2] is Mode.OPEN
    assert Mode.OPEN not in modes[:2]
    assert Mode.SLICE in modes[:2]


def test_contention_ends_only_after_it_was_calm(tmp_path: Path, scenes: list[Scene]) -> None:
    scene = Scene(tmp_path, star_topology(4, "1Gbps"), on_demand=True, calm="20ms")
    scenes.append(scene)
    scene.join()
    scene.report(0, 3)
    scene.report(1, 3)
    scene.run_until(scene.now_ns + MS)
    assert scene.node.counters["links_contended"] == 1
    for host in (0, 1):
        scene.report(host)
    scene.run_until(scene.now_ns + 15 * MS)
    assert scene.node.counters["hosts_coordinated"] == 2
    scene.run_until(scene.now_ns + 15 * MS)
    assert scene.node.counters["links_contended"] == 0
    assert [scene.hosts[host].directive.mode for host in (0, 1)] == [Mode.OPEN] * 2


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_strategy_changes_while_it_runs(star: Scene, strategy: Strategy) -> None:
    star.report(0, 3)
    star.report(1, 3)
    assert star.node.set_strategy(star.now_ns, strategy)
    star.settle()
    star.run_until(star.now_ns + MS)
    assert star.hosts[0].welcomes[-1].strategy is strategy
    modes = {star.hosts[host].directive.mode for host in (0, 1)}
    by_rate = strategy in {Strategy.RATE, Strategy.GCC}
    assert modes == ({Mode.RATE} if by_rate else {Mode.SLICE, Mode.CLOSED})
    assert not star.node.set_strategy(star.now_ns, 4)


def test_the_calendar_keeps_turns_apart() -> None:
    topology = star_topology(3, "1Gbps")
    calendar = Calendar(topology, slice_ns=2 * MS, guard_ns=30 * US)
    first = calendar.starts(0, 2, GBPS, 0)
    calendar.ends(first, first.end_ns)
    second = calendar.starts(1, 2, GBPS, first.end_ns)
    assert second.start_ns == first.end_ns + 30 * US
    assert congested(topology, [first, second]) == set()
    assert congested(topology, [first, Turn(1, 2, GBPS, MS, 3 * MS)]) == {5}


def test_the_loop_starts_turns_when_the_calendar_does(star: Scene) -> None:
    calendar = Calendar(star.topology, slice_ns=2 * MS, guard_ns=30 * US)
    for host in (0, 1, 2):
        star.report(host, 3)
    star.run_until(star.now_ns + 40 * MS)
    heard = sorted(
        (directive.start_ns, directive.end_ns, host.host)
        for host in star.hosts
        for directive in set(host.heard)
        if directive.mode is Mode.SLICE
    )
    announced = list(dict.fromkeys(heard))
    at = announced[0][0]
    for start, end, host in announced:
        turn = calendar.starts(host, 3, GBPS, at)
        assert (turn.start_ns, turn.end_ns) == (start, end)
        calendar.ends(turn, turn.end_ns)
        at = end
