"""Floods, and the places in which they wait for several destinations."""

from itertools import count, pairwise

import pytest
from zovn_rig import BROADCAST, PRIORITIES, Rig, address, build, frame, known, serial

from zovn.native.switch import Class, PortSettings, Settings


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def test_a_broadcast_reaches_all_others_once() -> None:
    rig = Rig(72, sent=2, received=2)
    sent = frame(address(5), BROADCAST, 9)
    rig.ports[5].send(sent)
    assert rig.drain() == {port: [] if port == 5 else [sent] for port in range(72)}
    counters = rig.counters(5)
    assert (counters.into, counters.copies, counters.delivered) == (1, 70, 71)


def test_a_flood_to_a_full_port_waits_in_parking_and_its_sender_has_the_frame_back() -> None:
    rig = Rig(3, received=1)
    for number in (1, 2):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.settle()
    assert rig.ports[0].free_heads == 16
    assert rig.counters(0).parked == 2
    got = rig.drain()
    assert [[serial(one) for one in got[port]] for port in (1, 2)] == [[1, 2], [1, 2]]
    assert rig.counters(0).parked == 0


def test_a_flood_beyond_parking_stays_with_its_sender_and_nothing_is_lost() -> None:
    rig = known(3, Settings(parked=2), received=1)
    for number in range(6):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.ports[0].send(frame(address(0), address(2), 6))
    rig.settle()
    assert rig.counters(0).into - 1 == 3, "one is in both rings, two are parked"
    assert rig.ports[0].free_heads == 16 - 7 + 3
    got = rig.drain()
    assert [serial(one) for one in got[1]] == list(range(6))
    assert [serial(one) for one in got[2]] == list(range(7))
    assert rig.drops(0) == {}


def test_one_ports_floods_leave_others_their_parking() -> None:
    rig = Rig(4, Settings(parked=1), received=1)
    for number in range(4):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.settle()
    rig.ports[1].send(frame(address(1), BROADCAST, 100))
    rig.settle()
    assert rig.counters(1).into == 1


def test_a_lossy_flood_beyond_parking_is_dropped_and_holds_nothing_up() -> None:
    settings = Settings(classes=(Class(limit_bytes=10_000),) * 8, parked=1)
    rig = known(4, settings, received=1)
    for number in range(4):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.step()
    assert rig.ports[0].free_heads == 16
    assert rig.drops(0) == {"congestion": 3 * 3}, "three copies of each of three"
    assert {len(got) for port, got in rig.drain().items() if port} == {1}


def test_a_destination_that_stands_still_stops_floods_for_no_longer_than_a_stall() -> None:
    rig = known(3, Settings(parked=1), received=1)
    for number in range(6):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.settle()
    assert rig.ports[0].free_heads < 16
    got = []
    for _ in range(12):
        rig.step(after_s=0.2)
        got += [serial(one) for one in rig.ports[1].receive_all()]
    assert got == list(range(6)), "the other destination gets all"
    assert rig.drops(0)["stalled"] == 5, "the first is in the ring of the one that stands still"
    assert rig.ports[0].free_heads == 16


def test_a_destination_that_is_slow_stops_floods_for_no_longer_than_a_stall() -> None:
    """It takes a frame each 0.9 s, so that it never stalls; the sender floods ten in a second."""
    rig = known(2, Settings(parked=4), sent=64, received=64)
    slow = rig.add(received=1)
    numbers = count()
    came: list[int] = []
    got: dict[int, list[int]] = {1: [], slow: []}
    for step in range(1, 201):
        if rig.ports[0].free_heads >= 2:
            for destination in (BROADCAST, address(1)):
                assert rig.ports[0].send(frame(address(0), destination, next(numbers)))
        rig.step(after_s=0.1)
        if frames := rig.ports[1].receive_all():
            came.append(step)
            got[1] += map(serial, frames)
        if step % 9 == 0:
            got[slow] += map(serial, rig.ports[slow].receive_all())
    assert max(after - before for before, after in pairwise(came)) <= 10
    assert got[1] == list(range(len(got[1])))
    assert len(got[1]) > 100
    assert got[slow] == sorted(set(got[slow]))
    assert len(got[slow]) == 200 // 9
    assert rig.counters(slow).stalls == 0
    assert rig.drops(0)["stalled"] > 40
    assert set(rig.drops(0)) == {"stalled"}
    rig.drain()
    assert rig.ports[0].free_heads == 64


def test_a_flood_that_waits_for_too_long_is_dropped_alone() -> None:
    """Only where it still waits; what was sent before it and after it is delivered in order."""
    trunk = PortSettings(tagged=(7,), trust="priority")
    rig = Rig([trunk] * 3, Settings(parked=1, class_of_priority=PRIORITIES), received=1)
    for port in range(3):
        rig.switch.fix(port, 7, address(port))
    unicast = [(number, address(1)) for number in (3, 3, 3, 0, 0)]
    for number, (klass, to) in enumerate([*unicast, (0, BROADCAST), (0, BROADCAST)]):
        assert rig.ports[0].send(frame(address(0), to, number, tag=klass << 13 | 7))
    rig.step()
    assert [serial(one) for one in rig.ports[2].receive_all()] == [5]
    rig.step(after_s=0.9)
    assert [serial(one) for one in rig.ports[1].receive_all()] == [0]
    rig.step(after_s=0.05)
    assert rig.drops(0) == {}
    assert rig.counters(0).parked == 1
    rig.step(after_s=0.05)
    assert rig.drops(0) == {"stalled": 1}
    assert rig.counters(1).stalls == 0
    got = {port: [serial(one) for one in frames] for port, frames in rig.drain().items()}
    assert [one for one in got[1] if one in {1, 2}] == [1, 2]
    assert [one for one in got[1] if one not in {1, 2}] == [3, 4, 6]
    assert got[2] == [6]
