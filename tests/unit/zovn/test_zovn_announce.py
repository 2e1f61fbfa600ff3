"""Stations that the switch announces, since their guests cannot: RARP requests to all others."""

import pytest
from zovn_rig import BROADCAST, Rig, address, build, frame, known

from zovn.native.switch import PortSettings, Settings

HEAD = bytes.fromhex("80350001080006040003")
"""EtherType and head of a RARP request (RFC 903)."""
STATION = address(77)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def request(station: bytes = STATION) -> bytes:
    """Return what a hypervisor sends for a station."""
    return (BROADCAST + station + HEAD + (station + bytes(4)) * 2).ljust(60, b"\0")


def test_all_others_get_a_request_and_the_station_is_behind_the_port() -> None:
    rig = Rig(4)
    assert rig.switch.announce(1, STATION)
    assert rig.drain() == {0: [request()], 1: [], 2: [request()], 3: [request()]}
    assert rig.switch.find(1, STATION) == 1
    counters = rig.counters(1)
    assert (counters.into, counters.in_bytes, counters.copies, counters.delivered) == (1, 60, 2, 3)


def test_a_station_that_has_moved_is_found_at_its_new_port() -> None:
    rig = known(3)
    assert rig.switch.announce(2, address(1))
    rig.drain()
    sent = rig.send(0, 1)
    assert rig.drain() == {0: [], 1: [], 2: [sent]}
    assert rig.counters(2).moves == 1


def test_ports_of_other_vlans_get_none() -> None:
    rig = Rig([PortSettings(vlan=7), PortSettings(vlan=8), PortSettings(vlan=7)])
    assert rig.switch.announce(0, STATION)
    assert rig.drain() == {0: [], 1: [], 2: [request()]}
    assert (rig.switch.find(7, STATION), rig.switch.find(8, STATION)) == (0, None)


def test_without_others_it_is_learned() -> None:
    rig = Rig(1)
    assert rig.switch.announce(0, STATION)
    assert rig.drain() == {0: []}
    assert rig.switch.find(1, STATION) == 0


@pytest.mark.parametrize("station", [bytes(6), BROADCAST, bytes.fromhex("010000000001")])
def test_what_is_no_station_is_refused(station: bytes) -> None:
    rig = Rig(2)
    assert not rig.switch.announce(0, station)
    assert rig.drain() == {0: [], 1: []}
    assert rig.counters(0).into == 0


def test_a_trunk_without_a_vlan_of_its_own_is_refused() -> None:
    rig = Rig([PortSettings(vlan=0, tagged=(7,)), PortSettings(vlan=7)])
    assert not rig.switch.announce(0, STATION)
    assert not rig.switch.announce(9, STATION), "there is no such port"


def test_it_waits_for_a_slow_port_and_is_refused_where_parking_is_full() -> None:
    rig = Rig(3, Settings(parked=1), received=1)
    rig.ports[0].send(frame(address(0), BROADCAST, 1))
    rig.settle()
    assert rig.switch.announce(0, STATION)
    rig.settle()
    assert not rig.switch.announce(0, STATION)
    rig.check()
    assert rig.drain()[1][1:] == [request()]
    assert rig.drops(0) == {}
    assert rig.switch.announce(0, STATION)


@pytest.mark.parametrize("threads", [2, 3])
def test_ports_of_other_threads_get_it(threads: int) -> None:
    rig = Rig(4, Settings(threads=threads))
    rig.switch.settle_parts()
    assert rig.switch.announce(1, STATION)
    got: dict[int, list[bytes]] = {number: [] for number in rig.ports}
    for _ in range(8):
        for part in range(threads):
            rig.switch.step_part(part)
        for number, port in rig.ports.items():
            got[number] += port.receive_all()
    assert got == {0: [request()], 1: [], 2: [request()], 3: [request()]}
    rig.switch.settle_parts()
    rig.check()
