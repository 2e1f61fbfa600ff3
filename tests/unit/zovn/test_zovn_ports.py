"""Ports that stand still, that come and go, and that cannot be."""

import pytest
from zovn_rig import BROADCAST, Rig, address, build, frame, known

from zovn.errors import SettingsError
from zovn.native.switch import Class, PortSettings, Settings


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


# --- stalls


def test_a_destination_that_takes_nothing_for_a_second_is_lossy_until_it_resumes() -> None:
    rig = known(3, received=2)
    for _ in range(6):
        rig.send(0, 1)
    rig.step()
    rig.step(after_s=0.99)
    assert not rig.switch.stalled(1)
    assert rig.counters(0).held == 4
    rig.step(after_s=0.02)
    assert rig.switch.stalled(1)
    assert rig.drops(0) == {"stalled": 4}
    rig.send(0, 1)
    sent = rig.send(0, 2)
    rig.step(after_s=0.5)
    assert rig.drops(0)["stalled"] == 5
    assert rig.ports[2].receive_all() == [sent], "no other is affected"
    assert len(rig.ports[1].receive_all()) == 2
    rig.step()
    assert not rig.switch.stalled(1)
    again = rig.send(0, 1)
    assert rig.drain()[1] == [again]
    counters = rig.counters(1)
    assert counters.stalls == 1
    assert counters.longest_ns == counters.blocked_ns == 1_510_000_000


def test_a_slow_destination_is_not_stalled() -> None:
    rig = known(2, received=1)
    for _ in range(16):
        rig.send(0, 1)
    rig.step()
    for _ in range(15):
        rig.step(after_s=0.9)
        assert len(rig.ports[1].receive_all()) == 1
        rig.step()
    assert not rig.switch.stalled(1)
    assert rig.counters(1).longest_ns == 900_000_000


def test_time_without_waiting_frames_is_not_blocked() -> None:
    rig = known(2, received=1)
    rig.send(0, 1)
    rig.step()
    rig.step(after_s=100.0)
    assert rig.counters(1).blocked_ns == 0
    assert not rig.switch.stalled(1)


# --- ports that go


def test_a_port_that_is_removed_gets_its_frames_back_and_frees_what_waits_for_it() -> None:
    rig = known(3, received=1)
    for _ in range(4):
        rig.send(0, 1)
        rig.send(2, 0)
    rig.ports[0].send(frame(address(0), BROADCAST))
    rig.step()
    last = rig.remove(0)
    assert last.held == last.parked == 0
    assert last.drops == {"removed": 3 + 2 - 1}
    assert rig.drops(2)["removed"] == 3
    assert rig.counters(2).held == rig.counters(1).waiting == 0
    assert rig.switch.find(1, address(0)) is None
    assert rig.ports[2].free_heads == 16


def test_a_number_is_used_again_with_counters_from_zero() -> None:
    rig = known(3)
    rig.remove(1)
    assert rig.add() == 1
    assert rig.counters(1).into == 0
    sent = rig.send(0, 1)
    assert rig.drain() == {0: [], 1: [sent], 2: [sent]}


def test_each_batch_notifies_a_peer_once() -> None:
    rig = known(2)
    before = [port.notifications for port in rig.ports.values()]
    for _ in range(10):
        rig.send(0, 1)
    rig.step()
    assert [port.notifications for port in rig.ports.values()] == [n + 1 for n in before]
    rig.step()
    assert [port.notifications for port in rig.ports.values()] == [n + 1 for n in before]


# --- settings


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (Settings(addresses=0), "addresses: 1 to 65536"),
        (Settings(parked=0), "parked: 1 to 4096"),
        (Settings(stall_s=0), "stall, age: must be above 0"),
        (Settings(classes=(Class(weight=1001),)), "weight: at most 1000"),
        (Settings(class_of_priority={3: 8}), "class of a priority"),
        (Settings(class_of_dscp={46: 9}), "class of a DSCP"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: Settings, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Rig(0, settings)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (PortSettings(vlan=0), "a port that is no trunk needs one"),
        (PortSettings(vlan=4095), "vlan: 1 to 4094"),
        (PortSettings(tagged=(0,)), "vlans: 1 to 4094"),
        (PortSettings(tagged=(4095,)), "vlans: 1 to 4094"),
        (PortSettings(klass=8), "class: there are classes 0 to 7"),
    ],
)
def test_a_port_that_cannot_be_used_is_refused(settings: PortSettings, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Rig([settings])


def test_there_are_72_ports() -> None:
    rig = Rig(72, sent=1, received=1)
    with pytest.raises(SettingsError, match="72 already"):
        rig.add()
