"""Eq. 1 of the paper: throughput as a first-order response to the logarithm of the cap."""

import math
from dataclasses import dataclass, replace

from models.curve import MAX_CAP, MAX_RATE, ThroughputCurve
from models.errors import InvalidModelError, OutOfRange

PACKETS_PER_KP = 1e3
"""The paper counts kp/s; xtc counts packets/s."""

PERCENT_PER_CPU = 100.0
"""The paper's caps are percent of one CPU; xtc's are fractions of one CPU."""

CURVE_POINTS = 64
"""Number of points of a sampled curve."""


@dataclass(frozen=True, slots=True)
class LogCapModel:
    """Eq. 1, ``y(k+1) = a·y(k) + b·u(k)`` with ``u = log10(cap)``, around an operating point.

    ``y`` and ``u`` are offsets from the operating point (paper, section 5.2 and appendix A). The
    fields keep the paper's units, kp/s and log10 of percent, so that published figures can be
    copied; the methods use packets/s and fractions of one CPU. It is a straight line: far below the
    operating point, it is wrong, and even negative.

    Raises:
        InvalidModelError: a number is not finite or not within the bounds given with its field.
    """

    a: float
    """The share of a throughput offset that is left after one sample; 0 <= a < 1."""
    b: float
    """The throughput that a decade of cap adds within one sample, kp/s per decade; b > 0."""
    mean_throughput: float
    """The operating point's throughput, kp/s."""
    mean_log_cap: float
    """The operating point's cap, log10 of percent."""
    cap_threshold: float
    """The end of the fitted region, a fraction of one CPU; a larger cap gives no more
    throughput."""
    offered: float
    """The offered load of the measurement, packets/s."""
    r_squared: float | None = None
    """The share of the throughput's variance that the fit explains; None where unknown."""

    def __post_init__(self) -> None:
        self._require("a", 0.0 <= self.a < 1.0, "a stable host has 0 <= a < 1")
        self._require("b", 0.0 < self.b <= MAX_RATE, "more cap must give more throughput")
        self._require("mean_throughput", 0.0 <= self.mean_throughput <= MAX_RATE, "give kp/s")
        self._require("mean_log_cap", -5.0 <= self.mean_log_cap <= 6.0, "give log10 of percent")
        self._require("cap_threshold", 0.0 < self.cap_threshold <= MAX_CAP, "give CPUs above 0")
        self._require("offered", 0.0 < self.offered <= MAX_RATE, "give packets/s above 0")
        if self.r_squared is not None:
            self._require("r_squared", 0.0 <= self.r_squared <= 1.0, "give 0 to 1")
        self._require_throughput()

    @property
    def gain(self) -> float:
        """The steady slope ``b / (1 - a)``, kp/s per decade of cap."""
        return self.b / (1.0 - self.a)

    def next_throughput(self, throughput: float, cap: float) -> float:
        """Return the throughput one sample later (Eq. 1): packets/s from packets/s and a fraction.

        Raises:
            OutOfRange: the cap is not above 0.
        """
        offset = throughput / PACKETS_PER_KP - self.mean_throughput
        after = self.a * offset + self.b * self._cap_offset(cap)
        return (self.mean_throughput + after) * PACKETS_PER_KP

    def steady_throughput(self, cap: float) -> float:
        """Return the steady throughput of a constant cap (fraction of one CPU), in packets/s.

        Raises:
            OutOfRange: the cap is not above 0.
        """
        return (self.mean_throughput + self.gain * self._cap_offset(cap)) * PACKETS_PER_KP

    def cap_for(self, throughput: float) -> float:
        """Return the cap (fraction of one CPU) with this steady throughput (packets/s).

        Raises:
            OutOfRange: it is negative, or above what the cap threshold gives.
        """
        maximum = self.steady_throughput(self.cap_threshold)
        if not 0.0 <= throughput <= maximum:
            raise OutOfRange("throughput in packets/s", throughput, 0.0, maximum)
        decades = (throughput / PACKETS_PER_KP - self.mean_throughput) / self.gain
        # Rounding must not raise a cap above the threshold.
        percent = math.pow(10.0, self.mean_log_cap + decades)
        return min(self.cap_threshold, percent / PERCENT_PER_CPU)

    def scaled(self, ratio: float) -> "LogCapModel":
        """Return the model of a host that forwards ``ratio`` times as much at each cap.

        Raises:
            InvalidModelError: the numbers are out of bounds.
        """
        return replace(self, b=self.b * ratio, mean_throughput=self.mean_throughput * ratio)

    def sample_curve(self) -> ThroughputCurve:
        """Return the steady state as a curve of points evenly spaced in log(cap).

        It starts where the line crosses zero, ends at the cap threshold, and is flat from the cap
        that carries the whole offered load. It matches the paper's model within 0.02 kp/s.

        Raises:
            InvalidModelError: the line is so steep that its points fall together.
        """
        # A nearly flat line crosses zero at a negligible cap: stop four decades down.
        first = max(self.cap_for(0.0), self.cap_threshold * 1e-4)
        ratio, legs = self.cap_threshold / first, CURVE_POINTS - 1
        caps = {first * math.pow(ratio, leg / legs) for leg in range(CURVE_POINTS)}
        knee = self._cap_of_offered()
        if first < knee < self.cap_threshold:
            caps.add(knee)
        points = ((cap, self._forwarded(cap, knee)) for cap in sorted(caps))
        return ThroughputCurve(tuple(points), self.offered)

    def _cap_of_offered(self) -> float:
        """Return the smallest cap that carries the whole offered load; infinity if none does."""
        reached = self.offered <= self.steady_throughput(self.cap_threshold)
        return self.cap_for(self.offered) if reached else math.inf

    def _forwarded(self, cap: float, knee: float) -> float:
        if cap >= knee:
            return self.offered
        return min(self.offered, max(0.0, self.steady_throughput(cap)))

    def _cap_offset(self, cap: float) -> float:
        if not 0.0 < cap < math.inf:
            raise OutOfRange("cap as a fraction of one CPU", cap, 0.0, math.inf)
        return math.log10(cap * PERCENT_PER_CPU) - self.mean_log_cap

    def _require_throughput(self) -> None:
        if self.steady_throughput(self.cap_threshold) <= 0.0:
            problem = "no cap up to the cap threshold gives any throughput"
            raise InvalidModelError("mean_log_cap", problem, "fit the operating point again")

    def _require(self, name: str, valid: bool, fix: str) -> None:
        if not valid:
            raise InvalidModelError(name, f"{getattr(self, name):g} is out of bounds", fix)
