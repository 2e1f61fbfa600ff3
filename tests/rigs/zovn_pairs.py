"""A guest with several pairs of rings, and frames of flows that can be told apart."""

import ctypes
import struct
from typing import Final

from zovn_guest import Guest

from zovn.native.switch import library

SIZE: Final = 16
TCP, UDP = 6, 17


class _More(Guest):
    """A further pair, in memory of its own."""

    def port(self) -> int | None:
        """Make none: the first pair's has it."""
        return None


class PairedGuest:
    """A port with pairs; each is driven by itself."""

    def __init__(self, count: int, *, recorded: bool = False, most: int = 8) -> None:
        self.recorded = recorded
        self.pairs = [Guest(SIZE, heads=SIZE * most, recorded=recorded)]
        self.handle = self.pairs[0].handle
        while len(self.pairs) < count:
            assert self.extend()

    def extend(self) -> bool:
        """Add a pair; return whether there was room."""
        made = _More(SIZE, recorded=self.recorded)
        added = bool(library().zovn_ring_port_add(self.handle, ctypes.byref(made.rings())))
        self.pairs += [made] * added
        return added

    def again(self) -> None:
        """Have another port that goes on with the same rings."""
        first, *more = self.pairs
        self.handle = first.port()
        for each in more:
            assert library().zovn_ring_port_add(self.handle, ctypes.byref(each.rings()))


def packet4(protocol: int, hosts: int, ports: int, serial: int, fragment: int = 0) -> bytes:
    """Return an IPv4 packet."""
    header = struct.pack("!BBHHHBBHII", 0x45, 0, 48, 0, fragment, 64, protocol, 0, hosts, 7)
    return header + struct.pack("!HH20xI", ports, 80, serial)


def packet6(protocol: int, hosts: int, ports: int, serial: int) -> bytes:
    """Return an IPv6 packet."""
    header = struct.pack("!IHBB16s16s", 6 << 28, 28, protocol, 64, bytes([hosts] * 16), bytes(16))
    return header + struct.pack("!HH20xI", ports, 80, serial)


def framed(addresses: bytes, packet: bytes, *, tagged: bool = False) -> bytes:
    """Return a frame with a packet in it; its last four bytes are its number."""
    tag = b"\x81\x00\xa0\x01" if tagged else b""
    return addresses + tag + (b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd") + packet
