"""The closed loop on a model: any law, with noise, delay, whole-percent caps and stolen CPU."""

import math
import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

from common.setpoint import Setpoint
from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.control.dither import SLOTS, Dithered, dither
from xtc.control.headroom import Headroom, stepped
from xtc.control.law import Bounds, Law, Reason
from xtc.simulation.loads import Load, Steady
from xtc.simulation.plant import LAG_S, Plant, capacity, settled
from xtc.simulation.router import Given, Playing, Shield, steps_in

BAND = 0.05
"""A loop has settled when it stays within this share of the setpoint."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The conditions of a simulated run."""

    setpoint: PacketsPerSecond
    duration: int = 60
    """Samples."""
    start_cap: CapFraction = CapFraction(0.01)
    """The paper starts its loop at cap 1."""
    bounds: Bounds = Bounds(CapFraction(0.001), CapFraction(1.0))
    quantum: float = 0.0
    noise: float = 0.0
    """Standard deviation of the CPU's capacity between periods, as a share."""
    delay: int = 0
    """Samples until a cap affects the throughput."""
    stolen: float = 0.0
    """Share of the router's CPU that another process in it takes from `stolen_from` on."""
    stolen_from: int = 0
    seed: int = 0
    period: Seconds = LAG_S
    """Length of a sample."""
    burst: float | None = None
    """What the setpoint allows beyond its rate, in packets; None means the default."""
    load: Load | None = None
    """Offered load; None means the plant's offered load all the time."""
    shield: bool = False
    """Whether a shield drops what exceeds the setpoint before it reaches the router."""
    queue: float = 0.0
    """Maximum packets that wait for the router's CPU."""
    efficiency: tuple[tuple[float, float], ...] = ()
    """(second, factor): from then on, the router forwards this multiple of its model."""

    @property
    def varies(self) -> bool:
        """Whether the load varies with time."""
        return self.load is not None and not isinstance(self.load, Steady)

    @property
    def promised(self) -> Setpoint:
        """The setpoint with its burst."""
        return Setpoint(self.setpoint, burst=self.burst)


class SecondOfRun(msgspec.Struct, frozen=True):
    """One sample of a run."""

    t: int
    throughput_pps: float
    cap: float
    """The mean cap in force during this second."""
    next_cap: float
    reason: Reason
    offered_pps: float = 0.0
    over_promise_packets: float = 0.0
    """Delivered beyond setpoint and burst in this sample; the next two likewise."""
    under_promise_packets: float = 0.0
    breach_seconds: float = 0.0


class Summary(msgspec.Struct, frozen=True):
    """Results of a run; shares are of the setpoint, RMSE is about the mean (paper, 7.1)."""

    setpoint_pps: float
    mean_throughput_pps: float
    mean_error: float
    """|mean - setpoint| / setpoint over the steady samples."""
    relative_rmse: float
    settling_samples: int | None
    """Samples before the loop stays within 5 % (widened by three sigmas of noise); None means
    never."""
    recovery_samples: int | None
    """The same, counted from the disturbance; None if there was none or no recovery."""
    steady_from: int
    """The first of the steady samples: after settling, or the second half of the run; 0 for a
    varying load, which never settles."""
    over_promise_packets: float
    """Delivered beyond setpoint and burst in the whole run, including its start."""
    under_promise_packets: float
    """Wanted, but missing by more than the burst."""
    breach_seconds: float
    """The time in which either grew."""


def run(plant: Plant, law: Law[Any], scenario: Scenario) -> list[SecondOfRun]:
    """Run the loop and return its samples; the same seed gives the same samples."""
    noise = random.Random(scenario.seed)  # noqa: S311  noise, not secrets
    router = _Router(plant, scenario)
    memory = law.start(scenario.start_cap), Headroom()
    period, owed = dither(scenario.start_cap, scenario.quantum)
    pending = deque([period] * (scenario.delay + 1))
    samples = []
    for t in range(scenario.duration):
        before = router.playing.account
        caps = pending.popleft()
        router.pass_period(t, caps, 1 + scenario.noise * noise.gauss(0, 1))
        offered = router.playing.totals.offered / scenario.period
        in_force = period.mean
        sample = router.playing.end_period(scenario.period, in_force, effective=caps.mean)
        memory, decision = stepped(law, memory, scenario.setpoint, sample, scenario.bounds)
        period, owed = dither(decision.cap, scenario.quantum, owed)
        pending.append(period)
        after = router.playing.account
        samples.append(
            SecondOfRun(
                t,
                sample.throughput,
                in_force,
                period.mean,
                decision.reason,
                offered,
                after.over - before.over,
                after.under - before.under,
                after.breach_s - before.breach_s,
            )
        )
    return samples


class _Router:
    """The plant of a run, with Eq. 1's lag between the periods."""

    def __init__(self, plant: Plant, scenario: Scenario) -> None:
        self._plant, self._scenario = plant, scenario
        self._load = scenario.load or Steady(plant.offered)
        self._steps = steps_in(scenario.period, self._load, shield=scenario.shield)
        self._lag = plant.lag**scenario.period
        self._capacity: float = settled(plant, scenario.start_cap).throughput
        """The CPU's capacity in the last period, in packets/s, up to the load's peak."""
        shield = Shield(scenario.promised) if scenario.shield else None
        self.playing = Playing(scenario.promised, shield, scenario.queue)

    def pass_period(self, t: int, caps: Dithered, noise: float) -> None:
        """Simulate a period under its caps."""
        self.playing.noise = max(0.0, noise)
        begin, dt = t * self._scenario.period, self._scenario.period / self._steps
        stolen = self._scenario.stolen if t >= self._scenario.stolen_from else 0.0
        slots = caps.caps
        capacities = {cap: capacity(self._plant, cap, stolen) for cap in {caps.high, caps.low}}
        sent, total = self._load.sent(begin), 0.0
        for step in range(self._steps):
            at, cap = begin + step * dt, slots[step * SLOTS // self._steps]
            before, sent = sent, self._load.sent(at + dt)
            offered = max(0.0, sent - before)
            there = self._efficiency(at) * capacities[cap]
            rate = self._lag * self._capacity
            rate += (1 - self._lag) * min(there, self._plant.offered)
            total += rate
            reached = self.playing.arrive(offered, dt)
            self.playing.forward(offered, reached, Given(cap, there * dt, rate * dt), dt)
        self._capacity = total / self._steps

    def _efficiency(self, at: float) -> float:
        """Return the factor on the model's throughput at an instant."""
        factors = [factor for second, factor in self._scenario.efficiency if second <= at]
        return factors[-1] if factors else 1.0


def summarise(samples: list[SecondOfRun], scenario: Scenario) -> Summary:
    """Return the figures that the paper and related work report for such a run."""
    values = [s.throughput_pps for s in samples]
    disturbed = scenario.stolen > 0 and 0 < scenario.stolen_from < len(values)
    first = values[: scenario.stolen_from] if disturbed else values
    settling = None if scenario.varies else _settling(first, scenario)
    steady_from = settling if settling is not None else len(values) // 2
    steady_from = 0 if scenario.varies else steady_from
    mean, rmse = _mean_and_rmse(values[steady_from:])
    return Summary(
        setpoint_pps=scenario.setpoint,
        mean_throughput_pps=mean,
        mean_error=abs(mean / scenario.setpoint - 1),
        relative_rmse=rmse / mean if mean else math.inf,
        settling_samples=settling,
        recovery_samples=_settling(values[scenario.stolen_from :], scenario) if disturbed else None,
        steady_from=steady_from,
        over_promise_packets=math.fsum(s.over_promise_packets for s in samples),
        under_promise_packets=math.fsum(s.under_promise_packets for s in samples),
        breach_seconds=math.fsum(s.breach_seconds for s in samples),
    )


def _settling(values: list[float], scenario: Scenario) -> int | None:
    """Return the number of samples before all later ones are within the band."""
    band = (BAND + 3 * scenario.noise) * scenario.setpoint
    outside = [t for t, value in enumerate(values) if abs(value - scenario.setpoint) > band]
    settling = outside[-1] + 1 if outside else 0
    return settling if settling < len(values) else None


def _mean_and_rmse(values: list[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
