"""Throughput as a function of cap, through measured points, and its inverse."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from models.errors import InvalidModelError, OutOfRange

MAX_CAP = 1024.0
"""CPUs; a larger cap is a typo."""

MAX_RATE = 1e9
"""Packets/s; no port of this decade forwards more."""

METER_NOISE = 1.1
"""How far a measured throughput may exceed the offered load without a contradiction."""


@dataclass(frozen=True, slots=True)
class ThroughputCurve:
    """Measured points joined by straight lines.

    Below the first point the line goes through the origin, as on every measured host (Table 1 of
    the paper: 3.2 kp/s per percent); above the last it is flat, the cap threshold of section 5.1.
    Scalar calls cost a bisection: the control loop needs one per router and tick.

    Raises:
        InvalidModelError: fewer than two points, caps that do not rise, throughputs that fall,
            numbers that are not finite or out of bounds, or no throughput at all.
    """

    points: tuple[tuple[float, float], ...]
    """(cap as a fraction of one CPU, throughput in packets/s), caps rising."""
    offered: float | None = None
    """The offered load of the measurement, in packets/s; None where it was not recorded."""
    _caps: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _rates: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Plain floats: numpy's numbers would make every later call several times slower.
        points = tuple((float(cap), float(rate)) for cap, rate in self.points)
        _check_points(points)
        _check_offered(self.offered, points[-1][1])
        object.__setattr__(self, "points", points)
        # With the origin as a point, the first segment needs no special case.
        object.__setattr__(self, "_caps", (0.0, *(cap for cap, _ in points)))
        object.__setattr__(self, "_rates", (0.0, *(rate for _, rate in points)))

    @property
    def top(self) -> float:
        """The largest throughput, in packets/s."""
        return self._rates[-1]

    @property
    def cap_threshold(self) -> float:
        """The smallest cap that gives the largest throughput, a fraction of one CPU."""
        return self.cap_for(self.top)

    def throughput(self, cap: float) -> float:
        """Return the packets/s that a cap (fraction of one CPU) gives; infinity means uncapped.

        Raises:
            OutOfRange: the cap is negative or not a number.
        """
        right = self._segment_above(cap)
        caps, rates = self._caps, self._rates
        if right == len(caps):
            return rates[-1]
        return _between(cap, caps[right - 1], caps[right], rates[right - 1], rates[right])

    def cap_for(self, throughput: float) -> float:
        """Return the smallest cap (fraction of one CPU) that gives a throughput (packets/s).

        Raises:
            OutOfRange: no cap gives it; ``maximum`` is the highest throughput of any cap.
        """
        caps, rates = self._caps, self._rates
        if not 0.0 <= throughput <= rates[-1]:
            raise OutOfRange("throughput in packets/s", throughput, 0.0, rates[-1])
        right = bisect_left(rates, throughput)
        if rates[right] == throughput:
            return caps[right]
        return _between(throughput, rates[right - 1], rates[right], caps[right - 1], caps[right])

    def cap_for_clamped(self, throughput: float) -> float:
        """Return ``cap_for`` of the throughput, or the cap threshold if it is above the top.

        Raises:
            OutOfRange: the throughput is negative or not a number.
        """
        return self.cap_for(min(throughput, self.top))

    def slope_log(self, cap: float) -> float:
        """Return d log(throughput) / d log(cap) at a cap, dimensionless.

        It is 1 where throughput is proportional to the cap, 0 where it no longer responds, and
        within [0, 1] everywhere on a concave curve. At a measured point it is the slope of the
        segment on the left.

        Raises:
            OutOfRange: the cap is negative or not a number.
        """
        rate = self.throughput(cap)
        right = bisect_left(self._caps, cap)
        if right == len(self._caps) or rate == 0.0:
            return 0.0
        if right == 1:
            return 1.0
        rise = self._rates[right] - self._rates[right - 1]
        return rise / rate * (cap / (self._caps[right] - self._caps[right - 1]))

    def _segment_above(self, cap: float) -> int:
        if not cap >= 0.0:
            raise OutOfRange("cap as a fraction of one CPU", cap, 0.0, math.inf)
        return bisect_right(self._caps, cap)


def _between(x: float, x0: float, x1: float, y0: float, y1: float) -> float:
    # Rounding must not raise a value above the segment's end: the curve must be monotone.
    return min(y1, y0 + (y1 - y0) * ((x - x0) / (x1 - x0)))


def _check_points(points: tuple[tuple[float, float], ...]) -> None:
    if len(points) < 2:
        raise InvalidModelError("points", f"{len(points)} given", "a curve takes at least two")
    previous_cap, previous_rate = 0.0, 0.0
    for index, (cap, rate) in enumerate(points):
        _check_point(f"points[{index}]", cap, rate)
        if cap <= previous_cap:
            raise InvalidModelError(
                f"points[{index}]", "its cap is not above the one before", "order caps upwards"
            )
        if rate < previous_rate:
            raise InvalidModelError(
                f"points[{index}]",
                f"throughput falls from {previous_rate:g} to {rate:g} packets/s as the cap rises",
                "measure the point again, or give it the throughput of the point before",
            )
        previous_cap, previous_rate = cap, rate
    if previous_rate <= 0.0:
        raise InvalidModelError("points", "no cap gives any throughput", "measure larger caps")


def _check_point(where: str, cap: float, rate: float) -> None:
    if not 0.0 < cap <= MAX_CAP:
        raise InvalidModelError(
            where, f"its cap is {cap * 100:g} %", f"give a cap above 0 and at most {MAX_CAP:g} CPUs"
        )
    if not 0.0 <= rate <= MAX_RATE:
        raise InvalidModelError(
            where, f"its throughput is {rate:g} packets/s", f"give 0 to {MAX_RATE:g} packets/s"
        )


def _check_offered(offered: float | None, top: float) -> None:
    if offered is not None and not top <= METER_NOISE * offered <= METER_NOISE * MAX_RATE:
        raise InvalidModelError(
            "offered",
            f"{top:g} packets/s were forwarded of {offered:g} offered",
            "give the offered load of the measurement in packets/s",
        )
