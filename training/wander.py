"""Tells whether the host's speed changed during a sweep: do visits of one cap agree? Pure.

A visit is one moment of the host. Samples of a visit scatter about its mean; where the means of
several visits of one cap lie further apart than that scatter makes them, the host was faster at
one time than at another: one-way analysis of variance with random effects, all caps together.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from scipy import stats

from training.data import Sample

CHANCE = 0.05
"""Visits that noise alone puts so far apart with a larger probability do agree."""


class Wander(msgspec.Struct, frozen=True):
    """How far apart the visits of one cap lie; shares are of the cap's mean throughput."""

    speed: float
    """Standard deviation of the host's speed from one visit to another, noise taken off."""
    span: float
    """The largest distance between two visits of one cap, noise and all."""
    caps: int
    """Caps that were visited more than once."""
    visits: int
    """Visits of those caps."""
    chance: float
    """The probability that noise alone puts visits so far apart (F test)."""

    @property
    def sure(self) -> bool:
        """Whether the speed changed by more than chance explains."""
        return self.chance <= CHANCE


def wander_of(samples: Iterable[Sample], below: float) -> Wander | None:
    """Return how the host's speed wandered; None where no cap was visited twice.

    Args:
        samples: steady and held-out ones; uncapped ones are left out.
        below: the cap threshold in CPUs; from there on the offered load hides the host's speed.
    """
    groups: dict[float, dict[int, list[float]]] = {}
    for sample in samples:
        if sample.cap is not None and sample.cap < below:
            group = groups.setdefault(sample.cap, {})
            group.setdefault(sample.visit, []).append(sample.throughput_pps)
    again = [list(group.values()) for group in groups.values() if len(group) > 1]
    shares = [_as_shares(visits) for visits in again if _mean(visits) > 0]
    return _wander(shares) if shares else None


def _mean(visits: Sequence[Sequence[float]]) -> float:
    return float(np.mean([value for visit in visits for value in visit]))


def _as_shares(visits: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return a cap's samples as shares of their mean, so that caps can be taken together."""
    mean = _mean(visits)
    return [[value / mean for value in visit] for visit in visits]


def _wander(caps: Sequence[Sequence[Sequence[float]]]) -> Wander:
    within = sum(float(np.var(visit)) * len(visit) for visits in caps for visit in visits)
    between = sum(len(v) * (float(np.mean(v)) - 1) ** 2 for visits in caps for v in visits)
    count = sum(len(visits) for visits in caps)
    samples = sum(len(visit) for visits in caps for visit in visits)
    of_between, of_within = count - len(caps), samples - count
    noise = within / of_within if of_within > 0 else 0.0
    apart = between / of_between
    return Wander(
        speed=math.sqrt(max(0.0, apart - noise) * count / samples),
        span=max(_span(visits) for visits in caps),
        caps=len(caps),
        visits=count,
        chance=_chance(apart, of_between, noise, of_within),
    )


def _chance(apart: float, of_apart: int, noise: float, of_noise: int) -> float:
    if of_noise < 1 or apart <= 0:
        return 1.0
    return float(stats.f.sf(apart / noise, of_apart, of_noise)) if noise > 0 else 0.0


def _span(visits: Sequence[Sequence[float]]) -> float:
    means = [float(np.mean(visit)) for visit in visits]
    return max(means) - min(means)
