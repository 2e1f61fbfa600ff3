"""What more or less offered load does to a host's curve: its throughput at a few caps, compared.

Where one of the two loads is hardly more than what the curve forwards at a cap, it may be the load
that holds the router back there, and the comparison says nothing of the host.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from training.data import Recording
from training.dynamics import dynamics_of
from training.known import NARROW
from training.levels import Visit, levels_of
from training.means import Means, VisitMean, means_of

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
    """Standard error of the ratio, of noise and of the host's change between visits."""
    starved: bool
    """Whether one of the two loads is hardly more than the curve forwards, or less."""


class LoadEffect(msgspec.Struct, frozen=True):
    """What one offered rate does to the curve."""

    offered_pps: float
    points: tuple[LoadPoint, ...]
    """By rising cap."""
    ratio: float | None
    """The (geometric) mean ratio of throughput to the curve's where enough was offered, or None."""
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
    period, samples = recording.metadata.period_s, recording.samples
    own = [sample for sample in samples if sample.phase != "load"]
    means = means_of(samples, period, dynamics_of(own, period))
    rates = {one.offered for one in means.visits if one.phase == "load" and one.offered is not None}
    compared = _Compared(means, recording.metadata.offered_pps)
    return tuple(compared.effect(rate) for rate in sorted(rates))


class _Compared:
    """Caps of the curve and the same caps under other loads, in one mixed model."""

    def __init__(self, means: Means, own: float | None) -> None:
        self._own = own
        chosen = [number for number, one in enumerate(means.visits) if _compares(one)]
        visits = [means.visits[number] for number in chosen]
        self._keys = list(dict.fromkeys(map(_key, visits)))
        self._levels = (
            levels_of(
                [Visit(one.at, self._keys.index(_key(one)), math.log(one.mean)) for one in visits],
                means.errors[np.ix_(chosen, chosen)],
                means.middle,
            )
            if visits
            else None
        )

    def effect(self, rate: float) -> LoadEffect:
        """Return what one rate does."""
        pairs = list(self._pairs(rate))
        points = [self._point(rate, here, there) for here, there in pairs]
        fed = [pair for pair, point in zip(pairs, points, strict=True) if not point.starved]
        ratio, error = self._ratio(fed) if fed else (None, None)
        return LoadEffect(rate, tuple(points), ratio, error)

    def _pairs(self, rate: float) -> Iterator[tuple[int, int]]:
        """Yield the numbers of levels: a cap under the rate, and the curve's, by rising cap."""
        curve = [(cap, n) for n, (cap, load) in enumerate(self._keys) if load is None]
        here = sorted((cap, n) for n, (cap, load) in enumerate(self._keys) if load == rate)
        for cap, number in here:
            nearest, there = min(curve, key=lambda one: abs(one[0] - cap), default=(math.inf, 0))
            if abs(nearest - cap) <= NARROW * cap:
                yield number, there

    def _point(self, rate: float, here: int, there: int) -> LoadPoint:
        assert self._levels is not None  # it has numbers
        throughput, curve = (math.exp(self._levels.logs[number]) for number in (here, there))
        ratio, error = self._ratio([(here, there)])
        least = rate if self._own is None else min(rate, self._own)
        starved = least < FED * curve
        return LoadPoint(self._keys[here][0], throughput, curve, ratio, error, starved)

    def _ratio(self, pairs: Sequence[tuple[int, int]]) -> tuple[float, float]:
        """Return the mean ratio of pairs of levels, and its standard error."""
        assert self._levels is not None  # it has numbers
        contrast = np.zeros(len(self._keys))
        for here, there in pairs:
            contrast[here] += 1 / len(pairs)
            contrast[there] -= 1 / len(pairs)
        ratio = math.exp(float(contrast @ self._levels.logs))
        variance = float(contrast @ self._levels.covariance @ contrast)
        return ratio, ratio * math.sqrt(max(variance, 0.0))


def _compares(one: VisitMean) -> bool:
    return one.phase in {"steady", "load"} and one.cap is not None and one.mean > 0


def _key(one: VisitMean) -> tuple[float, float | None]:
    assert one.cap is not None  # only capped samples were taken
    return one.cap, one.offered if one.phase == "load" else None
