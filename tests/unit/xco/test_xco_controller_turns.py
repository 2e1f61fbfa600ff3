"""Turns that end early, hosts at their safe shares, what is kept of flows; in simulated time."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from xco_controller_rig import Node
from xco_controller_scenes import MS, US, Scene, Speaker

from xco.protocol.messages import Directive, Flag, Mode, Status, Welcome
from xco.topology.graph import Topology
from xco.topology.shapes import dumbbell, star_topology

GBPS = 10**9
LEAD = 200 * US
FIVE = star_topology(5, "1Gbps")
NewScene = Callable[..., Scene]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[NewScene]:
    """Make scenes in which all hosts have joined."""
    opened: list[Scene] = []

    def new(topology: Topology = FIVE, **settings: object) -> Scene:
        opened.append(Scene(tmp_path, topology, **settings))
        opened[-1].join()
        return opened[-1]

    yield new
    for one in opened:
        one.node.close()


def renewed(scene_: Scene) -> Directive:
    """Let host 0 send to 4 alone until its next slice is announced; return the running one."""
    scene_.report(0, 4)
    first = scene_.hosts[0].directive
    scene_.run_until(first.end_ns - LEAD // 2)
    assert scene_.hosts[0].directive.start_ns == first.end_ns, "renewed"
    return first


def test_a_renewal_that_was_announced_is_taken_back_when_the_slice_before_is_given_up(
    scene: NewScene,
) -> None:
    five = scene(policy="published")
    first = renewed(five)
    five.report(0, gave_up=first.header.sequence)
    last = five.hosts[0].directive
    assert (last.mode, last.start_ns) == (Mode.CLOSED, five.now_ns)


def test_nobody_starts_before_that_has_been_heard(scene: NewScene) -> None:
    five = scene(policy="published")
    first = renewed(five)
    five.report(0, gave_up=first.header.sequence)
    five.report(1, 4)
    assert five.hosts[1].directive.start_ns >= five.now_ns + LEAD


def test_who_is_preempted_has_heard_it_before_another_starts(scene: NewScene) -> None:
    five = scene(slice="10ms", policy="published", preempt_after="1ms", silence="1s", drop="2s")
    for host, group in ((1, [3]), (0, [3]), (0, [3, 4]), (2, [4])):
        five.report(host, *group)
    five.run_until(five.now_ns + 3 * MS)
    five.report(1, gave_up=five.hosts[1].directive.header.sequence)
    assert five.node.counters["slices_preempted"] == 1
    assert {five.hosts[host].directive.permits[0].destination for host in (0, 2)} == {3, 4}
    assert five.hosts[0].directive.start_ns == five.now_ns + LEAD
    assert five.hosts[2].directive.start_ns == five.now_ns + LEAD + 30 * US


def test_what_was_given_up_counts_until_then(scene: NewScene) -> None:
    five = scene()
    five.report(0, 4)
    five.now_ns += 300 * US
    five.report(0, gave_up=five.hosts[0].directive.header.sequence)
    assert five.node.granted_ns(0) == 300 * US


def test_a_turn_that_will_be_given_up_ends_when_its_host_says(scene: NewScene) -> None:
    five = scene()
    five.report(0, 4)
    five.report(1, 4)
    first = five.hosts[0].directive
    free = five.now_ns + 700 * US
    five.report(0, gave_up=first.header.sequence, free_ns=free)
    five.run_until(free - LEAD)
    second = five.hosts[1].directive
    assert (second.mode, second.start_ns) == (Mode.SLICE, free + 30 * US)
    assert five.hosts[0].directive is first  # it needs to hear nothing
    five.run_until(free)
    assert five.node.granted_ns(0) == free - first.start_ns


def test_no_turn_ends_later_than_was_granted_whatever_its_host_says(scene: NewScene) -> None:
    five = scene()
    five.report(0, 4)
    five.report(1, 4)
    first = five.hosts[0].directive
    five.report(0, gave_up=first.header.sequence, free_ns=2**61 - 1)
    five.run_until(first.end_ns - LEAD)
    assert five.hosts[1].directive.start_ns == first.end_ns + 30 * US


def test_a_host_that_leaves_sends_on_though_its_next_turn_is_announced(scene: NewScene) -> None:
    five = scene()
    five.report(0, 4)
    first = five.hosts[0].directive
    five.run_until(first.start_ns + 300 * US)
    free = first.start_ns + 1600 * US
    five.report(0, gave_up=first.header.sequence, free_ns=free)
    five.report(0, 3, gave_up=first.header.sequence, free_ns=free)
    five.run_until(free)
    told = [
        (one.permits[0].destination, one.start_ns) for one in five.hosts[0].heard if one.permits
    ]
    assert told == [(4, first.start_ns), (3, free)]
    assert all(one.end_ns > free for one in five.hosts[0].heard if one.permits)


def test_an_end_that_is_told_ahead_costs_nobody_else_its_share(scene: NewScene) -> None:
    def granted(ahead: int) -> list[int]:
        five = scene(policy="fair", silence="10s", drop="20s")
        five.report(1, 3)
        five.report(2, 3)
        for _ in range(100):
            five.report(0, 4)
            mine = five.hosts[0].directive
            assert mine.mode is Mode.SLICE
            five.run_until(max(five.now_ns, mine.start_ns) + 500 * US)
            five.report(0, gave_up=mine.header.sequence, free_ns=five.now_ns + ahead)
            five.run_until(five.now_ns + max(ahead, 100 * US) + 100 * US)
            for host in (1, 2):
                five.report(host, 3)
        return [five.node.granted_ns(host) for host in (1, 2)]

    for one, other in zip(granted(0), granted(900 * US), strict=True):
        assert other / one > 0.9


def test_a_turn_that_ended_in_the_past_ends_now(scene: NewScene) -> None:
    five = scene()
    five.report(0, 4)
    five.report(1, 4)
    five.now_ns += 900 * US
    five.report(0, gave_up=five.hosts[0].directive.header.sequence, free_ns=1)
    assert five.hosts[1].directive.start_ns == five.now_ns


def fall_back(scene_: Scene, *hosts: int) -> None:
    for host in hosts:
        scene_.report(host, flags=Flag.FELL_BACK)


@pytest.mark.parametrize("strategy", ["timeslice", "rate", "hybrid"])
def test_hosts_that_fell_back_are_left_their_safe_shares(scene: NewScene, strategy: str) -> None:
    five = scene(strategy=strategy)
    fall_back(five, 0, 1)
    five.report(2, 4)
    five.run_until(five.now_ns + MS)
    (permit,) = five.hosts[2].directive.permits
    safe = sum(FIVE.safe_share_bps(host, 4) for host in (0, 1))
    assert permit.rate_bps == (GBPS - safe) * 98 // 100


def test_a_safe_share_is_taken_off_the_links_that_it_may_cross_alone(scene: NewScene) -> None:
    """Of the uplink the half is left, of a receiver's link two thirds, of the way to it all."""
    two = scene(dumbbell(2, 2, "1Gbps", "2Gbps"))
    fall_back(two, 0)
    assert told_alone(two, 1, 3) == 490_000_000
    assert told_alone(two, 2, 3) == 653_333_332
    assert told_alone(two, 2, 0) == 980_000_000


def told_alone(scene_: Scene, host: int, destination: int) -> int:
    """Let a host send for a moment; return the rate that it was told."""
    scene_.report(host, destination)
    directive = scene_.hosts[host].directive
    scene_.now_ns += 100 * US
    scene_.report(host, gave_up=directive.header.sequence)
    (permit,) = directive.permits
    return permit.rate_bps


def test_all_is_there_again_when_they_hear_again_or_leave(scene: NewScene) -> None:
    five = scene(slice="1ms")
    fall_back(five, 0, 1, 3)
    five.report(0)
    five.say(five.hosts[1].leave(five.now_ns))
    five.say(five.hosts[3].hello(five.now_ns))
    five.report(2, 4)
    (permit,) = five.hosts[2].directive.permits
    assert permit.rate_bps == 980_000_000


def test_a_host_that_says_nothing_counts_as_fallen_back_after_the_silence(scene: NewScene) -> None:
    five = scene(silence="30ms", drop="60ms")
    start = five.now_ns
    told: dict[int, int] = {}
    for elapsed in range(0, 90, 5):
        for host in (1, 2, 3):
            five.report(host, *([4] if host == 2 else []))
        five.run_until(start + elapsed * MS)
        told[elapsed] = five.hosts[2].directive.permits[0].rate_bps
    assert told[25] == 980_000_000
    assert told[45] == told[85] < 980_000_000, "dropped, it may yet send"
    assert told[85] == (GBPS - FIVE.safe_share_bps(0, 4)) * 98 // 100


@pytest.mark.parametrize("weight", [1, 3])
def test_pairs_that_were_backlogged_once_are_not_kept(tmp_path: Path, weight: int) -> None:
    topology = star_topology(60, "1Gbps")
    many = Scene(tmp_path, topology, drop="10s", silence="5s", policy="fair")
    many.node.close()
    with (tmp_path / "controller.loop").open("a") as file:
        file.writelines(f"weight {host} {weight}\n" for host in range(60))
    many.node = Node(tmp_path / "controller.loop")
    many.join()
    at_first = backlogged_once(many, range(1, 25))
    assert backlogged_once(many, range(25, 60)) == at_first
    many.node.close()


def test_a_host_of_more_weight_is_served_more(tmp_path: Path) -> None:
    topology = star_topology(3, "1Gbps")
    pair = Scene(tmp_path, topology, drop="10s", silence="5s", policy="fair", patience="10s")
    pair.node.close()
    with (tmp_path / "controller.loop").open("a") as file:
        file.write("weight 0 3\n")
    pair.node = Node(tmp_path / "controller.loop")
    pair.join()
    pair.report(0, 2)
    pair.report(1, 2)
    pair.run_until(pair.now_ns + 400 * MS)
    assert pair.node.granted_ns(0) == pytest.approx(3 * pair.node.granted_ns(1), rel=0.1)
    pair.node.close()


def backlogged_once(scene_: Scene, steps: range) -> int:
    """Let each host have a backlog to some others, and then none; return what is kept, in bytes."""
    hosts = len(scene_.hosts)
    for host in range(hosts):
        scene_.report(host, *((host + step) % hosts for step in steps))
        scene_.report(host)
    return scene_.node.schedule_bytes


def test_the_instant_of_arrival_is_the_kernels(scene: NewScene) -> None:
    five = scene()
    report = five.hosts[0].report(123, 4)
    five.node.receive(five.now_ns, report, arrived_ns=five.now_ns - 70 * US)
    five.settle()
    directive = five.hosts[0].directive
    assert directive.echo_received_ns == five.now_ns - 70 * US
    assert directive.start_ns == five.now_ns
    assert five.node.counters["exchange_ns_max"] == 70 * US


def test_a_host_that_the_topology_does_not_have_is_told_so(scene: NewScene) -> None:
    five = scene()
    stranger = Speaker(9, FIVE.hosts_digest())
    assert five.node.receive(five.now_ns, stranger.hello(77)) == 1
    (welcome,) = five.node.take(five.now_ns)
    assert isinstance(welcome, Welcome)
    assert (welcome.to, welcome.status, welcome.echo_sent_ns) == (9, Status.UNKNOWN_HOST, 77)
    assert five.node.receive(five.now_ns, stranger.report(78, 0)) == 2
    assert five.node.take(five.now_ns) == []


def test_every_message_to_a_host_echoes_the_last_that_it_sent(scene: NewScene) -> None:
    """Hosts take what echoes another for a replay."""
    five = scene()
    for step in range(40):
        host = five.hosts[step % 3]
        report = host.report(five.now_ns, 4)
        heard = len(host.heard)
        five.say(report)
        five.run_until(five.now_ns + 3 * MS)
        assert {one.echo_sent_ns for one in host.heard[heard:]} <= {report.header.sent_ns}
    assert sum(len(host.heard) for host in five.hosts) > 40


@pytest.mark.parametrize("strategy", ["timeslice", "rate", "hybrid"])
@pytest.mark.parametrize("on_demand", [False, True])
def test_every_host_hears_three_times_within_its_silence(
    scene: NewScene, strategy: str, on_demand: bool
) -> None:
    five = scene(strategy=strategy, on_demand=on_demand, heartbeat="10ms", silence="30ms")
    start = five.now_ns
    for step in range(60):
        host = step * 7 % 5
        five.report(host, *([4] if step % 3 and host != 4 else []))
        five.run_until(five.now_ns + 4 * MS)
    for speaker in five.hosts:
        instants = [start, *(one.header.sent_ns for one in speaker.heard), five.now_ns]
        assert max(after - before for before, after in pairwise(instants)) <= 10 * MS
