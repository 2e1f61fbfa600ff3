"""Addresses: how the switch learns them, how long it knows them, and how many."""

import pytest
from zovn_rig import Rig, address, build, frame, known

from zovn.native.switch import Settings


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def test_an_unknown_destination_is_flooded_and_an_answer_is_not() -> None:
    rig = Rig(3)
    asked = rig.send(0, 1)
    assert rig.drain() == {0: [], 1: [asked], 2: [asked]}
    answered = rig.send(1, 0)
    assert rig.drain() == {0: [answered], 1: [], 2: []}
    assert rig.counters(0).copies == 1
    assert rig.counters(1).copies == 0


def test_a_frame_never_goes_back_to_its_port() -> None:
    rig = known(2)
    rig.ports[0].send(frame(address(0, 1), address(0)))
    assert rig.drain() == {0: [], 1: []}
    assert rig.drops(0)["no_destination"] == 1


def test_an_address_that_moves_is_found_where_it_sends_from() -> None:
    rig = known(3)
    rig.ports[2].send(frame(address(0), address(1)))
    rig.drain()
    sent = rig.send(1, 0)
    assert rig.drain() == {0: [], 1: [], 2: [sent]}
    assert rig.counters(2).moves == 1


def test_an_address_that_is_silent_is_forgotten() -> None:
    rig = known(3, Settings(age_s=10.0))
    rig.step(after_s=9.9)
    assert rig.switch.find(1, address(0)) == 0
    rig.step(after_s=0.2)
    assert rig.switch.find(1, address(0)) is None


def test_a_static_address_neither_ages_nor_moves() -> None:
    rig = Rig(3, Settings(age_s=1.0))
    assert rig.switch.fix(1, 1, address(1))
    rig.step(after_s=100.0)
    rig.ports[2].send(frame(address(1), address(0)))
    rig.drain()
    assert rig.switch.find(1, address(1)) == 1
    assert rig.counters(2).not_learned == 1


def test_a_static_address_takes_the_place_of_a_learned_one() -> None:
    rig = known(3)
    assert rig.switch.fix(2, 1, address(0))
    assert rig.switch.find(1, address(0)) == 2
    assert not rig.switch.fix(7, 1, address(0)), "there is no such port"


def test_a_static_address_is_taken_by_no_other_port_in_its_vlan() -> None:
    rig = Rig(3)
    assert rig.switch.fix(1, 1, address(1))
    assert not rig.switch.fix(2, 1, address(1))
    assert rig.switch.fix(1, 1, address(1)), "it has it already"
    assert rig.switch.fix(2, 9, address(1)), "another VLAN"
    assert rig.switch.known() == {(1, address(1)): (1, True), (9, address(1)): (2, True)}
    rig.remove(1)
    assert rig.switch.fix(2, 1, address(1))
    assert rig.switch.find(1, address(1)) == 2


def test_a_port_has_no_more_static_addresses_than_it_may_have() -> None:
    rig = Rig(2, Settings(addresses=2))
    assert [rig.switch.fix(0, 1, address(0, which)) for which in range(3)] == [True, True, False]
    assert rig.switch.fix(1, 1, address(1))


@pytest.mark.parametrize("room", [1, 2, 64])
def test_known_addresses_are_listed_until_they_age(room: int) -> None:
    rig = known(3, Settings(age_s=10.0, addresses=128))
    rig.switch.fix(2, 7, address(2, 1))
    learnt = {(1, address(number)): (number, False) for number in range(3)}
    static = {(7, address(2, 1)): (2, True)}
    assert rig.switch.known(room) == learnt | static
    rig.step(after_s=10.1)
    assert rig.switch.known(room) == static
    assert rig.switch.known(room) == static, "a list changes nothing"


def test_random_sources_of_one_port_evict_no_address_of_another() -> None:
    rig = known(3, Settings(addresses=4))
    for which in range(1, 200):
        rig.ports[0].send(frame(bytes((6, 0, which, 0, 0, 0)), address(1)))
        rig.drain()
    assert rig.counters(0).not_learned == 199 - 3
    assert [rig.switch.find(1, address(port)) for port in range(3)] == [0, 1, 2]
    rig.ports[1].send(frame(address(1, 1), address(2)))
    rig.drain()
    assert rig.switch.find(1, address(1, 1)) == 1, "others still learn"


def test_a_port_at_its_limit_takes_no_address_of_another() -> None:
    rig = known(3, Settings(addresses=2))
    for source in (address(0, 1), address(1)):
        rig.ports[0].send(frame(source, address(2)))
        rig.drain()
    assert rig.switch.find(1, address(1)) == 1
    assert (rig.counters(0).moves, rig.counters(0).not_learned) == (0, 1)


def test_addresses_that_were_forgotten_make_room() -> None:
    rig = Rig(2, Settings(addresses=2, age_s=1.0))
    for round_ in range(3):
        for which in range(2):
            rig.ports[0].send(frame(address(0, 2 * round_ + which), address(1)))
        rig.drain()
        for _ in range(20):
            rig.step(after_s=0.6)
    assert rig.counters(0).not_learned == 0
