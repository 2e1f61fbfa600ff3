"""Ethernet frames, header by header, as far as a classifier looks into them."""

import struct

_ADDRESSES = bytes.fromhex("020000000001020000000002")


def ethernet(ethertype: int, payload: bytes) -> bytes:
    """Return a frame; one cut short stays as short as it is."""
    return _ADDRESSES + struct.pack("!H", ethertype) + payload


def tagged(frame: bytes, ethertype: int) -> bytes:
    """Return a frame with another VLAN tag outside."""
    return frame[:12] + struct.pack("!HH", ethertype, 7) + frame[12:]


def llc(points: int) -> bytes:
    """Return an 802.3 frame of a protocol on LLC."""
    return ethernet(43, struct.pack("!H", points) + b"\x03".ljust(44, b"\0"))


def arp() -> bytes:
    """Return an ARP request."""
    return ethernet(0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20))


def ipv4(
    protocol: int, payload: bytes = b"", *, options: int = 0, offset: int = 0, more: bool = False
) -> bytes:
    """Return an IPv4 packet; the offset of a fragment is in units of 8 bytes."""
    length, fragment = 20 + options + len(payload), offset | (0x2000 if more else 0)
    header = struct.pack("!BBHHHBBH", 0x45 + options // 4, 0, length, 1, fragment, 64, protocol, 0)
    return header + bytes(8) + b"\x01" * options + payload


def ipv6(header: int, payload: bytes = b"", *, fragment: tuple[int, int] | None = None) -> bytes:
    """Return an IPv6 packet; a fragment is its protocol and its offset in bytes."""
    if fragment is not None:
        payload = struct.pack("!BBHI", fragment[0], 0, fragment[1] | 1, 1) + payload
    return struct.pack("!IHBB", 6 << 28, len(payload), header, 255) + bytes(32) + payload


def tcp(source: int, destination: int, *, options: int = 0) -> bytes:
    """Return a TCP header with so many bytes of options, a multiple of 4."""
    words = 5 + options // 4
    header = struct.pack("!HHIIHHHH", source, destination, 1, 1, words << 12, 1000, 0, 0)
    return header + b"\x01" * options


def udp(source: int, destination: int) -> bytes:
    """Return a UDP datagram."""
    return struct.pack("!HHHH", source, destination, 16, 0) + bytes(8)


def icmpv6(kind: int) -> bytes:
    """Return the beginning of an ICMPv6 message."""
    return struct.pack("!BBHI", kind, 0, 0, 0)
