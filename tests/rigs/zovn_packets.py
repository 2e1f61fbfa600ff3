"""TCP and UDP packets in frames: as a sender leaves them to others, and finished, from scratch."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from zovn.native.switch import Offload

ADDRESSES: Final = {
    4: (bytes((10, 1, 2, 3)), bytes((10, 4, 5, 6))),
    6: (bytes(range(16)), bytes(range(100, 116))),
}
TYPES: Final = {4: 0x0800, 6: 0x86DD}
TCP, UDP, OPTIONS = 6, 17, 60
FIN, PSH, ACK, CWR = 1, 8, 16, 128
KINDS: Final = {(TCP, 4): 1, (TCP, 6): 4, (UDP, 4): 5, (UDP, 6): 5}
"""Kinds of segmentation in virtio's network header."""


def total(data: bytes, begin: int = 0) -> int:
    """Return the sum of words of 16 bits, in ones' complement (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    begin += sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while begin >> 16:
        begin = (begin & 0xFFFF) + (begin >> 16)
    return begin


@dataclass(frozen=True)
class Packet:
    """What is in a packet. `more` are options of IPv4, or an extension header of IPv6."""

    payload: bytes
    version: int = 4
    protocol: int = TCP
    more: bytes = b""
    tcp_more: bytes = b""
    sequence: int = 0
    flags: int = ACK
    identification: int = 0
    traffic: int = 0
    header: bytes = b""
    """Of Ethernet, without the type."""

    @property
    def transport_at(self) -> int:
        """Where TCP or UDP begins in the frame."""
        return len(self.header) + 2 + (20 if self.version == 4 else 40) + len(self.more)

    @property
    def sum_at(self) -> int:
        """Where their checksum is, from there."""
        return 16 if self.protocol == TCP else 6

    def transport(self, sum_: int) -> bytes:
        """Return the header of TCP or UDP with this checksum, and the payload."""
        if self.protocol == UDP:
            return struct.pack("!HHHH", 1234, 80, 8 + len(self.payload), sum_) + self.payload
        head = struct.pack(
            "!HHIIBBHHH",
            *(1234, 80, self.sequence, 77, (20 + len(self.tcp_more)) // 4 << 4, self.flags),
            *(5000, sum_, 0),
        )
        return head + self.tcp_more + self.payload

    def pseudo(self) -> int:
        """Return the sum of the pseudo header."""
        length = len(self.transport(0))
        return total(
            b"".join(ADDRESSES[self.version])
            + struct.pack("!IHH", length, 0, 0)
            + struct.pack("!H", self.protocol)
        )

    def _ipv4(self, length: int) -> bytes:
        head = struct.pack(
            "!BBHHHBBH",
            *(0x45 + len(self.more) // 4, self.traffic, 20 + len(self.more) + length),
            *(self.identification, 0x4000, 64, self.protocol, 0),
        )
        head += b"".join(ADDRESSES[4]) + self.more
        return head[:10] + struct.pack("!H", total(head) ^ 0xFFFF) + head[12:]

    def _ipv6(self, length: int) -> bytes:
        following = OPTIONS if self.more else self.protocol
        word = 6 << 28 | self.traffic << 20 | 0xABCDE
        head = struct.pack("!IHBB", word, len(self.more) + length, following, 64)
        extension = b""
        if self.more:
            extension = bytes((self.protocol, len(self.more) // 8 - 1)) + self.more[2:]
        return head + b"".join(ADDRESSES[6]) + extension

    def frame(self, sum_: int) -> bytes:
        """Return the frame with this checksum."""
        body = self.transport(sum_)
        network = self._ipv4(len(body)) if self.version == 4 else self._ipv6(len(body))
        return self.header + struct.pack("!H", TYPES[self.version]) + network + body

    def unfinished(self) -> bytes:
        """Return the frame with the sum of the pseudo header for a checksum."""
        return self.frame(self.pseudo())

    def finished(self) -> bytes:
        """Return the frame with its checksum, which is never 0."""
        return self.frame((total(self.transport(0), self.pseudo()) ^ 0xFFFF) or 0xFFFF)

    def offload(self, size: int = 0, *, ecn: bool = False) -> Offload:
        """Return what a sender says of it that leaves it whole for segments of a size, or for 0 the
        checksum only."""
        kind = KINDS[self.protocol, self.version] | (0x80 if ecn else 0)
        head = self.transport_at + len(self.transport(0)) - len(self.payload)
        return Offload(
            1, kind if size else 0, head if size else 0, size, self.transport_at, self.sum_at
        )

    def segments(self, size: int) -> Iterator["Packet"]:
        """Return what its segments are."""
        starts = range(0, len(self.payload), size) or range(1)
        for number, start in enumerate(starts):
            flags = self.flags
            if start != starts[-1]:
                flags &= ~(FIN | PSH)
            if start:
                flags &= ~CWR
            yield replace(
                self,
                payload=self.payload[start : start + size],
                sequence=(self.sequence + start) % 2**32,
                identification=(self.identification + number) % 2**16,
                flags=flags,
            )
