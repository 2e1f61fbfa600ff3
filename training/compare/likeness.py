"""Classify a ratio: the same host, a faster one, or one with another curve; pure."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from common.units import format_cap
from training.compare.ratio import CapRatio, Ratio
from training.fit.interval import Interval
from training.fit.verdict import PRECISE

Kind = Literal["same", "faster", "slower", "another curve", "another top", "unclear"]

SURELY = 0.01
"""Probability below which chance does not explain that the ratio differs between caps."""


class Likeness(msgspec.Struct, frozen=True):
    """Result of a comparison."""

    kind: Kind
    words: str
    """One line for people."""
    notes: tuple[str, ...]
    """Other differences, and what says nothing about the hosts."""

    @property
    def same(self) -> bool:
        """Whether the two are the same kind of host, at a resolution of 5 %."""
        return self.kind == "same"


def likeness_of(ratio: Ratio) -> Likeness:
    """Classify a comparison."""
    kind = _kind(ratio)
    return Likeness(kind, _words(kind, ratio), tuple(_notes(ratio)))


def _kind(ratio: Ratio) -> Kind:
    common = ratio.common
    if ratio.chance < SURELY:
        return "another curve"
    if ratio.top.tells and _apart(ratio.top.ratio, common) > PRECISE:
        return "another top"
    if not common.low <= 1.0 <= common.high:
        return "faster" if common.value > 1 else "slower"
    precise = common.low >= 1 - PRECISE and common.high <= 1 + PRECISE
    return "same" if precise else "unclear"


def _apart(one: Interval, other: Interval) -> float:
    """Return the gap between two intervals as a share; 0 or less if they meet."""
    return max(one.low / other.high, other.low / one.high) - 1


def _words(kind: Kind, ratio: Ratio) -> str:
    common = ratio.common
    known = f"{common.low:.2f} to {common.high:.2f}"
    match kind:
        case "same":
            return f"same host: B is {common.value:.3f} times as fast as A ({known})"
        case "faster" | "slower":
            digits = 2 if abs(common.value - 1) >= PRECISE else 3
            exact = f"{common.low:.{digits}f} to {common.high:.{digits}f}"
            return f"B is {common.value:.{digits}f} times as fast ({exact}) at every cap"
        case "another curve":
            first, last = _ends(ratio)
            return (
                f"another curve: the ratio goes from {first.ratio.value:.2f} at "
                f"{format_cap(first.cap)} to {last.ratio.value:.2f} at {format_cap(last.cap)}"
            )
        case "another top":
            return (
                f"another top: B is {common.value:.2f} times as fast ({known}) where the cap "
                f"binds, and its top is {ratio.top.ratio.value:.2f} times as high"
            )
        case "unclear":
            half = (common.high - common.low) / 2
            return (
                f"cannot tell: the ratio is known to ±{half:.0%} only ({known}); "
                "give both sweeps a longer --budget"
            )


def _ends(ratio: Ratio) -> tuple[CapRatio, CapRatio]:
    """Return the caps of the smallest and the largest ratio, in rising order."""
    least = min(ratio.points, key=lambda point: point.ratio.value)
    most = max(ratio.points, key=lambda point: point.ratio.value)
    return (least, most) if least.cap <= most.cap else (most, least)


def _notes(ratio: Ratio) -> Iterator[str]:
    a, b = ratio.a, ratio.b
    for name, limit in (("A", ratio.top.a_limited_by), ("B", ratio.top.b_limited_by)):
        if limit == "load":
            yield f"the load limits the top of {name}: the tops say nothing of the hosts"
        elif limit is None:
            yield f"the sweep of {name} ended below its top: the tops say nothing of the hosts"
    if ratio.lags_differ:
        yield f"the lag differs: {a.lag.value:.2f} and {b.lag.value:.2f} after {a.period_s:g} s"
    if ratio.delays_differ:
        yield f"the delay differs: {a.delay_s:g} s and {b.delay_s:g} s"
    if a.period_s != b.period_s:
        yield f"the period differs: {a.period_s:g} s and {b.period_s:g} s"
