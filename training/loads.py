"""What more or less offered load does to a host's curve: its throughput at a few caps, compared.

Where one of the two loads is hardly more than what the curve forwards at a cap, it may be the load
that holds the router back there, and the comparison says nothing of the host.
"""

import math
import statistics
from collections.abc import Sequence

import msgspec

from training.data import Recording, Sample
from training.known import NARROW
from training.points import CapPoint, points_of, standard_error

FED = 1.05
"""A load this many times what a cap lets through leaves it to the cap."""


class LoadPoint(msgspec.Struct, frozen=True):
    """One cap under another load; throughputs in packets/s."""

    cap: float
    throughput_pps: float
    curve_pps: float
    """What the curve forwards there, at the load of the whole curve."""
    ratio: float
    """The first over the second."""
    error: float
    """Standard error of the ratio. It knows of noise, not of a host whose speed drifted."""
    starved: bool
    """Whether one of the two loads is hardly more than the curve forwards, or less."""


class LoadEffect(msgspec.Struct, frozen=True):
    """What one offered rate does to the curve."""

    offered_pps: float
    points: tuple[LoadPoint, ...]
    """By rising cap."""
    ratio: float | None
    """The mean ratio of throughput to the curve's where enough was offered; None: nowhere."""
    error: float | None
    """The standard error of that mean."""


def in_words(effect: LoadEffect) -> str:
    """Return what a rate did to the curve, for people."""
    if effect.ratio is None or effect.error is None:
        return "no cap compared: the load itself held the router back"
    caps = sum(not point.starved for point in effect.points)
    where = "1 cap" if caps == 1 else f"{caps} caps"
    return f"{effect.ratio:.3f} ± {effect.error:.3f} of the curve, at {where}"


def load_effects(recording: Recording) -> tuple[LoadEffect, ...]:
    """Return what each further rate does to the curve, by rising rate; empty where none was sent.

    Caps that the curve does not know, or forwards nothing at, are left out.
    """
    curve = points_of(s for s in recording.samples if s.phase == "steady")
    rates: dict[float, list[Sample]] = {}
    for sample in recording.samples:
        if sample.phase == "load" and sample.offered_pps is not None:
            rates.setdefault(sample.offered_pps, []).append(sample)
    own = recording.metadata.offered_pps
    return tuple(_effect(rate, own, points_of(rates[rate]), curve) for rate in sorted(rates))


def _effect(
    rate: float, own: float | None, loaded: Sequence[CapPoint], curve: Sequence[CapPoint]
) -> LoadEffect:
    least, points = rate if own is None else min(rate, own), []
    for here in loaded:
        nearest = min(curve, key=lambda point: abs(point.cap - here.cap), default=None)
        if nearest is None or abs(nearest.cap - here.cap) > NARROW * here.cap:
            continue
        if nearest.smoothed_pps > 0:
            points.append(_compared(least, here, nearest))
    fed = [point for point in points if not point.starved]
    return LoadEffect(
        offered_pps=rate,
        points=tuple(points),
        ratio=statistics.fmean(p.ratio for p in fed) if fed else None,
        error=math.hypot(*(p.error for p in fed)) / len(fed) if fed else None,
    )


def _compared(least: float, here: CapPoint, curve: CapPoint) -> LoadPoint:
    known = curve.smoothed_pps
    ratio = here.throughput_pps.value / known
    return LoadPoint(
        cap=here.cap,
        throughput_pps=here.throughput_pps.value,
        curve_pps=known,
        ratio=ratio,
        error=math.hypot(standard_error(here), ratio * standard_error(curve)) / known,
        starved=least < FED * known,
    )
