"""Parts of the switch: which has a port, and what a frame between two of them does in each step."""

import pytest
from zovn_rig import BROADCAST, address, build, frame

from zovn.errors import SettingsError
from zovn.native.switch import Class, MemoryPort, Settings, Switch


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def parts(threads: int, ports: int, **settings: object) -> tuple[Switch, list[MemoryPort]]:
    """Return a switch, and its ports with static addresses."""
    switch = Switch(Settings(threads=threads, **settings))  # type: ignore[arg-type]
    made = [MemoryPort(256, 16) for _ in range(ports)]
    for number, port in enumerate(made):
        assert switch.add(port.handle) == number
        switch.fix(number, 1, address(number))
    return switch, made


@pytest.mark.parametrize("threads", [0, 9])
def test_there_are_one_to_eight_threads(threads: int) -> None:
    with pytest.raises(SettingsError, match="threads: 1 to 8"):
        Switch(Settings(threads=threads))


def test_a_new_port_goes_to_the_part_with_the_fewest() -> None:
    switch, _ = parts(3, 7)
    assert [switch.part(number) for number in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    for number in (1, 4):
        switch.remove(number)
    assert [switch.part(switch.add(MemoryPort().handle)) for _ in range(3)] == [1, 1, 1]
    assert switch.part(60) == -1


def test_a_frame_goes_to_another_part_and_its_end_comes_back() -> None:
    switch, (sender, receiver) = parts(2, 2)
    sender.send(frame(address(0), address(1)))
    assert switch.step_part(1) == (0, 0)
    assert switch.step_part(0) == (1, 0b10)
    assert switch.counters(0).held == 1
    assert switch.counters(1).waiting == 0
    assert switch.step_part(1) == (2, 0b01)
    assert receiver.receive() is not None
    assert (switch.counters(1).out, switch.counters(0).held) == (1, 1)
    assert sender.free_heads == 255
    assert switch.step_part(0) == (1, 0)
    assert (switch.counters(0).delivered, sender.free_heads) == (1, 256)
    assert switch.step_part(1) == (0, 0)


def test_what_is_on_its_way_ends_when_no_part_is_in_a_step() -> None:
    switch, (sender, receiver) = parts(2, 2)
    sender.send(frame(address(0), address(1)))
    switch.step_part(0)
    assert switch.check() == "a reference is on its way, or its end"
    switch.settle_parts()
    assert switch.check() is None
    assert switch.counters(1).waiting == 1
    assert receiver.receive() is None
    switch.step_part(1)
    assert receiver.receive() is not None


def test_a_port_that_is_removed_gives_frames_of_other_parts_back() -> None:
    switch, ports = parts(2, 3)
    for sender in (0, 2):
        ports[sender].send(frame(address(sender), address(1)))
        switch.step_part(0)
    switch.settle_parts()
    switch.remove(1)
    assert switch.check() is None
    assert [switch.counters(number).drops for number in (0, 2)] == [{"removed": 1}] * 2
    assert [ports[number].free_heads for number in (0, 2)] == [256] * 2


def test_an_address_is_learned_for_all_parts() -> None:
    switch, ports = parts(2, 2)
    ports[1].send(frame(address(1, 1), address(0)))
    switch.step_part(1)
    assert switch.find(1, address(1, 1)) == 1
    ports[0].send(frame(address(0), address(1, 1)))
    switch.step_part(0)
    switch.step_part(1)
    assert ports[1].receive() is not None


def test_addresses_age_by_the_clock_of_the_first_part() -> None:
    switch, ports = parts(2, 2, age_s=10.0)
    ports[1].send(frame(address(1, 1), address(0)))
    switch.step_part(1, after_s=100.0)
    switch.step_part(0)
    assert switch.find(1, address(1, 1)) is None
    ports[1].send(frame(address(1, 1), address(0)))
    switch.step_part(1)
    switch.step_part(0, after_s=9.0)
    assert switch.find(1, address(1, 1)) == 1
    switch.step_part(1, after_s=9.0)
    assert switch.find(1, address(1, 1)) == 1
    switch.step_part(0)
    assert switch.find(1, address(1, 1)) is None


def test_parking_makes_room_when_no_part_is_in_a_step() -> None:
    switch, ports = parts(2, 3, parked=1, stall_s=1.0)
    for _ in range(2):
        ports[1].send(frame(address(1), BROADCAST))
    assert switch.step_part(1) == (1, 0b01)
    assert not switch.wants_alone
    assert switch.step_part(1, after_s=1.0) == (0, 0b01)
    assert switch.wants_alone
    assert switch.counters(1).parked == 2
    switch.settle_parts()
    assert not switch.wants_alone
    assert switch.check() is None
    assert switch.counters(1).drops == {"stalled": 2}
    assert switch.step_part(1) == (1, 0b01)


def test_a_lossy_class_is_fair_to_ports_of_all_parts() -> None:
    """Senders 0 and 2 have the receiver's part, 1 has another one."""
    switch, ports = parts(2, 5, classes=(Class(limit_bytes=1000),) * 8, seed=3)
    taken = [0] * 3
    for _ in range(4000):
        for sender in range(3):
            while ports[sender].send(frame(address(sender), address(4))):
                pass
        for part in (0, 1):
            switch.step_part(part)
        if got := ports[4].receive():
            taken[got[11]] += 1
    assert min(taken) > 0.9 * max(taken)
