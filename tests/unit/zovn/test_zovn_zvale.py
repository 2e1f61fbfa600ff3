"""Algorithm 1 as the paper has it: no loss, order within a pair, and who waits for whom."""

from collections.abc import Mapping

import pytest
from zovn_rig import Rig, build

from zovn.oracle.zvale import LosslessSwitch, Packet


def test_a_sender_sleeps_while_its_input_queue_is_full() -> None:
    switch = LosslessSwitch(inputs=[2], outputs=[1])
    answers = [switch.sender(Packet(0, 0, number)) for number in range(4)]
    assert answers == ["done", "done", "done", "sleep"]


def test_a_receiver_pulls_what_waits_and_sleeps_when_there_is_nothing() -> None:
    switch = LosslessSwitch(inputs=[2], outputs=[1])
    packets = [Packet(0, 0, number) for number in range(3)]
    for packet in packets:
        switch.sender(packet)
    assert [switch.receiver(0) for _ in range(4)] == [*packets, "sleep"]


def test_a_full_output_queue_does_not_stop_other_packets_of_the_queue() -> None:
    """The loop of the forwarder goes past them."""
    switch = LosslessSwitch(inputs=[4], outputs=[1, 1])
    for number, destination in enumerate((0, 0, 1)):
        switch.sender(Packet(0, destination, number))
    assert switch.receiver(1) == Packet(0, 1, 2)


def windows(*, in_order: bool, inputs: int = 8, window: int = 4, rounds: int = 200) -> int:
    """Return how many packets a fast receiver got, while one that takes nothing has a window."""
    switch = LosslessSwitch([inputs], [2, 2], in_order=in_order)
    open_: Mapping[int, list[int]] = {0: [], 1: []}
    taken = 0
    for number in range(rounds):
        for destination in (0, 1):
            fits = len(open_[destination]) < window
            if fits and switch.sender(Packet(0, destination, number)) == "done":
                open_[destination].append(number)
        while switch.receiver(1) != "sleep":
            open_[1].pop()
            taken += 1
    return taken


@pytest.mark.parametrize(("in_order", "taken"), [(True, 2 + 8 - 2), (False, 200)])
def test_slots_that_return_in_order_hold_a_fast_receiver_up(in_order: bool, taken: int) -> None:
    """zVALE's rings: behind the first packet that waits, of two, each slot is used once."""
    assert windows(in_order=in_order) == taken


def test_the_compiled_switch_does_not_hold_it_up() -> None:
    """The same input and output queues, and the same windows."""
    build()
    rig, open_, taken = Rig(3, sent=8, received=2), {1: 0, 2: 0}, 0
    rig.know()
    for _ in range(200):
        for destination, count in open_.items():
            if count < 4 and rig.send(0, destination):
                open_[destination] += 1
        rig.settle()
        got = rig.ports[2].receive_all()
        open_[2] -= len(got)
        taken += len(got)
    assert taken == 200
    assert rig.counters(0).held == 2, "the rest of the other one's window"
