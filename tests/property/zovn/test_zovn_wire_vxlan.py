"""VXLAN by byte: what is written is read, and what is not sound is refused for its reason."""

import ctypes
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zovn_rig import build

from zovn.native.wire import (
    Locations,
    RawEndpoint,
    RawPath,
    core,
    decapsulated,
    encapsulated,
    endpoint,
)

HERE = endpoint(bytes.fromhex("0200000000aa"), bytes((10, 0, 0, 1)))
THERE = endpoint(bytes.fromhex("0200000000bb"), bytes((10, 0, 0, 2)))
VNI = 0x123456
ETHERNET, TAG, IPV4, UDP, VXLAN = 14, 4, 20, 8, 8
CLASSES = st.integers(0, 7)
FRAMES = st.binary(min_size=14, max_size=1518)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def path(klass: int = 0, *, tagged: bool = True, vni: int = VNI) -> RawPath:
    return RawPath(HERE, THERE, vni, klass, tagged)


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def changed(frame: bytes, at: int, value: bytes, *, summed: bool = True) -> bytes:
    """Return an untagged frame with other bytes, and the checksum of its IPv4 header right."""
    made = bytearray(frame)
    made[at : at + len(value)] = value
    if summed:
        length = (made[ETHERNET] & 15) * 4
        made[ETHERNET + 10 : ETHERNET + 12] = b"\0\0"
        found = checksum(bytes(made[ETHERNET : ETHERNET + length]))
        made[ETHERNET + 10 : ETHERNET + 12] = found.to_bytes(2, "big")
    return bytes(made)


@given(FRAMES, CLASSES, st.booleans(), st.integers(0, 0xFFFFFF))
def test_what_is_written_is_read(inner: bytes, klass: int, tagged: bool, vni: int) -> None:
    frame = encapsulated(inner, path(klass, tagged=tagged, vni=vni))
    assert decapsulated(frame, THERE, vni) == ("sound", inner, klass if tagged else 255)


@given(FRAMES, CLASSES, st.binary(max_size=40))
def test_padding_of_the_link_is_no_part_of_the_frame(
    inner: bytes, klass: int, padding: bytes
) -> None:
    frame = encapsulated(inner, path(klass)) + padding
    assert decapsulated(frame, THERE, VNI) == ("sound", inner, klass)


@given(FRAMES, CLASSES)
def test_headers_have_the_bytes_of_the_standards(inner: bytes, klass: int) -> None:
    frame = encapsulated(inner, path(klass))
    assert frame[:12] == bytes(THERE.ethernet) + bytes(HERE.ethernet)
    assert frame[12:18] == bytes((0x81, 0, klass << 5, 0, 0x08, 0))
    ipv4 = frame[18:38]
    assert checksum(ipv4) == 0
    length = IPV4 + UDP + VXLAN + len(inner)
    assert ipv4[:10] == struct.pack("!BBHHHBB", 0x45, klass << 5, length, 0, 0x4000, 64, 17)
    assert ipv4[12:] == socket.inet_aton("10.0.0.1") + socket.inet_aton("10.0.0.2")
    source, port, size, found = struct.unpack("!4H", frame[38:46])
    assert (port, size, found) == (4789, UDP + VXLAN + len(inner), 0)
    assert source == core().zovn_vxlan_source_port(inner, len(inner)) >= 49152
    assert frame[46:] == bytes.fromhex("0800000012345600") + inner


@given(FRAMES, st.integers(1, 100))
def test_a_frame_that_was_cut_is_refused(inner: bytes, by: int) -> None:
    frame = encapsulated(inner, path())
    found, _, _ = decapsulated(frame[:-by], THERE, VNI)
    assert found in {"broken", "others"}


@pytest.mark.parametrize(
    ("at", "value", "summed", "reason"),
    [
        (0, b"\x06", True, "others"),
        (12, b"\x86\xdd", True, "others"),
        (ETHERNET, b"\x65", False, "others"),
        (ETHERNET, b"\x44", False, "others"),
        (ETHERNET + 9, b"\x06", True, "others"),
        (ETHERNET + 16, b"\x0b", True, "others"),
        (ETHERNET + 6, b"\x00\x01", True, "others"),
        (ETHERNET + 6, b"\x20\x00", True, "fragment"),
        (ETHERNET + 10, b"\x00\x00", False, "broken"),
        (ETHERNET + 2, b"\xff\xff", True, "broken"),
        (ETHERNET + 2, b"\x00\x18", True, "broken"),
        (ETHERNET + IPV4 + 2, b"\x12\xb6", True, "others"),
        (ETHERNET + IPV4 + 4, b"\x00\x08", True, "broken"),
        (ETHERNET + IPV4 + 4, b"\xff\xff", True, "broken"),
        (ETHERNET + IPV4 + 4, b"\x00\x1d", True, "short"),
        (ETHERNET + IPV4 + UDP, b"\x00", True, "flags"),
        (ETHERNET + IPV4 + UDP + 6, b"\x57", True, "foreign"),
    ],
)
def test_what_is_not_sound_is_refused_for_its_reason(
    at: int, value: bytes, summed: bool, reason: str
) -> None:
    frame = encapsulated(bytes(60), path(tagged=False))
    assert decapsulated(changed(frame, at, value, summed=summed), THERE, VNI)[0] == reason


def test_reserved_bits_and_a_checksum_are_accepted() -> None:
    frame = encapsulated(bytes(60), path(tagged=False))
    frame = changed(frame, ETHERNET + IPV4 + UDP, b"\xff\xff\xff\xff")
    frame = changed(frame, ETHERNET + IPV4 + 6, b"\x12\x34")
    assert decapsulated(frame, THERE, VNI)[0] == "sound"


def test_a_tag_with_a_vlan_is_for_another_interface() -> None:
    frame = bytearray(encapsulated(bytes(60), path(3)))
    frame[15] = 1
    assert decapsulated(bytes(frame), THERE, VNI)[0] == "others"


def test_options_of_the_outer_header_are_skipped() -> None:
    frame = encapsulated(bytes(60), path(tagged=False))
    begin = ETHERNET + IPV4
    made = frame[:begin] + bytes((1, 1, 1, 0)) + frame[begin:]
    length = int.from_bytes(made[ETHERNET + 2 : ETHERNET + 4], "big") + 4
    made = changed(made, ETHERNET + 2, length.to_bytes(2, "big"), summed=False)
    assert decapsulated(changed(made, ETHERNET, b"\x46"), THERE, VNI) == ("sound", bytes(60), 255)


@given(st.binary(max_size=200), st.integers(0, 120))
def test_any_bytes_are_read_without_harm(tail: bytes, kept: int) -> None:
    frame = encapsulated(bytes(60), path())[:kept] + tail
    _, inner, _ = decapsulated(frame, THERE, VNI)
    assert len(inner) <= len(frame)


def datagram(source: int, to: int, protocol: int = 17, fragment: int = 0) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28, 0, fragment, 64, protocol, 0)
    packet = head + bytes((10, 0, 0, 1, 10, 0, 0, 2)) + struct.pack("!HHHH", source, to, 8, 0)
    return bytes(12) + b"\x08\0" + packet


def source_port(inner: bytes) -> int:
    return int(core().zovn_vxlan_source_port(inner, len(inner)))


def test_flows_have_source_ports_of_their_own_and_each_flow_has_one() -> None:
    ports = {source_port(datagram(port, 80)) for port in range(1000)}
    assert len(ports) > 900
    assert source_port(datagram(1, 2)) == source_port(datagram(1, 2) + b"more")


def test_fragments_of_one_packet_take_one_way() -> None:
    first, later = datagram(1, 2, fragment=0x2000), datagram(3, 4, fragment=0x0010)
    assert source_port(first) == source_port(later)


@given(st.binary(min_size=14, max_size=80), st.sampled_from((b"\x81\0", b"\x08\0", b"\x86\xdd")))
def test_any_frame_has_a_source_port(inner: bytes, kind: bytes) -> None:
    assert source_port(inner[:12] + kind + inner[14:]) >= 49152


# --- who is where


@given(st.binary(min_size=4, max_size=4), st.binary(max_size=18))
def test_an_answer_to_arp_tells_who_sent_it(address: bytes, padding: bytes) -> None:
    room, sender = ctypes.create_string_buffer(60), RawEndpoint()
    core().zovn_arp_write(room, ctypes.byref(HERE), address)
    asked = room.raw
    assert asked[:22].hex() == "ffffffffffff" + "0200000000aa" + "0806" + "0001080006040001"
    assert asked[38:42] == address
    answer = asked[:20] + b"\0\2" + bytes(THERE.ethernet) + bytes(THERE.address) + asked[22:32]
    assert core().zovn_arp_read(answer + padding, len(answer) + len(padding), ctypes.byref(sender))
    assert (bytes(sender.ethernet), bytes(sender.address)) == (
        bytes(THERE.ethernet),
        bytes(THERE.address),
    )
    assert not core().zovn_arp_read(answer, 41, ctypes.byref(sender))


STATIONS = st.dictionaries(
    st.integers(0, 2**20), st.integers(1, 60), max_size=200
)  # the end of an Ethernet address, and of its host's


def station(number: int) -> bytes:
    return b"\x02\0\0" + number.to_bytes(3, "big")


@given(STATIONS)
def test_a_map_says_where_each_station_is(stations: dict[int, int]) -> None:
    lines = ["host 10.0.0.1", ""]
    lines += [f"station {station(one).hex(':')} 10.0.0.{at}" for one, at in stations.items()]
    found = Locations("\n".join(lines))
    hosts = list(dict.fromkeys([1, *stations.values()]))
    assert {one: found.find(station(one)) for one in stations} == {
        one: hosts.index(at) for one, at in stations.items()
    }
    assert found.find(b"\x02\xff\xff\xff\xff\xff") is None


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "host",
        "host 10.0.0.256",
        "host 10.0.0.1 10.0.0.2",
        "station 02:00:00:00:00:01",
        "station 01:00:00:00:00:01 10.0.0.1",
        "station 02:00:00:00:00 10.0.0.1",
        "station 02:00:00:00:00:01:02 10.0.0.1",
        "station 02:00:00:00:00:01 10.0.0.1 more",
    ],
)
def test_a_mistake_in_a_map_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 2: (write|there) "):
        Locations(f"host 10.0.0.9\n{line}\n")


def test_a_map_has_at_most_64_hosts() -> None:
    text = "".join(f"host 10.0.0.{number}\n" for number in range(65))
    with pytest.raises(ValueError, match="line 65: write the IPv4 address of one of at most 64"):
        Locations(text)
