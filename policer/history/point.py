"""What is kept of a router over a stretch of time: sums, so that stretches can be added; pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

WIDTH: Final = 8
"""Columns of a point, in the order of `Point`'s fields."""


class Point(msgspec.Struct, frozen=True):
    """Sums over a stretch; a rate is a sum of packets divided by its seconds."""

    data_s: float = 0.0
    """Seconds that are known."""
    offered: float = 0.0
    """Packets that were sent to the router."""
    delivered: float = 0.0
    """Packets that it forwarded."""
    held_s: float = 0.0
    """Seconds in which it had a setpoint."""
    setpoint: float = 0.0
    """Packets that its setpoints allowed in them."""
    guaranteed: float = 0.0
    """Packets that the guarantee in force allowed; none without a contract."""
    breach_s: float = 0.0
    """Seconds in which it got less than that guarantee, beyond the burst, and wanted more."""
    punished_s: float = 0.0
    """Seconds in which it stood on its ladder, dry runs left out."""


def added(points: Iterable[Point]) -> Point:
    """Return the sums over all stretches."""
    rows = [msgspec.structs.astuple(point) for point in points]
    return Point(*map(sum, zip(*rows, strict=True))) if rows else Point()


def merged(series: Iterable[Mapping[int, Point]], step_s: int) -> dict[int, Point]:
    """Return points that begin at multiples of a step, in order, each the sum of what is in it.

    Args:
        series: points by the second since 1970 at which they begin.
        step_s: length of a point, seconds.
    """
    parts: dict[int, list[Point]] = {}
    for points in series:
        for at, point in points.items():
            parts.setdefault(at - at % step_s, []).append(point)
    return {at: added(parts[at]) for at in sorted(parts)}


def point_of(values: Sequence[float]) -> Point:
    """Return the point of so many columns."""
    return Point(*values)
