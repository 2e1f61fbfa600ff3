"""A rate that follows the share of marked packets, for links whose capacity no end knows. Pure.

The law `fair` of HyGenICC between the first and the last hop. It falls as DCTCP's window does, by
half the smoothed share of marked packets (RFC 8257), returns halfway to what it was in each calm
period, and then rises by equal steps, as DCQCN does (Zhu et al., SIGCOMM 2015). Falls in proportion
and equal rises converge to equal rates (Chiu and Jain, 1989). Rates in bits/s.
"""

from dataclasses import dataclass, replace
from typing import Final

GAIN: Final = 1 / 16
"""Weight of a period in the smoothed share (RFC 8257, g)."""
STEP: Final = 3e-3
"""Rise of a calm period, as a share of the link."""
RECOVERY: Final = 5
"""Calm periods that only return to the rate before the fall."""
CALM: Final = 50
"""Calm periods after which each rise is larger than the one before, up to STEPS."""
STEPS: Final = 20


@dataclass(frozen=True, slots=True)
class Marked:
    """What a sender knows of the way to one destination."""

    rate_bps: float
    target_bps: float
    """What the rate returns to."""
    alpha: float = 1.0
    """The smoothed share of marked packets."""
    calm: int = 0
    """Periods without marks."""


def started(link_bps: float) -> Marked:
    """Return a pair at the start: at full rate, as if every packet had been marked so far."""
    return Marked(link_bps, link_bps)


def followed(pair: Marked, packets: float, marks: float, link_bps: float) -> Marked:
    """Return the pair after a period in which packets arrived; without any, it stays.

    Args:
        pair: before.
        packets: that arrived, by the receiver's counters.
        marks: of these.
        link_bps: the sender's link, the most that its rate can be.
    """
    if packets <= 0:
        return pair
    alpha = pair.alpha + GAIN * (min(1.0, marks / packets) - pair.alpha)
    if marks > 0:
        target_bps = pair.rate_bps if pair.calm else pair.target_bps
        return Marked(pair.rate_bps * (1.0 - alpha / 2), target_bps, alpha)
    steps = 0 if pair.calm < RECOVERY else min(max(1, pair.calm - CALM), STEPS)
    target_bps = min(link_bps, pair.target_bps + steps * STEP * link_bps)
    rate_bps = (pair.rate_bps + target_bps) / 2
    return replace(pair, rate_bps=rate_bps, target_bps=target_bps, alpha=alpha, calm=pair.calm + 1)
