"""Who has an address, by what hosts say to the controller: claims, moves, losses, bounds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from xco_controller_scenes import Scene

from xco.protocol.wire import CONTROLLER, Kind, Located, Map, Places
from xco.topology.shapes import dumbbell

MS = 1_000_000
NOWHERE, ANY_VLAN = 0xFFFF, 0xFFFF


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, dumbbell(3, 3, "1Gbps", "2Gbps"))
    made.join()
    yield made
    made.node.close()


def mac(number: int) -> bytes:
    return bytes([2, 0, 0, 0, number >> 8, number & 255]) + bytes(10)


def tell(
    scene: Scene,
    host: int,
    since: int,
    *at: tuple[int, int],
    heard: int = 0,
    last: int | None = None,
) -> dict[int, Map]:
    """Say where addresses are; return what each host is told."""
    entries = tuple(Located(mac(number), ANY_VLAN, Kind.MAC, where) for number, where in at)
    until = since + len(entries)
    versions = since, until, until if last is None else last, heard
    scene.now_ns += 2 * MS
    header = scene.hosts[host].header(scene.now_ns)
    scene.node.receive(scene.now_ns, Places(header, CONTROLLER, *versions, entries))
    said = scene.node.take(scene.now_ns)
    return {message.to: message for message in said if isinstance(message, Map)}


def where(maps: dict[int, Map], host: int) -> dict[bytes, int]:
    """Return where a host is told that addresses are."""
    entries = (entry for entry in maps[host].entries if entry.kind is not Kind.HOST)
    return {entry.address: entry.host for entry in entries}


def whole(maps: dict[int, Map], host: int) -> set[int]:
    """Return the hosts that have all of their addresses in the map of a host."""
    return {entry.host for entry in maps[host].entries if entry.kind is Kind.HOST}


def test_what_a_host_claims_every_host_that_listens_is_told_at_once(scene: Scene) -> None:
    tell(scene, 1, 0)
    maps = tell(scene, 0, 0, (7, 0), (8, 0))
    assert set(maps) == {0, 1}
    assert where(maps, 1) == {mac(7): 0, mac(8): 0}
    assert maps[0].heard == 2
    assert (maps[1].since, maps[1].until, maps[1].last) == (0, 4, 4)


def test_a_host_is_whole_when_it_has_named_all_of_its_addresses_and_not_before(
    scene: Scene,
) -> None:
    maps = tell(scene, 1, 0)
    assert whole(maps, 1) == {1}
    assert whole(tell(scene, 0, 0, (7, 0), last=2), 1) == {1}
    maps = tell(scene, 0, 1, (8, 0))
    assert whole(maps, 1) == {0, 1}
    assert maps[1].entries[-1].kind is Kind.HOST, "who has read this has read the addresses"


def test_a_host_that_left_stays_whole_as_its_addresses_stay(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0))
    scene.node.receive(scene.now_ns, scene.hosts[0].leave(scene.now_ns))
    maps = tell(scene, 1, 0)
    assert (where(maps, 1), whole(maps, 1)) == ({mac(7): 0}, {0, 1})
    assert scene.node.counters["places_known"] == 1


def test_a_second_claim_is_refused_and_takes_over_when_the_first_ends(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0))
    maps = tell(scene, 1, 0, (7, 1))
    assert where(maps, 1) == {mac(7): 0}
    moved = tell(scene, 0, 1, (7, NOWHERE), heard=1)
    assert where(moved, 0) == {mac(7): 1}


def test_an_address_that_is_withdrawn_is_nowhere(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0))
    maps = tell(scene, 0, 1, (7, NOWHERE), heard=1)
    assert where(maps, 0) == {mac(7): NOWHERE}


def test_the_address_of_a_host_that_left_may_be_claimed(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0))
    scene.node.receive(scene.now_ns, scene.hosts[0].leave(scene.now_ns))
    assert where(tell(scene, 1, 0, (7, 1)), 1) == {mac(7): 1}


def test_who_misses_a_message_is_told_from_where_the_reader_stands(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0))
    maps = tell(scene, 0, 5, (9, 0))
    assert maps[0].heard == 1, "versions 2 to 5 were lost"
    assert mac(9) not in where(maps, 0)


def test_who_begins_anew_has_what_it_names_alone(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0), (8, 0))
    maps = tell(scene, 0, 0, (8, 0), heard=2)
    assert where(maps, 0) == {mac(7): NOWHERE}


def test_a_beginning_in_parts_ends_nothing_before_its_end(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0), (8, 0))
    assert where(tell(scene, 0, 0, (8, 0), heard=2, last=2), 0) == {}
    assert where(tell(scene, 0, 1, (9, 0), heard=2), 0) == {mac(7): NOWHERE, mac(9): 0}


def test_what_was_not_heard_is_told_again_and_nothing_else(scene: Scene) -> None:
    tell(scene, 0, 0, (7, 0))
    scene.now_ns += 30 * MS
    scene.node.advance(scene.now_ns)
    again = [message for message in scene.node.take(scene.now_ns) if isinstance(message, Map)]
    assert [message.to for message in again] == [0]
    assert tell(scene, 0, 1, heard=again[0].last) == {}


def test_a_host_has_room_for_so_many_addresses_and_harms_no_other(scene: Scene) -> None:
    for part in range(40):
        numbers = range(30 * part, 30 * part + 30)
        tell(scene, 0, 30 * part, *((number, 0) for number in numbers), heard=0)
    maps = tell(scene, 1, 0, (5000, 1))
    assert maps[1].last == 1024 + 1 + 2, "of the two hosts, that each has named all"
