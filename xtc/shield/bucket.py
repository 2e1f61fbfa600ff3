"""The arithmetic of a token bucket, as in `bucket.bpf.h`, and the layout of its maps."""

import struct
from dataclasses import dataclass, replace
from typing import Final, Self

from common.errors import UnitError
from common.units import BitsPerSecond, PacketsPerSecond, check_rate

FRACTION: Final = 16
"""Time in a bucket is counted in units of 2^-16 ns."""
LARGEST_FRAME: Final = 1518
MIN_PACKETS: Final = 16
"""Minimum burst, in packets or largest frames."""
BURST_S: Final = 0.01
"""Burst in time: senders and timers may be late by this much."""
DEEPEST: Final = 1 << 62
"""A bucket this deep takes years to drain, and leaves room for a packet in 64 bits."""
_SECOND: Final = 10**9 << FRACTION
_TERMS: Final = struct.Struct("=QQQ")
_STATE: Final = struct.Struct("=IIQQQQQ")
_REFUSED: Final = struct.Struct("=32xQ8x")
"""Its field `refused` only."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The cost of a packet and the depth of a bucket; no depth means no limit."""

    per_packet: int = 0
    per_byte: int = 0
    depth: int = 0

    @property
    def packets(self) -> PacketsPerSecond | None:
        """The rate in packets/s, None if it counts bits or nothing."""
        return PacketsPerSecond(_SECOND / self.per_packet) if self.per_packet else None

    @property
    def bits(self) -> BitsPerSecond | None:
        """The rate in bits/s, None if it counts packets or nothing."""
        return BitsPerSecond(8 * _SECOND / self.per_byte) if self.per_byte else None

    @property
    def cost(self) -> int:
        """What a packet, or a byte, takes from the bucket; 0 if neither is counted."""
        return self.per_packet or self.per_byte

    def pack(self) -> bytes:
        """Return the map's value."""
        return _TERMS.pack(self.per_packet, self.per_byte, self.depth)

    @classmethod
    def unpack(cls, value: bytes) -> Self:
        """Read the map's value."""
        return cls(*_TERMS.unpack(value))


@dataclass(frozen=True, slots=True)
class State:
    """A bucket at an instant."""

    at: int = 0
    """Nanoseconds of the monotonic clock; the last time it was updated."""
    level: int = 0
    passed: int = 0
    refused: int = 0
    refused_exempt: int = 0

    def pack(self) -> bytes:
        """Return the map's value, with its spin lock unlocked."""
        passed = (self.passed, self.refused, self.refused_exempt)
        return _STATE.pack(0, 0, self.at, self.level, *passed)

    @classmethod
    def unpack(cls, value: bytes) -> Self:
        """Read the map's value."""
        return cls(*_STATE.unpack(value)[2:])

    @staticmethod
    def refused_in(value: bytes) -> int:
        """Read only `refused` of the map's value, in a tenth of the time."""
        (refused,) = _REFUSED.unpack(value)
        return int(refused)


def in_packets(rate: PacketsPerSecond, burst_s: float = BURST_S) -> Terms:
    """Return the terms of a limit in packets/s; default burst: 10 ms, at least 16 packets.

    Raises:
        UnitError: the rate is below 1 packet/s, or not a number.
    """
    if not check_rate(rate) >= 1:
        raise UnitError("rate", f"{rate:g}", "at least 1 packet/s")
    cost = max(1, round(_SECOND / rate))
    return Terms(per_packet=cost, depth=round(cost * max(MIN_PACKETS, rate * burst_s)))


def in_bits(rate: BitsPerSecond, frame: int = LARGEST_FRAME, burst_s: float = BURST_S) -> Terms:
    """Return the terms of a limit in bits/s of Ethernet frames without preamble and checksum.

    Default burst: 10 ms, at least 16 frames of the given size.

    Raises:
        UnitError: the rate is not from 1 kb/s to 1 Tb/s.
    """
    if not 1e3 <= rate <= 1e12:
        raise UnitError("rate", f"{rate:g}", "a rate from 1e3 to 1e12 bits/s")
    cost = max(1, round(8 * _SECOND / rate))
    return Terms(per_byte=cost, depth=round(cost * max(MIN_PACKETS * frame, rate / 8 * burst_s)))


def holding(terms: Terms, burst: float, sharers: int = 1) -> Terms:
    """Return the same rate with a depth for a burst, in packets or bits, which is never exceeded.

    A frame passes while there is room for any of its bits, so that the depth in bits leaves room
    for the rest of it. Single packets pass with any burst, even through an interface with half of
    the bucket, because others share it.
    """
    amount = burst if terms.per_packet else burst / 8 - LARGEST_FRAME
    least = 1 if sharers == 1 else 2
    return replace(terms, depth=min(round(terms.cost * max(least, amount)), DEEPEST))
