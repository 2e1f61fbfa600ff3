"""Epochs: a host that has heard a higher one stops no controller, and old ones are not obeyed."""

from pathlib import Path

import pytest
from xco_controller_scenes import EPOCH, MS, Scene

from xco.leader.base import EPOCH_AHEAD_NS
from xco.leader.lease import FileLease
from xco.protocol.messages import Flag, Header, Mode, Report, Status, Waiting
from xco.topology.shapes import star_topology

DROPPED, ANSWERED = 2, 1


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, star_topology(4, "1Gbps"))
    made.join()
    return made


def damaged_report(scene: Scene, host: int, epoch: int) -> Report:
    header = Header(host, epoch, scene.hosts[host].header(scene.now_ns).sequence, scene.now_ns)
    return Report(header, Flag.NONE, 0, 0, (Waiting(3, 1000, 0),))


@pytest.mark.parametrize("epoch", [2**64 - 1, EPOCH + EPOCH_AHEAD_NS + 1])
def test_an_epoch_beyond_tomorrow_counts_for_nothing(scene: Scene, epoch: int) -> None:
    assert scene.say(damaged_report(scene, 2, epoch)) == DROPPED
    scene.report(0, 3)
    assert scene.hosts[0].directive.mode is Mode.SLICE, "the others are coordinated as before"
    counters = scene.node.counters
    assert (counters["dropped_epoch_ahead"], counters["epoch_heard"]) == (1, 0)


def test_a_higher_epoch_is_handed_to_the_shell_and_stops_nothing(scene: Scene) -> None:
    scene.say(damaged_report(scene, 2, EPOCH + 7))
    scene.say(damaged_report(scene, 2, EPOCH + 5))
    scene.report(0, 3)
    assert scene.hosts[0].directive.mode is Mode.SLICE
    counters = scene.node.counters
    assert (counters["dropped_higher_epoch"], counters["epoch_heard"]) == (2, EPOCH + 7)


def test_the_highest_epoch_rises_with_time(scene: Scene) -> None:
    scene.now_ns += 1000 * MS
    scene.say(damaged_report(scene, 2, EPOCH + EPOCH_AHEAD_NS + 1000 * MS))
    assert scene.node.counters["epoch_heard"] == EPOCH + EPOCH_AHEAD_NS + 1000 * MS


def test_a_raised_epoch_is_told_to_all_hosts_and_their_slices_follow(scene: Scene) -> None:
    scene.say(damaged_report(scene, 2, EPOCH + 7))
    assert scene.node.raise_epoch(scene.now_ns, EPOCH + 8)
    scene.settle()
    assert {host.directive.header.epoch for host in scene.hosts} == {EPOCH + 8}
    assert scene.node.counters["epoch"] == EPOCH + 8
    scene.report(0, 3)
    assert scene.hosts[0].directive.mode is Mode.SLICE
    assert not scene.node.raise_epoch(scene.now_ns, EPOCH + 8), "it must be higher"


@pytest.mark.parametrize("epoch", [0, EPOCH - 1])
def test_hello_of_an_old_epoch_is_told_the_epoch_first(tmp_path: Path, epoch: int) -> None:
    scene = Scene(tmp_path, star_topology(4, "1Gbps"))
    host = scene.hosts[1]
    host.epoch = epoch
    assert scene.say(host.hello(scene.now_ns)) == ANSWERED
    assert [welcome.status for welcome in host.welcomes] == [Status.HELLO_FIRST]
    assert scene.node.counters["hosts_joined"] == 0
    assert host.epoch == EPOCH
    scene.say(host.hello(scene.now_ns))
    assert host.welcomes[-1].status is Status.JOINED


def test_hello_of_an_old_epoch_ends_no_turn_of_a_host_that_has_joined(scene: Scene) -> None:
    scene.report(1, 3)
    turn = scene.hosts[1].directive
    scene.hosts[1].epoch = EPOCH - 1
    scene.say(scene.hosts[1].hello(scene.now_ns))
    assert scene.node.counters["hosts_joined"] == 4
    assert scene.hosts[1].directive == turn


def test_a_lease_goes_on_above_what_hosts_have_heard(tmp_path: Path) -> None:
    lease = FileLease(tmp_path, clock=lambda: 1000)
    assert [lease.acquire(above=2000), lease.acquire(above=5)] == [2001, 2002]
    assert lease.acquire(above=1001 + EPOCH_AHEAD_NS) == 2003, "too far ahead to be an epoch"
    lease.release()


def test_a_lease_forgets_an_epoch_that_a_wrong_clock_gave(tmp_path: Path) -> None:
    wrong = FileLease(tmp_path, clock=lambda: 2 * EPOCH_AHEAD_NS)
    assert wrong.acquire() == 2 * EPOCH_AHEAD_NS
    wrong.release()
    right = FileLease(tmp_path, clock=lambda: 1000)
    assert right.acquire() == 1000
    right.release()
