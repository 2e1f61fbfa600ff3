"""The closed loop on a model: any law, with noise, delay, whole-percent caps and a thief."""

import math
import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

from xtc.dither import dither
from xtc.law import Bounds, Law, Reason, Sample
from xtc.plant import Plant, PlantState, advanced, settled
from xtc.units import CapFraction, PacketsPerSecond, Seconds

BAND = 0.05
"""A loop has settled when it stays within this share of the setpoint."""
PERIOD = Seconds(1.0)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a simulated run is put through."""

    setpoint: PacketsPerSecond
    duration: int = 60
    """Samples of one second."""
    start_cap: CapFraction = CapFraction(0.01)
    """The paper starts its loop at cap 1."""
    bounds: Bounds = Bounds(CapFraction(0.001), CapFraction(1.0))
    quantum: float = 0.0
    noise: float = 0.0
    """Standard deviation of a sample as a share of the throughput."""
    delay: int = 0
    """Samples until a cap shows in the throughput."""
    stolen: float = 0.0
    """Share of the router's CPU that a process in it takes from `stolen_from` on."""
    stolen_from: int = 0
    seed: int = 0


class SecondOfRun(msgspec.Struct, frozen=True):
    """One sample of a run."""

    t: int
    throughput_pps: float
    cap: float
    """The mean cap in force during this second."""
    next_cap: float
    reason: Reason


class Summary(msgspec.Struct, frozen=True):
    """What came of a run; shares are of the setpoint, RMSE is about the mean (paper, 7.1)."""

    setpoint_pps: float
    mean_throughput_pps: float
    mean_error: float
    """|mean - setpoint| / setpoint over the steady samples."""
    relative_rmse: float
    settling_samples: int | None
    """Samples before the loop stays within 5 % (widened by three sigmas of noise); None: never."""
    recovery_samples: int | None
    """The same, counted from the disturbance; None where there was none or no recovery."""
    steady_from: int
    """The first of the steady samples: after settling, or the second half of the run."""


def run(plant: Plant, law: Law[Any], scenario: Scenario) -> list[SecondOfRun]:
    """Run the loop and return its samples; the same seed gives the same samples."""
    noise = random.Random(scenario.seed)  # noqa: S311  noise, not secrets
    state = settled(plant, scenario.start_cap)
    memory = law.start(scenario.start_cap)
    period, owed = dither(scenario.start_cap, scenario.quantum)
    pending = deque([period] * (scenario.delay + 1))
    samples = []
    for t in range(scenario.duration):
        stolen = scenario.stolen if t >= scenario.stolen_from else 0.0
        state = advanced(plant, state, pending.popleft().caps, PERIOD, stolen=stolen)
        sample = _measured(plant, state, period.mean, scenario.noise * noise.gauss(0, 1))
        in_force = period.mean
        memory, decision = law.step(memory, scenario.setpoint, sample, scenario.bounds)
        period, owed = dither(decision.cap, scenario.quantum, owed)
        pending.append(period)
        samples.append(SecondOfRun(t, sample.throughput, in_force, period.mean, decision.reason))
    return samples


def _measured(plant: Plant, state: PlantState, cap: CapFraction, error: float) -> Sample:
    throughput = min(max(state.throughput * (1 + error), 0.0), plant.offered)
    return Sample(
        throughput=PacketsPerSecond(throughput),
        cap=cap,
        offered=plant.offered,
        used=state.used,
        binding=state.binding,
    )


def summarise(samples: list[SecondOfRun], scenario: Scenario) -> Summary:
    """Return the figures that the paper and its rivals report of such a run."""
    values = [s.throughput_pps for s in samples]
    disturbed = scenario.stolen > 0 and 0 < scenario.stolen_from < len(values)
    first = values[: scenario.stolen_from] if disturbed else values
    settling = _settling(first, scenario)
    steady_from = settling if settling is not None else len(values) // 2
    mean, rmse = _mean_and_rmse(values[steady_from:])
    return Summary(
        setpoint_pps=scenario.setpoint,
        mean_throughput_pps=mean,
        mean_error=abs(mean / scenario.setpoint - 1),
        relative_rmse=rmse / mean if mean else math.inf,
        settling_samples=settling,
        recovery_samples=_settling(values[scenario.stolen_from :], scenario) if disturbed else None,
        steady_from=steady_from,
    )


def _settling(values: list[float], scenario: Scenario) -> int | None:
    """Return how many samples pass before all that follow are within the band."""
    band = (BAND + 3 * scenario.noise) * scenario.setpoint
    outside = [t for t, value in enumerate(values) if abs(value - scenario.setpoint) > band]
    settling = outside[-1] + 1 if outside else 0
    return settling if settling < len(values) else None


def _mean_and_rmse(values: list[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
