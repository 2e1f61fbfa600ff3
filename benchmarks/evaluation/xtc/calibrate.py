"""Measures the calibration of this machine: uncapped throughput, caps from 2 to 95, Eq. 1."""

import statistics
from collections.abc import Sequence
from typing import Final

from benchmarks.evaluation.calibration import (
    PAPER_KPPS,
    Calibration,
    Step,
    fit,
    rising,
    scale_of,
)
from benchmarks.evaluation.machine import this_machine
from benchmarks.evaluation.xtc.stage import stage

FLOOD_PPS: Final = 200e3
"""More than any router of the lab forwards."""
PERCENTS: Final = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0)
QUICK_PERCENTS: Final = (2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 90.0)
THRESHOLD: Final = 60.0
"""The paper's cap threshold."""
UNCAPPED_S: Final = 5
SECONDS_A_CAP: Final = 3


def measure(*, quick: bool = False) -> Calibration:
    """Measure it on a router of the lab."""
    percents = alternating(QUICK_PERCENTS if quick else PERCENTS)
    with stage(None, "xtcevalcal") as on:
        on.flood.set_rate(FLOOD_PPS)
        (uncapped,) = on.capped((0.0,), UNCAPPED_S)
        top = statistics.median(uncapped)
        on.flood.set_rate(PAPER_KPPS * 1e3 * scale_of(top))
        found = dict(zip(percents, on.capped(percents, SECONDS_A_CAP), strict=True))
    steps = [Step(percent, pps / 1e3) for percent, rates in found.items() for pps in rates]
    points = [(percent, statistics.fmean(rates)) for percent, rates in found.items()]
    return Calibration(top, rising(points), fit(steps, THRESHOLD), this_machine().cpu)


def alternating(percents: Sequence[float]) -> tuple[float, ...]:
    """Return caps in an order of large steps, which show the lag of Eq. 1."""
    half = len(percents) // 2
    low, high = percents[:half], percents[half:]
    pairs = [cap for pair in zip(low, high, strict=False) for cap in pair]
    return (*pairs, *high[half:])


def planned_s(*, quick: bool) -> float:
    """Return how long it takes, in seconds."""
    caps = QUICK_PERCENTS if quick else PERCENTS
    return UNCAPPED_S + len(caps) * (1 + SECONDS_A_CAP) + 10.0
