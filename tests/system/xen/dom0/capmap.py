"""The map of caps that dom0 has measured: throughput by cap, and the cap for a throughput."""

import statistics
from collections.abc import Sequence
from itertools import pairwise

Step = tuple[float, Sequence[float]]
"""A cap in percent of one CPU, and samples of the throughput under it."""


class CapMap:
    """Mean throughputs by cap, which never fall, since descents are noise."""

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self._points = [(0.0, 0.0)]
        for percent, rates in sorted(steps):
            most = max(self._points[-1][1], statistics.fmean(rates))
            self._points.append((percent, most))

    def percent_for(self, pps: float) -> float:
        """Return the cap for a throughput, interpolated; the largest one beyond the map."""
        for (low, before), (high, after) in pairwise(self._points):
            if before < after and pps <= after:
                return low + (high - low) * (pps - before) / (after - before)
        return self._points[-1][0]
