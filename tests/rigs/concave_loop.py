"""Closed loops on every concave router, and all samples: what the laws' properties stand on."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from common.units import CapFraction, PacketsPerSecond, Seconds
from models import ThroughputCurve
from xtc.control.law import Bounds, Decision, Law, Sample
from xtc.simulation.closed_loop import BAND
from xtc.simulation.plant import Plant, advanced, settled

BOUNDS = Bounds(CapFraction(0.001), CapFraction(1.0))


@dataclass(frozen=True)
class Case:
    """A concave router, and a setpoint that it can reach within the caps."""

    curve: ThroughputCurve
    setpoint: PacketsPerSecond

    @property
    def target(self) -> float:
        """The cap that the setpoint takes."""
        return self.curve.cap_for(self.setpoint)


@st.composite
def cases(draw: st.DrawFn, share: tuple[float, float] = (0.0, 0.99)) -> Case:
    """Any concave curve up to a cap of 0.2 to 1.5, from hinges to nearly logarithms.

    `share` is where the setpoint may lie between what the smallest and the largest cap give.
    """
    widths = draw(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=8))
    scale = draw(st.floats(0.2, 1.5)) / sum(widths)
    falls = draw(st.lists(st.floats(0.0, 1.0), min_size=len(widths), max_size=len(widths)))
    slopes = [1.0, *accumulate(falls[1:], lambda slope, fall: slope * fall, initial=falls[0])]
    caps = list(accumulate(width * scale for width in widths))
    rates = accumulate(w * s for w, s in zip(widths, slopes, strict=False))
    speed = draw(st.floats(1e4, 1e7))
    curve = ThroughputCurve(tuple((c, r * speed) for c, r in zip(caps, rates, strict=True)))
    low, high = curve.throughput(BOUNDS.floor), curve.throughput(BOUNDS.ceiling)
    at = draw(st.floats(*share))
    return Case(curve, PacketsPerSecond(low * (high / low) ** at))


CAPS = st.floats(-3.0, 0.0).map(lambda exponent: CapFraction(10**exponent))
RATES = st.one_of(
    st.floats(0.0, 1e9), st.sampled_from([0.0, 5e-324, 1e-9, 1e9, 1e18, 1e300, 1.7e308])
)
SAMPLES = st.builds(
    Sample,
    throughput=RATES,
    cap=st.one_of(st.none(), st.floats(1e-6, 1024.0), st.sampled_from([0.0, 5e-324, 1e308])),
    offered=st.one_of(st.none(), RATES),
    used=st.one_of(st.none(), st.floats(0.0, 1024.0), st.sampled_from([5e-324, 1e308])),
    binding=st.sampled_from([None, True, False]),
)


@dataclass(frozen=True)
class Walk:
    """Any samples at all, one after the other, each with a setpoint."""

    start: CapFraction | None
    steps: list[tuple[PacketsPerSecond, Sample]]
    bounds: Bounds

    def along(self, law: Law[Any]) -> Iterator[tuple[Any, Decision]]:
        """Yield the law's state and decision after each step."""
        state = law.start(self.start)
        for setpoint, sample in self.steps:
            state, decision = law.step(state, setpoint, sample, self.bounds)
            yield state, decision


WALKS = st.builds(
    Walk,
    start=st.one_of(st.none(), st.floats(1e-6, 1024.0)),
    steps=st.lists(st.tuples(st.floats(1.0, 1e9), SAMPLES), min_size=1, max_size=25),
    bounds=st.builds(
        lambda floor, ceiling: Bounds(CapFraction(floor / 100), CapFraction(ceiling / 100)),
        st.integers(1, 100),
        st.integers(100, 400),
    ),
)


@dataclass
class Run:
    """What a closed loop did: throughputs without the meter's noise, caps, and states."""

    rates: list[float]
    caps: list[float]
    states: list[Any]

    def settling(self, setpoint: float, begin: int = 0, band: float = BAND) -> int:
        """Return the samples from `begin` until the throughput stays within the band."""
        rates = self.rates[begin:]
        outside = [t for t, y in enumerate(rates) if abs(y / setpoint - 1) > band]
        return outside[-1] + 1 if outside else 0

    def rmse(self, setpoint: float, begin: int) -> float:
        """Return the RMSE about the setpoint, as a share of it."""
        rates = self.rates[begin:]
        return math.sqrt(math.fsum((y / setpoint - 1) ** 2 for y in rates) / len(rates))


def loop(
    plants: Sequence[Plant],
    law: Law[Any],
    setpoint: float,
    start: float = 0.01,
    *,
    noise: float = 0.0,
    seed: int = 0,
    delay: int = 0,
) -> Run:
    """Close the loop for one sample a plant; noise is a share, delay counts samples."""
    meter = random.Random(seed)
    memory, state = law.start(CapFraction(start)), settled(plants[0], CapFraction(start))
    caps = [CapFraction(start)] * (delay + 1)
    run = Run([], [], [])
    for router in plants:
        state = advanced(router, state, [caps[-1 - delay]], Seconds(1.0))
        seen = max(state.throughput * (1 + noise * meter.gauss(0, 1)), 0.0)
        sample = Sample(PacketsPerSecond(seen), caps[-1], router.offered, state.used, state.binding)
        memory, decision = law.step(memory, PacketsPerSecond(setpoint), sample, BOUNDS)
        caps.append(decision.cap)
        run.rates.append(state.throughput)
        run.caps.append(decision.cap)
        run.states.append(memory)
    return run


def plant(case: Case, lag: float = 0.0, gain: float = 1.0) -> Plant:
    """Return a router that is offered more than it can forward: every cap binds."""
    return Plant(case.curve, PacketsPerSecond(5 * case.curve.top), lag, gain)


def way_down(case: Case, start: float) -> float:
    """Return how many steps of the band's width lie between a cap and the one that it takes.

    On a flat top the throughput exceeds the setpoint by little more than the band all the way, and
    an untrained law has no more than that to go by.
    """
    return max(0.0, math.log(start / case.target)) / math.log(1 + BAND)
