"""Setpoints: a rate in packets/s or in bits/s, and their unit in a loop.

Bits are those of Ethernet frames as counted by interfaces: with header, without preamble and
checksum.
"""

import re
from dataclasses import dataclass
from enum import Enum

from common.errors import UnitError
from common.units import (
    MAX_BIT_RATE,
    MAX_RATE,
    BitsPerSecond,
    PacketsPerSecond,
    format_bit_rate,
    format_rate,
    is_rate,
    parse_bit_rate,
    parse_rate,
)

LOOP_BITS = MAX_BIT_RATE / MAX_RATE
"""Bits per unit in a loop: with kilobits, the laws' bounds for impossible rates stay valid."""

BURST_S = 0.2
"""Default burst of a setpoint, in seconds of it."""

_SLIP = re.compile(r"^\s*([0-9.]+)\s*([kMG]?)(bps|b|bit|B/s|Bps|B)\s*$")


class Unit(Enum):
    """The unit of a setpoint."""

    PACKETS = "packets"
    BITS = "bits"

    __hash__ = object.__hash__
    """Members are singletons; the inherited one is a Python call for each look-up."""


LEAST_BURST = {Unit.PACKETS: 1.0, Unit.BITS: 8.0 * 1518}
"""A packet, or a frame of full size: with less, nothing could pass."""


@dataclass(frozen=True, slots=True)
class Setpoint:
    """The throughput of a router to hold, in its unit."""

    rate: float
    """In packets/s or bits/s."""
    unit: Unit = Unit.PACKETS
    burst: float | None = None
    """What may pass beyond the rate, in packets or bits; None means ``BURST_S`` of it."""

    @property
    def allowance(self) -> float:
        """What may pass beyond the rate in any window, in packets or bits."""
        if self.burst is not None:
            return self.burst
        return max(BURST_S * self.rate, LEAST_BURST[self.unit])

    @property
    def pps(self) -> PacketsPerSecond | None:
        """The rate in packets/s; None for a setpoint in bits/s."""
        return PacketsPerSecond(self.rate) if self.unit is Unit.PACKETS else None

    @property
    def bps(self) -> BitsPerSecond | None:
        """The rate in bits/s; None for a setpoint in packets/s."""
        return BitsPerSecond(self.rate) if self.unit is Unit.BITS else None

    @property
    def target(self) -> float:
        """The rate in the loop's unit: packets/s or kilobits/s."""
        return self.rate if self.unit is Unit.PACKETS else self.rate / LOOP_BITS

    def __str__(self) -> str:
        return format_rate(self.rate) if self.unit is Unit.PACKETS else format_bit_rate(self.rate)


def one_of(pps: float | None, bps: float | None, burst: float | None = None) -> Setpoint:
    """Return the setpoint that is given in one of two units; the burst is in the same.

    Raises:
        ValueError: neither of them is given, or both.
    """
    if pps is not None and bps is None:
        return Setpoint(pps, burst=burst)
    if bps is not None and pps is None:
        return Setpoint(bps, Unit.BITS, burst)
    raise ValueError("give setpoint_pps or setpoint_bps, and not both")


def counted(unit: Unit, pps: float | None, bps: float | None) -> float | None:
    """Return a measured rate in the unit of a loop; None if it is unknown."""
    if unit is Unit.PACKETS:
        return pps
    return None if bps is None else bps / LOOP_BITS


def parse_setpoint(text: str, *, field: str = "setpoint") -> Setpoint:
    """Parse a rate in packets/s, such as ``20kpps``, or in bits/s, such as ``50Mb/s``.

    Raises:
        UnitError: the text is neither, or out of range. ``kbps`` is refused as well: it is one
            letter from ``kpps``, and some hundred times less.
    """
    if slip := _SLIP.match(text):
        raise UnitError(field, text, _meant(*slip.groups()))
    if is_rate(text):
        return Setpoint(parse_rate(text, field=field))
    return Setpoint(parse_bit_rate(text, field=field), Unit.BITS)


def _meant(number: str, prefix: str, unit: str) -> str:
    if unit.startswith("B"):
        return "a rate in bits: bytes are not counted, write bits as in 50Mb/s"
    if unit == "bps":
        return f"clear: write {number}{prefix}b/s for bits, or packets as in 20kpps"
    return f"a rate: write {number}{prefix}b/s"
