"""Expected behaviour of a loop on a host: simulated, with the measured noise."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import msgspec

from common.units import CapFraction, PacketsPerSecond
from models import HostModel
from xtc.control.law import Bounds, Law
from xtc.control.laws import law_named
from xtc.simulation.closed_loop import Scenario, run, summarise
from xtc.simulation.plant import Plant

DURATION = 120
"""Samples of a simulated run; the paper's last 120 s."""
RUNS = 11
"""Simulated runs behind a range. Their speeds are the middles of as many equally likely parts of
the distribution: the slowest and the fastest are at 4.5 % and 95.5 % of it."""


class Expectation(msgspec.Struct, frozen=True):
    """Result of one simulated run; shares are of the setpoint."""

    setpoint_pps: float
    mean_pps: float
    """Of the settled samples; of the second half if it never settled."""
    mean_error: float
    """(mean - setpoint) / setpoint."""
    relative_rmse: float
    settling_samples: int | None
    """Samples before the loop stays within 5 % (and three times the noise); None: never."""


class Spread(msgspec.Struct, frozen=True):
    """Median and range from 5 to 95 % of several runs; None means never."""

    median: float | None
    low: float | None
    high: float | None


class Outlook(msgspec.Struct, frozen=True):
    """Summary of several simulated runs of one law at one setpoint; shares as `Expectation`'s."""

    law: str
    setpoint_pps: float
    cap: float
    """The cap that the curve has for the setpoint, in CPUs."""
    runs: int
    settling_samples: Spread
    mean_error: Spread
    relative_rmse: Spread


def outlooks(
    host: HostModel,
    law: str,
    setpoints: Sequence[float],
    *,
    noise: float,
    speed: float,
    runs: int = RUNS,
) -> list[Outlook]:
    """Simulate a law several times at each setpoint, each time at another host speed.

    The noise is drawn with the number of the run as its seed, so the same arguments give the same
    figures, and all laws meet the same noise and speeds.

    Args:
        host: as `expected` takes it.
        law: the name of its law.
        setpoints: in packets/s.
        noise: standard deviation of a sample as a share of the throughput.
        speed: standard deviation of the host's speed from run to run, as a share.
        runs: how many; odd, so that one is the median.

    Raises:
        common.errors.ConfigError: there is no such law, or the host lacks its gains.
    """
    rule = law_named(law, host)
    each = [
        expected(host, rule, setpoints, noise=noise, gain=gain, seed=seed)
        for seed, gain in enumerate(speeds(speed, runs))
    ]
    return [_outlook(host, law, at) for at in zip(*each, strict=True)]


def speeds(spread: float, runs: int) -> list[float]:
    """Return the host's speed in each run, as a share of the curve's; log-normal, by size."""
    normal = NormalDist()
    return [math.exp(spread * normal.inv_cdf((run + 0.5) / runs)) for run in range(runs)]


def _outlook(host: HostModel, law: str, at: Sequence[Expectation]) -> Outlook:
    settled = [math.inf if one.settling_samples is None else one.settling_samples for one in at]
    return Outlook(
        law=law,
        setpoint_pps=at[0].setpoint_pps,
        cap=host.curve.cap_for(at[0].setpoint_pps),
        runs=len(at),
        settling_samples=_spread(settled),
        mean_error=_spread([one.mean_error for one in at]),
        relative_rmse=_spread([one.relative_rmse for one in at]),
    )


def _spread(values: Sequence[float]) -> Spread:
    """Return the values nearest to 5, 50 and 95 %, the n-th of N being at (n - 1/2)/N."""
    ordered, count = sorted(values), len(values)
    places = (math.floor(share * count) for share in (0.5, 0.05, 0.95))
    found = (ordered[min(place, count - 1)] for place in places)
    return Spread(*(value if math.isfinite(value) else None for value in found))


def expected(
    host: HostModel,
    law: Law[Any],
    setpoints: Sequence[float],
    *,
    noise: float = 0.0,
    stolen: float = 0.0,
    start_cap: float | None = None,
    offered: float | None = None,
    gain: float = 1.0,
    seed: int = 0,
) -> list[Expectation]:
    """Simulate a law on a host, once for each setpoint.

    Args:
        host: its curve, lag, delay and the caps that it takes.
        law: what holds it.
        setpoints: in packets/s.
        noise: standard deviation of a sample as a share of the throughput.
        stolen: the share of the router's CPU that another process takes all the time.
        start_cap: in CPUs; by default the largest, as the daemon starts.
        offered: packets/s; by default the load under which the host was measured.
        gain: speed of the host as a multiple of its curve's.
        seed: of the noise; the same seed gives the same run.
    """
    ceiling = CapFraction(host.cap_ceiling)
    sent = PacketsPerSecond(offered or host.curve.offered or host.curve.top)
    plant = Plant(host.curve, sent, host.lag, gain)
    found = []
    for setpoint in setpoints:
        scenario = Scenario(
            setpoint=PacketsPerSecond(setpoint),
            duration=DURATION,
            start_cap=ceiling if start_cap is None else CapFraction(start_cap),
            bounds=Bounds(CapFraction(host.cap_floor), ceiling),
            quantum=host.cap_step,
            noise=noise,
            delay=host.delay_samples,
            stolen=stolen,
            seed=seed,
        )
        summary = summarise(run(plant, law, scenario), scenario)
        found.append(
            Expectation(
                setpoint,
                summary.mean_throughput_pps,
                summary.mean_throughput_pps / setpoint - 1,
                summary.relative_rmse,
                summary.settling_samples,
            )
        )
    return found


def fixed_cap(host: HostModel, setpoint: float, stolen: float) -> float:
    """Return the packets/s at the setpoint's cap, once a share of it is stolen."""
    cap = host.curve.cap_for(setpoint)
    return host.curve.throughput(cap * (1 - stolen))


def smallest_held(runs: Sequence[Expectation], *, share: float, least_pps: float) -> float | None:
    """Return the setpoint from which on every run's mean is near; None if the last is not.

    Args:
        runs: by rising setpoints.
        share: how far a mean may be from its setpoint, as a share of that; a law's dead zone.
        least_pps: the same in packets/s, used if larger: the effect of one step of the cap.
    """
    held = None
    for one in reversed(runs):
        near = max(share * one.setpoint_pps, least_pps)
        if abs(one.mean_pps - one.setpoint_pps) > near:
            break
        held = one.setpoint_pps
    return held
