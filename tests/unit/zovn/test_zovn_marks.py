"""Congestion marks byte by byte, and VLAN tags on access ports and trunks."""

import ipaddress
import struct

import pytest
from zovn_rig import BROADCAST, Rig, address, build, frame

from zovn.native.switch import Class, PortSettings, Settings

MARKED = Settings(classes=(Class(mark_bytes=1),) * 8)
"""With this threshold a frame is marked where it is in the queue at all."""


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def internet_checksum(header: bytes) -> int:
    """RFC 1071, from scratch."""
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(ecn: int, identification: int = 0, dscp: int = 0, options: bytes = b"") -> bytes:
    """Return an IPv4 packet with a correct checksum."""
    length = 20 + len(options)
    header = struct.pack(
        "!BBHHHBBH4s4s",
        *(0x40 | length // 4, dscp << 2 | ecn, length + 8, identification, 0x4000, 64, 17, 0),
        *(ipaddress.IPv4Address(a).packed for a in ("10.1.2.3", "10.4.5.6")),
    )
    header += options
    whole = header[:10] + internet_checksum(header).to_bytes(2, "big") + header[12:]
    return whole + b"payload!"


def ipv6(ecn: int, dscp: int = 0) -> bytes:
    """Return an IPv6 packet."""
    word = 6 << 28 | (dscp << 2 | ecn) << 20 | 0xABCDE
    return struct.pack("!IHBB", word, 8, 17, 64) + bytes(range(32)) + b"payload!"


def passed(
    packet: bytes, kind: int, settings: Settings = MARKED, tag: bytes = b""
) -> tuple[bytes, Rig]:
    """Send a packet through the switch; return it as it arrives."""
    trunk = PortSettings(tagged=(1, 9), trust="priority")
    rig = Rig([trunk, trunk], settings)
    head = address(1) + address(0)
    rig.ports[0].send(head + tag + kind.to_bytes(2, "big") + packet)
    (got,) = rig.drain()[1]
    assert got.startswith(head)
    return got[12:], rig


@pytest.mark.parametrize("ecn", [1, 2])
@pytest.mark.parametrize("identification", [0, 1, 0x1234, 0xFFFF])
@pytest.mark.parametrize("dscp", [0, 46, 63])
def test_a_packet_of_an_ecn_sender_is_marked_with_its_checksum(
    ecn: int, identification: int, dscp: int
) -> None:
    got, rig = passed(ipv4(ecn, identification, dscp), 0x0800)
    assert got[2:] == ipv4(3, identification, dscp)
    assert internet_checksum(got[2:22]) == 0
    assert rig.counters(1).marked == 1


def test_every_checksum_is_updated_as_if_it_were_computed() -> None:
    for identification in range(0, 65536, 257):
        got, _ = passed(ipv4(2, identification), 0x0800)
        assert got[2:] == ipv4(3, identification)


@pytest.mark.parametrize("ecn", [1, 2])
def test_an_ipv6_packet_is_marked_and_nothing_else_changes(ecn: int) -> None:
    got, rig = passed(ipv6(ecn, dscp=46), 0x86DD)
    assert got[2:] == ipv6(3, dscp=46)
    assert rig.counters(1).marked == 1


def test_options_do_not_matter() -> None:
    got, _ = passed(ipv4(1, options=b"\x01" * 8), 0x0800)
    assert got[2:] == ipv4(3, options=b"\x01" * 8)


def test_a_tagged_packet_is_marked_behind_its_tag() -> None:
    got, _ = passed(ipv4(2), 0x0800, tag=b"\x81\x00\x60\x09")
    assert got == b"\x81\x00\x60\x09\x08\x00" + ipv4(3)


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        (ipv4(0), 0x0800),
        (ipv4(3), 0x0800),
        (ipv6(0), 0x86DD),
        (ipv6(3), 0x86DD),
        (ipv4(2), 0x0806),
        (ipv6(2), 0x0800),
        (ipv4(2), 0x86DD),
        (ipv4(2)[:19], 0x0800),
        (ipv6(2)[:1], 0x86DD),
        (b"", 0x0800),
    ],
    ids=["not ECN", "marked", "6 not ECN", "6 marked", "ARP", "6 as 4", "4 as 6", "short", "", "0"],
)
def test_no_other_packet_changes(packet: bytes, kind: int) -> None:
    got, rig = passed(packet, kind)
    assert got[2:] == packet
    assert rig.counters(1).marked == 0


def test_marks_begin_above_the_threshold_of_the_class() -> None:
    """Six frames of 42 bytes wait; the fourth one finds three with itself: no more than 126."""
    classes = (Class(mark_bytes=126), *(Class() for _ in range(7)))
    rig = Rig(2, Settings(classes=classes))
    for _ in range(6):
        rig.ports[0].send(address(1) + address(0) + b"\x08\x00" + ipv4(2))
    got = rig.drain()[1]
    assert [each[15] & 3 for each in got] == [3, 3, 3, 2, 2, 2]


def test_a_frame_in_parking_is_marked_for_the_slow_destination_alone() -> None:
    classes = (Class(mark_bytes=50), *(Class() for _ in range(7)))
    rig = Rig(1, Settings(classes=classes))
    rig.add(received=16)
    rig.add(received=1)
    for _ in range(3):
        rig.ports[0].send(BROADCAST + address(0) + b"\x08\x00" + ipv4(2))
        rig.settle()
    got = rig.drain()
    assert [each[15] & 3 for each in got[1]] == [2, 2, 2]
    assert [each[15] & 3 for each in got[2]] == [2, 3, 2]


# --- VLANs

PORTS = [
    PortSettings(vlan=10),
    PortSettings(vlan=20),
    PortSettings(vlan=10, tagged=(20, 30)),
    PortSettings(vlan=0, tagged=(10, 20)),
    PortSettings(vlan=10),
]


def seen(sender: int, tag: int | None = None) -> dict[int, int | None]:
    """Return who gets a broadcast, and with which tag."""
    rig = Rig(PORTS)
    rig.ports[sender].send(frame(address(sender), BROADCAST, 77, 100, tag))
    got = {port: frames[0] for port, frames in rig.drain().items() if frames}
    plain = frame(address(sender), BROADCAST, 77, 100)
    for each in got.values():
        assert each[:12] == BROADCAST + address(sender)
        assert (each[16:] if each[12:14] == b"\x81\x00" else each[12:])[-60:] == plain[-60:]
    return {
        port: int.from_bytes(each[14:16], "big") if each[12:14] == b"\x81\x00" else None
        for port, each in got.items()
    }


@pytest.mark.parametrize(
    ("sender", "tag", "expected"),
    [
        (0, None, {2: None, 3: 10, 4: None}),
        (1, None, {2: 20, 3: 20}),
        (2, None, {0: None, 3: 10, 4: None}),
        (2, 20, {1: None, 3: 20}),
        (2, 0xA000 | 20, {1: None, 3: 0xA000 | 20}),
        (2, 0xA000, {0: None, 3: 0xA000 | 10, 4: None}),
        (2, 10, {0: None, 3: 10, 4: None}),
        (2, 30, {}),
        (2, 40, {}),
        (3, 10, {0: None, 2: None, 4: None}),
        (3, None, {}),
        (3, 0xE000, {}),
        (0, 10, {}),
    ],
)
def test_a_flood_stays_in_its_vlan_and_has_each_ports_tag(
    sender: int, tag: int | None, expected: dict[int, int | None]
) -> None:
    assert seen(sender, tag) == expected


def test_an_address_is_known_in_its_vlan_only() -> None:
    rig = Rig(PORTS)
    rig.ports[0].send(frame(address(9), BROADCAST))
    rig.drain()
    assert rig.switch.find(10, address(9)) == 0
    assert rig.switch.find(20, address(9)) is None


def test_a_static_address_on_a_port_outside_its_vlan_gets_nothing() -> None:
    rig = Rig(PORTS)
    rig.switch.fix(1, 10, address(1))
    rig.ports[0].send(frame(address(0), address(1)))
    assert not any(rig.drain().values())
    assert rig.drops(0) == {"no_destination": 1}


def test_the_shortest_tagged_frame_passes() -> None:
    rig = Rig([PortSettings(tagged=(5,)), PortSettings(vlan=5)])
    rig.ports[0].send(address(1) + address(0) + b"\x81\x00\x00\x05\x88\xb5")
    assert rig.drain()[1] == [address(1) + address(0) + b"\x88\xb5"]
