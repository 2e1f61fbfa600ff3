"""Check whether a fit is good enough to control routers, and what to measure if not; pure."""

import math
import statistics
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from common.units import format_cap
from training.fit.fit import Fit
from training.fit.interval import quantile
from training.fit.points import MANY, CapPoint

PRECISE = 0.05
"""Half of a 95 % interval, as a share, beyond which a cap's throughput is not precise enough. If
the host's speed changed, the interval is that of one of the larger likely changes
(`training.fit.levels.SELECTED`): with the most likely one, sweeps that underestimate it would
pass."""
BENT = 0.05
"""Allowed error of a straight line between two neighbours, as a share."""
WIDE = 0.55
"""Rise between two neighbours, as a share of the top, that may hide a knee: no usable simulated
sweep of five minutes has more than 0.5."""
MISSED = 0.05
"""A median error at held-out caps above this, and beyond noise, makes a curve doubtful."""
LEAST_SHARE = 0.05
"""Throughputs below this share of the top are raised to it to compute relative errors."""
SURE = 1.0
"""Standard errors subtracted as chance."""


class Verdict(msgspec.Struct, frozen=True):
    """Quality of a fit."""

    reasons: tuple[str, ...]
    """What is wrong, and what to measure; empty if the model can be used."""

    @property
    def usable(self) -> bool:
        """Whether the model can be used."""
        return not self.reasons

    @property
    def words(self) -> str:
        """One line for people."""
        return "usable" if self.usable else f"sweep again: {'; '.join(self.reasons)}"


def verdict_on(fit: Fit) -> Verdict:
    """Check a fit."""
    return Verdict(tuple(reason for reason in _reasons(fit) if reason))


def half_width(fit: Fit) -> float:
    """Return half of the 95 % interval of the median cap, as a share of its throughput."""
    return _median(fit, lambda point: (point.throughput_pps.high - point.throughput_pps.low) / 2)


def _reasons(fit: Fit) -> Iterator[str]:
    if (half := half_width(fit)) > PRECISE:
        longer = (half / PRECISE) ** 2
        yield (
            f"the curve is known to ±{half:.0%} only, since {_cause(fit)}: give a --budget "
            f"{longer:.1f} times as long, or keep other work off the host's CPUs"
        )
    if bend := _bend(fit) or _gap_too_wide(fit):
        yield bend
    likely = _median(fit, lambda point: quantile(MANY) * point.error_pps)
    missed = fit.held_out_error
    if missed is not None and missed > max(MISSED, likely):
        yield _missed(fit, missed)


def _missed(fit: Fit, missed: float) -> str:
    """Report which held-out caps the curve misses, and what to measure."""
    worst = format_cap(max(fit.held_out, key=lambda one: one.error).cap)
    words = f"caps that were held out are missed by {missed:.0%} (median; most at {worst})"
    if fit.variation is not None and fit.variation.sure:
        return (
            f"{words}: the host changed; keep other work off its CPUs, or give a --budget twice "
            "as long, which visits each cap more often"
        )
    return (
        f"{words}: the host changed, or its curve bends there; give a --budget twice as long, "
        "which measures more caps"
    )


def _cause(fit: Fit) -> str:
    if fit.variation is not None and fit.variation.sure and fit.variation.speed > fit.noise / 2:
        return f"the host's speed changed by {fit.variation.speed:.0%} from visit to visit"
    return f"samples scatter by {fit.noise:.0%}"


def _median(fit: Fit, width: Callable[[CapPoint], float]) -> float:
    """Return a width in packets/s as a share of the throughput, at the median cap that forwards."""
    points = [point for point in fit.points if point.throughput_pps.value > 0]
    return statistics.median(width(point) / point.throughput_pps.value for point in points)


def _bend(fit: Fit) -> str:
    """Report neighbours so far apart that the curve may bend between them."""
    points = [(0.0, 0.0, 0.0), *((p.cap, p.smoothed_pps, p.error_pps) for p in fit.points)]
    worst, where = 0.0, ""
    for before, low, high, after in zip(
        points, points[1:], points[2:], [*points[3:], None], strict=False
    ):
        gap = _gap(before, low, high, after) / max(high[1], LEAST_SHARE * fit.top_pps)
        if gap > worst:
            worst, where = gap, f"{format_cap(low[0])} and {format_cap(high[0])}"
    if worst <= BENT:
        return ""
    return f"between caps of {where} the curve may bend by {worst:.0%}: give a longer --budget"


def _gap_too_wide(fit: Fit) -> str:
    """Report gaps in the rise that are too large to show where it bends."""
    for low, high in pairwise(fit.points):
        rise = (high.smoothed_pps - low.smoothed_pps) / fit.top_pps
        if rise > WIDE:
            where = f"{format_cap(low.cap)} and {format_cap(high.cap)}"
            return (
                f"between caps of {where} throughput rises by {rise:.0%} of the top, and nothing "
                "was measured: give a longer --budget"
            )
    return ""


_Point = tuple[float, float, float]


def _gap(before: _Point, low: _Point, high: _Point, after: _Point | None) -> float:
    """Return how far above the chord a concave curve may be, chance subtracted, in packets/s.

    It is below both the line before the chord and the line after it.
    """
    if low[0] <= 0:
        return 0.0
    rising = (low[1] - before[1]) / (low[0] - before[0])
    chord = (high[1] - low[1]) / (high[0] - low[0])
    width = 1.0 if after is None else after[0] - high[0]
    flat = 0.0 if after is None else (after[1] - high[1]) / width
    if not rising > chord > flat:
        return 0.0
    reach = (high[0] - low[0]) * (chord - flat) / (rising - flat)
    back, on = reach / (low[0] - before[0]), (high[0] - low[0] - reach) / width
    beyond = 0.0 if after is None else on * after[2]
    doubt = math.hypot((1 + back) * low[2], back * before[2], (1 + on) * high[2], beyond)
    return max(reach * (rising - chord) - SURE * doubt, 0.0)
