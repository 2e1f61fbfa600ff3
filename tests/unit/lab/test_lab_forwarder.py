"""The forwarder's rewriting of frames, against a full computation of the checksum (RFC 1071)."""

import random
import struct

from lab.programs.forwarder import PortConfig, headers, rewrite

PORT = PortConfig("r1", "02:00:00:00:00:02", {"10.1.1.99": "02:00:00:00:00:63"})
TABLE = headers(PORT)


def checksum(header: bytes) -> int:
    total: int = sum(struct.unpack("!10H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(ttl: int = 64, identification: int = 0, last_octet: int = 99) -> bytearray:
    header = struct.pack(
        "!BBHHHBBH4s4s",
        *(0x45, 0, 50, identification, 0, ttl, 17, 0),
        *(bytes([10, 1, 0, 1]), bytes([10, 1, 1, last_octet])),
    )
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return bytearray(b"\xaa" * 12 + b"\x08\x00" + header + b"payload" * 4)


def test_checksum_stays_right_for_every_value_it_can_have() -> None:
    seen_carry = False
    for identification in range(0x10000):
        packet = frame(identification=identification)
        seen_carry |= packet[24] == 0xFF
        assert rewrite(packet, TABLE)
        stored = struct.unpack("!H", packet[24:26])[0]
        zeroed = bytes(packet[14:24]) + b"\0\0" + bytes(packet[26:34])
        # 0x0000 and 0xffff are the same number in ones' complement
        assert stored % 0xFFFF == checksum(zeroed) % 0xFFFF
    assert seen_carry


def test_next_hop_and_ttl_are_written_and_the_rest_is_left_alone() -> None:
    packet, original = frame(ttl=9), frame(ttl=9)
    assert rewrite(packet, TABLE)
    assert packet[:12] == bytes.fromhex("020000000063020000000002")
    assert packet[22] == 8
    assert packet[12:22] == original[12:22]
    assert packet[26:] == original[26:]


def test_an_expired_packet_is_dropped() -> None:
    assert not rewrite(frame(ttl=1), TABLE)
    assert not rewrite(frame(ttl=0), TABLE)


def test_a_packet_to_an_unknown_neighbour_is_dropped() -> None:
    assert not rewrite(frame(last_octet=98), TABLE)


def test_random_bytes_never_break_the_forwarder() -> None:
    generator = random.Random(1)
    for _ in range(5_000):
        rewrite(bytearray(generator.randbytes(34)), TABLE)
