"""The record of what a switch holds: one that is killed at any point goes on from there."""

import random
import struct
from collections.abc import Iterator
from typing import ClassVar

import pytest
from zovn_guest import Guest
from zovn_rig import address, build, frame, serial

from zovn.native.switch import MemoryPort, Settings, Switch

TAKEN, GIVING = 1, 2
SIZE = 16


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Life:
    """A switch between a guest and a peer. It is killed when the guest's next one begins."""

    lives: ClassVar[list["Life"]] = []
    """All of a test: one that is freed would give back what it holds."""

    def __init__(self, guest: Guest, room: int = 64) -> None:
        self.lives.append(self)
        self.switch, self.peer = Switch(Settings()), MemoryPort(16, room)
        handle = guest.port()
        assert handle
        for number, port in enumerate((handle, self.peer.handle)):
            self.switch.add(port)
            self.switch.fix(number, 1, address(number))

    def step(self) -> list[int]:
        """Step; return the numbers of the frames that the peer got."""
        self.switch.step(0.0)
        assert self.switch.check() is None
        return [serial(one) for one in self.peer.receive_all()]


@pytest.fixture
def guest() -> Iterator[Guest]:
    made = Guest(SIZE, recorded=True)
    yield made
    Life.lives.clear()  # while its memory is there


def send(guest: Guest, *numbers: int) -> None:
    for number in numbers:
        assert guest.send(frame(address(0), address(1), number))


def states(guest: Guest) -> list[int]:
    """Return the state of each chain."""
    assert guest.record is not None
    return list(guest.record[16::16])


def mark(guest: Guest, head: int, place: int) -> None:
    """Mark a chain as one that is given back at this place of the used ring."""
    assert guest.record is not None
    struct.pack_into("<B5xHQ", guest.record, 16 * (head + 1), GIVING, place, head)


def test_what_is_held_is_taken_again_before_what_is_new_and_in_order(guest: Guest) -> None:
    send(guest, *range(8))
    first = Life(guest, room=2)
    assert first.step() == [0, 1]
    guest.completed()
    send(guest, 8, 9)
    assert first.step() == [2, 3]
    assert states(guest).count(TAKEN) == 6
    guest.completed()
    send(guest, 10)
    second = Life(guest)
    assert second.step() + second.step() == list(range(4, 11))
    assert not any(states(guest))
    assert len(guest.completed()) == 7


def test_a_ring_of_which_nothing_is_held_goes_on(guest: Guest) -> None:
    send(guest, *range(8))
    assert Life(guest).step() == list(range(8))
    guest.completed()
    send(guest, 8)
    assert Life(guest).step() == [8]


@pytest.mark.parametrize(("seen", "again"), [(True, []), (False, [2, 3])])
def test_what_was_about_to_be_given_back_is_held_unless_the_driver_saw_it(
    guest: Guest, seen: bool, again: list[int]
) -> None:
    """Killed after the used ring's index was written, but before the marks were; or before it."""
    send(guest, *range(4))
    assert Life(guest).step() == list(range(4))
    for place in (2, 3):  # its heads are their numbers here
        mark(guest, head=place, place=place)
    if not seen:
        guest.transmit.word(guest.transmit.used + 2).value = 2
    assert Life(guest).step() == again
    assert guest.completed() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_lives_that_end_after_any_step_deliver_each_frame_once(guest: Guest, seed: int) -> None:
    choose = random.Random(seed)
    got, sent = list[int](), 0
    life = Life(guest)
    for _ in range(300):
        if choose.random() < 0.1:
            life = Life(guest, room=choose.randrange(1, 8))
        guest.completed()
        if guest.transmit.free:
            send(guest, sent)
            sent += 1
        if choose.random() < 0.5:
            got += life.step()
    life = Life(guest)
    for _ in range(3):
        got += life.step()
    assert got == list(range(sent))


def test_a_receiver_sees_a_frame_before_its_sender_has_it_back() -> None:
    """A switch that is killed in between then repeats the frame, and does not lose it."""
    switch, sender, receiver = Switch(Settings()), Guest(), Guest()
    order = receiver.notified = sender.notified
    for number, one in enumerate((sender, receiver)):
        assert one.handle
        switch.add(one.handle)
        switch.fix(number, 1, address(number))
    receiver.post([2048])
    send(sender, 1)
    switch.step(0.0)
    assert order == [True, False], "of a receive ring; of a transmit ring"
