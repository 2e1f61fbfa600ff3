"""Self-tuning beside the default law and fixed gains, on routers whose lag nobody told.

Everything here is simulated: Eq. 1 around the curve of a model file, one sample a second. Each run
starts at a cap of 1 %; after 60 samples the router becomes half as fast, after 120 its offered load
falls to 70 % of the setpoint, and after 140 it returns. `default, told` knows the lag, the others
do not (the default law takes it to be 0: where it is, nothing is told); `dead-beat-min3` is the
paper's law with the gains of the paper's host, whole percents, dead zone and all.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

from rich.console import Console
from rich.table import Table

from models import bundled_host
from xtc.adaptive import AdaptiveLaw
from xtc.law import Bounds, Law, Sample
from xtc.laws import law_named
from xtc.plant import Plant, advanced, settled
from xtc.selftuning import SelfTuningLaw, SelfTuningState
from xtc.units import CapFraction, PacketsPerSecond, Seconds

HOSTS = ("paper", "hinge", "log")
LAGS = (0.0, 0.0915, 0.3, 0.5)
SETPOINTS = (10e3, 20e3, 40e3)
NOISES = (0.0, 0.05)
SEEDS = 5
"""Runs with noise; without it all are the same."""
HALVES, FALLS, RETURNS, ENDS = 60, 120, 140, 200
START = CapFraction(0.01)
BOUNDS = Bounds(CapFraction(0.001), CapFraction(1.0))
BAND = 0.05
STEADY = 30
"""Samples before each change that count as steady."""


@dataclass(frozen=True)
class Run:
    """One run; samples until the router's throughput stays within 5 % (and noise), None: never."""

    settling: int | None
    after_halving: int | None
    after_lull: int | None
    mean_error: float
    """|mean - setpoint| / setpoint over the steady samples."""
    relative_rmse: float
    """Of the router's throughput without the meter's noise, about the setpoint."""
    lag_error: float | None
    """Distance of the learned lag from the true one at the end; None: nothing is learned."""
    drift: float | None
    """By how much the learned lag moved in the last 30 samples before a change."""


TIMES = ("settling", "after_halving", "after_lull")
"""The figures of a run that are times: of several runs the worst counts, of the others the mean."""


@dataclass(frozen=True)
class Row(Run):
    """A law on a host, over all setpoints and seeds."""

    host: str
    law: str
    lag: float
    noise: float


def rows() -> Iterator[Row]:
    """Run every law on every host."""
    for host, lag, noise in product(HOSTS, LAGS, NOISES):
        for name, law in _laws(lag).items():
            seeds = range(SEEDS if noise else 1)
            runs = [
                _run(host, law, lag=lag, noise=noise, setpoint=setpoint, seed=seed)
                for setpoint, seed in product(SETPOINTS, seeds)
            ]
            yield _row(host, name, lag, noise, runs)


def _laws(lag: float) -> dict[str, Law[Any]]:
    told: dict[str, Law[Any]] = {"default, told": AdaptiveLaw(lag=lag)} if lag else {}
    return {
        "self-tuning": SelfTuningLaw(),
        "default": AdaptiveLaw(),
        **told,
        "dead-beat-min3": law_named("dead-beat-min3"),
    }


def _run(host: str, law: Law[Any], *, lag: float, noise: float, setpoint: float, seed: int) -> Run:
    meter = random.Random(seed)  # noqa: S311  noise, no secrets
    rates, states = list[float](), list[Any]()
    cap, memory = START, law.start(START)
    state = settled(_plant(host, lag, 0, setpoint), START)
    for t in range(ENDS):
        router = _plant(host, lag, t, setpoint)
        state = advanced(router, state, [cap], Seconds(1.0))
        seen = min(max(state.throughput * (1 + noise * meter.gauss(0, 1)), 0.0), router.offered)
        sample = Sample(PacketsPerSecond(seen), cap, router.offered, state.used, state.binding)
        memory, decision = law.step(memory, PacketsPerSecond(setpoint), sample, BOUNDS)
        cap = decision.cap
        rates.append(state.throughput)
        states.append(memory)
    return _judged(rates, states, lag, noise, setpoint)


def _plant(host: str, lag: float, t: int, setpoint: float) -> Plant:
    curve = bundled_host(host).curve
    assert curve.offered is not None  # every bundled host names it
    offered = 0.7 * setpoint if FALLS <= t < RETURNS else curve.offered
    return Plant(curve, PacketsPerSecond(offered), lag, 0.5 if t >= HALVES else 1.0)


def _judged(
    rates: list[float], states: list[Any], lag: float, noise: float, setpoint: float
) -> Run:
    band = BAND + noise
    steady = [y for end in (HALVES, FALLS, ENDS) for y in rates[end - STEADY : end]]
    lags = [s.tuning.lag for s in states if isinstance(s, SelfTuningState)]
    last = lags[FALLS - STEADY : FALLS]
    return Run(
        settling=_settling(rates[:HALVES], setpoint, band),
        after_halving=_settling(rates[HALVES:FALLS], setpoint, band),
        after_lull=_settling(rates[RETURNS:], setpoint, band),
        mean_error=abs(math.fsum(steady) / len(steady) / setpoint - 1),
        relative_rmse=math.sqrt(math.fsum((y / setpoint - 1) ** 2 for y in steady) / len(steady)),
        lag_error=abs(lags[-1] - lag) if lags else None,
        drift=max(last) - min(last) if last else None,
    )


def _settling(rates: list[float], setpoint: float, band: float) -> int | None:
    outside = [t for t, y in enumerate(rates) if abs(y / setpoint - 1) > band]
    settling = outside[-1] + 1 if outside else 0
    return settling if settling < len(rates) else None


def _row(host: str, law: str, lag: float, noise: float, runs: list[Run]) -> Row:
    """Put runs together; a figure that one of them lacks, none of them has."""
    figures = dict[str, Any]()
    for name in (field.name for field in fields(Run)):
        values = [getattr(run, name) for run in runs]
        figures[name] = None
        if None not in values:
            figures[name] = max(values) if name in TIMES else math.fsum(values) / len(values)
    return Row(host=host, law=law, lag=lag, noise=noise, **figures)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every row as JSON")
    options = parser.parse_args()
    found = list(rows())
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
        return
    Console(highlight=False, width=130).print(_table(found))
    print("Simulated. Worst of all setpoints and seeds, `-`: never; errors, % and drift: means.")


def _table(found: list[Row]) -> Table:
    table = Table(box=None, header_style="bold")
    for name in ("host", "lag", "noise, %", "law"):
        table.add_column(name)
    for name in ("settling", "halved", "lull", "mean error, %", "rel. RMSE, %", "|da|", "drift"):
        table.add_column(name, justify="right")
    for row in found:
        times = (row.settling, row.after_halving, row.after_lull)
        learned = (row.lag_error, row.drift)
        table.add_row(
            *(row.host, f"{row.lag:g}", f"{row.noise * 100:g}", row.law),
            *("-" if t is None else str(t) for t in times),
            *(f"{row.mean_error * 100:.2f}", f"{row.relative_rmse * 100:.2f}"),
            *("" if value is None else f"{value:.3f}" for value in learned),
        )
    return table


if __name__ == "__main__":
    main()
