"""Effect of other traffic on a host's curve: its throughput at a few caps, compared.

Other traffic is more or less offered load, or packets of another size.

If one of the two loads is hardly more than the curve's throughput at a cap, the load may limit the
router there, and the comparison says nothing about the host.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from common.units import format_rate
from training.fit.dynamics import dynamics_of
from training.fit.levels import Visit, levels_of
from training.fit.means import Means, VisitMean, means_of
from training.recording.recording import Recording
from training.recording.sweep_model import NARROW, Traffic

FED = 1.05
"""At a load this many times a cap's throughput, the cap is the limit."""


class LoadPoint(msgspec.Struct, frozen=True):
    """One cap under another load; throughputs in packets/s."""

    cap: float
    throughput_pps: float
    curve_pps: float
    """Throughput of the curve there, at the load of the whole curve."""
    ratio: float
    """The first over the second."""
    error: float
    """Standard error of the ratio, of noise and of the host's change between visits."""
    starved: bool
    """Whether one of the two loads is hardly more than the throughput, or less."""


class LoadEffect(msgspec.Struct, frozen=True):
    """Effect of one offered rate, or packet size, on the curve."""

    offered_pps: float
    points: tuple[LoadPoint, ...]
    """By rising cap."""
    ratio: float | None
    """The (geometric) mean ratio of throughput to the curve's at sufficient load, or None."""
    error: float | None
    """The standard error of that mean."""
    packet_bytes: int | None = None
    """Of a packet's frame, if its size is recorded."""

    @property
    def traffic(self) -> Traffic:
        """The traffic that was sent."""
        return Traffic(self.offered_pps, self.packet_bytes)


def named(traffic: Traffic) -> str:
    """Describe the traffic."""
    size = "" if traffic.packet_bytes is None else f" of {traffic.packet_bytes} bytes"
    return f"{format_rate(traffic.offered)}{size}"


def in_words(effect: LoadEffect) -> str:
    """Describe the effect of a rate on the curve."""
    if effect.ratio is None or effect.error is None:
        return "no cap compared: the load itself held the router back"
    caps = sum(not point.starved for point in effect.points)
    where = "1 cap" if caps == 1 else f"{caps} caps"
    return f"{effect.ratio:.3f} ± {effect.error:.3f} of the curve, at {where}"


def load_effects(recording: Recording) -> tuple[LoadEffect, ...]:
    """Return the effect of each further load on the curve, by rising rate; empty without any.

    Caps that are not on the curve, or at which it forwards nothing, are left out.
    """
    if all(sample.phase != "load" for sample in recording.samples):
        return ()
    compared = compared_in(recording)
    return tuple(compared.effect(traffic) for traffic in compared.loads)


def compared_in(recording: Recording) -> "Compared":
    """Return the caps of a recording that were measured under several loads."""
    period, samples = recording.metadata.period_s, recording.samples
    own = [sample for sample in samples if sample.phase != "load"]
    means = means_of(samples, period, dynamics_of(own, period))
    return Compared(means, recording.metadata.offered_pps, recording.metadata.packet_bytes)


class Compared:
    """Caps of the curve and the same caps under other loads, in one mixed model."""

    def __init__(self, means: Means, own: float | None, own_bytes: int | None = None) -> None:
        """Take the visits, and the rate and packet size of the whole curve."""
        self._own, self._own_bytes = own, own_bytes
        self.visits = means.visits
        loads = {load for one in means.visits if (load := _load(one)) is not None}
        self.loads = sorted(loads, key=lambda load: (load.offered, load.packet_bytes or 0))
        """The traffic other than the curve's, by rising rate."""
        chosen = [number for number, one in enumerate(means.visits) if _compares(one)]
        visits = [means.visits[number] for number in chosen]
        self._keys = list(dict.fromkeys(map(_key, visits)))
        self.levels = (
            levels_of(
                [Visit(one.at, self._keys.index(_key(one)), math.log(one.mean)) for one in visits],
                means.errors[np.ix_(chosen, chosen)],
                means.middle,
            )
            if visits
            else None
        )

    def effect(self, load: Traffic) -> LoadEffect:
        """Return the effect of one load."""
        pairs = list(self.pairs(load))
        points = [self.point(load, here, there) for here, there in pairs]
        fed = [pair for pair, point in zip(pairs, points, strict=True) if not point.starved]
        ratio, error = self._ratio(fed) if fed else (None, None)
        return LoadEffect(load.offered, tuple(points), ratio, error, load.packet_bytes)

    def pairs(self, load: Traffic) -> Iterator[tuple[int, int]]:
        """Yield pairs of level indices: a cap under the load, and the curve's, by rising cap."""
        curve = [(cap, n) for n, (cap, other) in enumerate(self._keys) if other is None]
        here = sorted((cap, n) for n, (cap, other) in enumerate(self._keys) if other == load)
        for cap, number in here:
            nearest, there = min(curve, key=lambda one: abs(one[0] - cap), default=(math.inf, 0))
            if abs(nearest - cap) <= NARROW * cap:
                yield number, there

    def point(self, load: Traffic, here: int, there: int) -> LoadPoint:
        """Return how the throughput at a cap under a load compares with the curve's."""
        assert self.levels is not None  # it has numbers
        throughput, curve = (math.exp(self.levels.logs[number]) for number in (here, there))
        ratio, error = self._ratio([(here, there)])
        # The host may forward packets of another size faster or slower: their own rate is the
        # bound.
        sized = load.packet_bytes != self._own_bytes
        most = throughput if sized else curve
        starved = load.offered < FED * most or (self._own or math.inf) < FED * curve
        return LoadPoint(self._keys[here][0], throughput, curve, ratio, error, starved)

    def cap_at(self, number: int) -> float:
        """Return the cap of a level, in CPUs."""
        return self._keys[number][0]

    def visits_at(self, number: int) -> list[VisitMean]:
        """Return the visits of a level."""
        return [one for one in self.visits if _compares(one) and _key(one) == self._keys[number]]

    def _ratio(self, pairs: Sequence[tuple[int, int]]) -> tuple[float, float]:
        """Return the mean ratio of pairs of levels, and its standard error."""
        assert self.levels is not None  # it has numbers
        contrast = np.zeros(len(self._keys))
        for here, there in pairs:
            contrast[here] += 1 / len(pairs)
            contrast[there] -= 1 / len(pairs)
        ratio = math.exp(float(contrast @ self.levels.logs))
        variance = float(contrast @ self.levels.covariance @ contrast)
        return ratio, ratio * math.sqrt(max(variance, 0.0))


def _compares(one: VisitMean) -> bool:
    return one.phase in {"steady", "load"} and one.cap is not None and one.mean > 0


def _key(one: VisitMean) -> tuple[float, Traffic | None]:
    assert one.cap is not None  # only capped samples were taken
    return one.cap, _load(one)


def _load(one: VisitMean) -> Traffic | None:
    """Return the traffic sent in a visit; None for the curve's."""
    if one.phase != "load" or one.offered is None:
        return None
    return Traffic(one.offered, one.packet_bytes)
