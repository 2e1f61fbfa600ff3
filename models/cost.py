"""CPU cost of a packet by its size, and the curve for packets of another size.

CPU seconds of a packet of s bytes = per_packet_s + per_byte_s * s. At the same binding cap, the
throughputs at two sizes are inversely proportional to the costs, for any curve. A mix of sizes
costs the same as packets of its mean size, since the cost is linear in the size.

Sizes are bytes of the Ethernet frame without preamble and checksum, as counted by the kernel.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from models.curve import MAX_CAP, ThroughputCurve
from models.errors import InvalidModelError, OutOfRange

SMALLEST: Final = 14
LARGEST: Final = 65_549
"""Bounds of a frame in bytes: an Ethernet header only, and one with the largest IP packet."""
MOST_S: Final = 1.0
"""CPU seconds; a higher cost is a mistake of units."""
LOADED: Final = 0.95
"""Share of the offered load from which the load counts as the limit of throughput."""
SUMS: Final = 0.01
"""Tolerance of the sum of a mix's shares, for rounding."""
ROUNDING: Final = 1e-9

Mix = Sequence[tuple[float, float]]
"""(bytes of a frame, share of the packets) of each size."""


@dataclass(frozen=True, slots=True)
class PacketCost:
    """The CPU time that a packet takes.

    Raises:
        InvalidModelError: a cost is negative or not finite, both are 0, or the size is out of
            bounds.
    """

    per_packet_s: float
    """CPU seconds of a packet, independent of its size."""
    per_byte_s: float
    """CPU seconds of a byte of its frame."""
    reference_bytes: float
    """The packet size of the host's curve; the mean of a mix may be fractional."""

    def __post_init__(self) -> None:
        for name in ("per_packet_s", "per_byte_s"):
            if not 0.0 <= getattr(self, name) <= MOST_S:
                problem = f"{getattr(self, name):g} s is not within 0 to {MOST_S:g}"
                raise InvalidModelError(name, problem, "give the CPU time that one takes")
        if self.per_packet_s + self.per_byte_s <= 0.0:
            raise InvalidModelError("per_packet_s", "nothing costs anything", "give one above 0")
        if not SMALLEST <= self.reference_bytes <= LARGEST:
            problem = f"{self.reference_bytes:g} bytes"
            fix = f"give {SMALLEST} to {LARGEST} bytes of a frame"
            raise InvalidModelError("reference_bytes", problem, fix)

    def of(self, size_bytes: float) -> float:
        """Return the CPU seconds of a packet.

        Raises:
            OutOfRange: no frame has that size.
        """
        if not SMALLEST <= size_bytes <= LARGEST:
            raise OutOfRange("packet size in bytes", size_bytes, SMALLEST, LARGEST)
        return self.per_packet_s + self.per_byte_s * size_bytes

    def ratio(self, size_bytes: float) -> float:
        """Return throughput at a size relative to the reference, at the same binding cap.

        Raises:
            OutOfRange: no frame has that size.
        """
        return self.of(self.reference_bytes) / self.of(size_bytes)

    def on_a_host(self, factor: float) -> "PacketCost":
        """Return the cost on a host that is faster by this factor."""
        return PacketCost(
            self.per_packet_s / factor, self.per_byte_s / factor, self.reference_bytes
        )

    def mean_of(self, mix: Mix) -> float:
        """Return the packet size, in bytes, with the mean cost of a mix.

        Raises:
            InvalidModelError: as `mean_bytes`.
        """
        return mean_bytes(mix)


def mean_bytes(mix: Mix) -> float:
    """Return the mean size of a mix's packets, in bytes.

    Raises:
        InvalidModelError: a size or share is out of bounds, or the shares do not sum to 1 within
            1 %.
    """
    for size, share in mix:
        if not SMALLEST <= size <= LARGEST:
            fix = f"give {SMALLEST} to {LARGEST} bytes of a frame"
            raise InvalidModelError("mix", f"a size of {size:g} bytes", fix)
        if not 0.0 <= share <= 1.0 + SUMS:
            raise InvalidModelError("mix", f"a share of {share:g}", "give shares within 0 to 1")
    whole = sum(share for _, share in mix)
    if abs(whole - 1.0) > SUMS + ROUNDING:
        fix = "give shares of all packets that sum to 1"
        raise InvalidModelError("mix", f"its shares sum to {whole:g}", fix)
    return sum(size * share for size, share in mix) / whole


def limited_by_load(curve: ThroughputCurve) -> bool:
    """Whether the offered load limits the top of a curve, by the share that it forwards."""
    return curve.offered is not None and curve.top >= LOADED * curve.offered


def scaled(
    curve: ThroughputCurve, ratio: float, ceiling: float, *, loaded: bool
) -> ThroughputCurve:
    """Return the curve for packets with ``1 / ratio`` of the cost.

    Args:
        curve: as measured.
        ratio: factor on the throughput, where the CPU limits it.
        ceiling: the largest cap, a fraction of one CPU; curves of more expensive packets end there.
        loaded: whether the offered load limits the top, which then does not change.
    """
    if not loaded:
        points = tuple((cap, rate * ratio) for cap, rate in curve.points)
        offered = curve.offered
        keeps = offered is not None and points[-1][1] <= offered
        return ThroughputCurve(points, offered if keeps else None)
    points = _faster(curve, ratio) if ratio >= 1.0 else _slower(curve, ratio, ceiling)
    return ThroughputCurve(points, curve.offered)


def _faster(curve: ThroughputCurve, ratio: float) -> tuple[tuple[float, float], ...]:
    """Return the points of cheaper packets, which reach the offered load at a smaller cap."""
    knee = curve.cap_for(curve.top / ratio)
    below = [(cap, min(rate * ratio, curve.top)) for cap, rate in curve.points if cap < knee]
    above = [(cap, curve.top) for cap, _ in curve.points if cap > knee]
    return (*below, (knee, curve.top), *above)


def _slower(
    curve: ThroughputCurve, ratio: float, ceiling: float
) -> tuple[tuple[float, float], ...]:
    """Return the points of more expensive packets, which reach the offered load at a larger cap.

    Points limited by the load need more CPU in proportion to the cost; the others have less
    throughput at their caps.
    """
    free = LOADED * (curve.offered or curve.top)
    low = [(cap, rate * ratio) for cap, rate in curve.points if rate < free]
    high = [(cap / ratio, rate) for cap, rate in curve.points if rate >= free]
    last = max(curve.points[-1][0], min(ceiling, MAX_CAP))
    return _cut((*low, *high), last)


def _cut(points: Sequence[tuple[float, float]], last: float) -> tuple[tuple[float, float], ...]:
    """Return the points up to a cap, including the line's point there."""
    caps = [cap for cap, _ in points]
    kept = bisect_left(caps, last)
    if kept == len(points):
        return tuple(points)
    cap, rate = points[kept]
    before_cap, before = points[kept - 1] if kept else (0.0, 0.0)
    share = (last - before_cap) / (cap - before_cap)
    end = (last, min(rate, before + share * (rate - before)))
    # A single point ends a line from the origin; add another one on that line.
    return (*points[:kept], end) if kept else ((last / 2, end[1] / 2), end)
