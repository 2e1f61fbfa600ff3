"""What a loop is to be expected to do on a host: simulated, with the noise that was measured."""

from collections.abc import Sequence
from typing import Any

import msgspec

from models import HostModel
from xtc.law import Bounds, Law
from xtc.plant import Plant
from xtc.simulate import Scenario, run, summarise
from xtc.units import CapFraction, PacketsPerSecond

DURATION = 120
"""Samples of a simulated run; the paper's last 120 s."""


class Expectation(msgspec.Struct, frozen=True):
    """What came of one simulated run; shares are of the setpoint."""

    setpoint_pps: float
    mean_pps: float
    """Of the settled samples; of the second half where it never settled."""
    mean_error: float
    """(mean - setpoint) / setpoint."""
    relative_rmse: float
    settling_samples: int | None
    """Samples before the loop stays within 5 % (and three times the noise); None: never."""


def expected(
    host: HostModel,
    law: Law[Any],
    setpoints: Sequence[float],
    *,
    noise: float = 0.0,
    stolen: float = 0.0,
    start_cap: float | None = None,
    offered: float | None = None,
) -> list[Expectation]:
    """Simulate a law on a host, once for each setpoint.

    Args:
        host: its curve, lag, delay and the caps that it takes.
        law: what holds it.
        setpoints: in packets/s.
        noise: standard deviation of a sample as a share of the throughput.
        stolen: the share of the router's CPU that another process takes all the time.
        start_cap: in CPUs; the largest where none is given, as the daemon starts.
        offered: packets/s; where none is given, as when the host was measured.
    """
    ceiling = CapFraction(host.cap_ceiling)
    sent = PacketsPerSecond(offered or host.curve.offered or host.curve.top)
    plant = Plant(host.curve, sent, host.lag)
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
    """Return the packets/s of the cap that gives the setpoint, once a share of it is stolen."""
    cap = host.curve.cap_for(setpoint)
    return host.curve.throughput(cap * (1 - stolen))


def smallest_held(runs: Sequence[Expectation], *, share: float, least_pps: float) -> float | None:
    """Return the setpoint from which on every run's mean is near; None where the last is not.

    Args:
        runs: by rising setpoints.
        share: how far a mean may be from its setpoint, as a share of that; a law's dead zone.
        least_pps: the same in packets/s where that is more; what a step of the cap makes.
    """
    held = None
    for one in reversed(runs):
        near = max(share * one.setpoint_pps, least_pps)
        if abs(one.mean_pps - one.setpoint_pps) > near:
            break
        held = one.setpoint_pps
    return held
