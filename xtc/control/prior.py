"""Knowledge of a router before its first sample: a point, the slope there, and its uncertainty.

It comes from the last run's estimate, or from a guess. The guess assumes a router as fast as any
software router, so that its cap starves it for a period or two instead of flooding the network
behind it.
"""

import math
from typing import Final

import msgspec

from common.setpoint import Unit
from xtc.control.estimate import SLOPE_DOUBT, SLOPES, Estimate

GUESSED: Final = {Unit.PACKETS: 2e6, Unit.BITS: 24e6}
"""Assumed throughput of one CPU per second: packets, or kilobits in packets of 1,500 bytes. The
Linux kernel and user-space forwarders were measured at 0.2 to 1.5 million packets."""
GUESS_DOUBT: Final = math.log(10) ** 2
"""Variance of a guess, in logarithms."""
RUN_DOUBT: Final = 0.04
"""Variance that another run adds: a host with different load differs by 20 %."""
CERTAIN: Final = 0.09
"""Variance up to which an estimate is worth remembering."""
NEAR: Final = 0.3
"""|log(setpoint / rate)| within which the slope is trusted; further away, throughput is assumed to
be proportional to the cap."""
MISSED: Final = 0.2
"""Error of a prior at the first sample shaped by the cap, above which the prior is dropped."""


class Prior(msgspec.Struct, frozen=True):
    """A cap, and a router's throughput at it, in the loop's unit."""

    cap: float
    rate: float
    slope: float = 1.0
    """Elasticity: d log(rate) / d log(cap)."""
    variance: float = GUESS_DOUBT
    """Variance of log(rate) at that cap."""

    def towards(self, target: float) -> tuple[float, float]:
        """Return offset and slope of the line log(y) = offset + slope · log(cap) to a rate."""
        slope = self.slope if abs(math.log(target / self.rate)) < NEAR else 1.0
        return math.log(self.rate) - slope * math.log(self.cap), slope

    def cap_for(self, target: float) -> float:
        """Return the cap at which the router forwards a rate."""
        offset, slope = self.towards(target)
        return math.exp((math.log(target) - offset) / slope)

    def doubt_at(self, target: float) -> float:
        """Return the variance of log(rate) at the cap for a rate."""
        return self.variance + (SLOPE_DOUBT * math.log(target / self.rate)) ** 2

    def is_sane(self) -> bool:
        """Whether the values are plausible: they may come from a damaged file."""
        in_bounds = 1e-6 <= self.cap <= 1e4 and 1e-3 <= self.rate <= 1e12
        known = SLOPES[0] <= self.slope <= SLOPES[1] and 0 <= self.variance <= GUESS_DOUBT
        return in_bounds and known


def guess(unit: Unit) -> Prior:
    """Return the assumption about an unknown router."""
    return Prior(1.0, GUESSED[unit])


def learned(estimate: Estimate) -> Prior | None:
    """Return a loop's estimate for the next run; None where it is not certain."""
    if estimate.offset is None or not estimate.caps or estimate.variance > CERTAIN:
        return None
    rate, cap = math.exp(min(estimate.level, 50.0)), math.exp(min(estimate.acting_cap, 50.0))
    return Prior(cap, rate, estimate.slope, estimate.variance + RUN_DOUBT)
