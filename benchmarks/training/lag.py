"""The lag of Eq. 1 from step responses and from the paper's joint regression, against the truth.

All rows are simulated except the last, a recording of a router in the lab. A sweep is 14 caps in
steady state and 8 steps between two of them, one sample a second, with noise. It also prints how
often an interval of the mean of some samples contains the truth, by Student's t and by 1.96
standard errors.
"""

import argparse
import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from common.arguments import whole_number
from common.units import CapFraction, PacketsPerSecond, Seconds
from models import bundled_host
from training.fit.eq1 import Eq1
from training.fit.fit import fit
from training.fit.interval import Interval, interval
from training.recording.recording import Metadata, Phase, Recording, Sample, read_csv
from xtc.simulation.plant import Plant, advanced, settled

CAPS = (0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
STEPS = (0.1, 0.25) * 4
HOSTS = ("hinge", "paper", "log")
LAGS = (0.0, 0.2)
NOISES = (0.0, 0.03, 0.10)
RECORDED = Path(__file__).parents[2] / "notebooks" / "data" / "lab-user-space.csv"
COUNTS = (3, 5, 8)
MEANS = 5000


@dataclass(frozen=True)
class Row:
    """Two estimates of `a` for one kind of host, over several sweeps."""

    host: str
    lag: float | None
    """The true value; None if unknown."""
    noise: float | None
    sweeps: int
    joint: float
    """The paper's joint regression of a and b; the mean of the sweeps."""
    steps: float
    joint_holds: int | None
    """Sweeps in which the 95 % interval contains the true lag."""
    steps_holds: int | None


@dataclass(frozen=True)
class Coverage:
    """How often the 95 % interval of a mean contains the truth."""

    samples: int
    student: float
    normal: float


class Simulated:
    """A router that records every sample, as a sweep does."""

    def __init__(self, plant: Plant, noise: float, seed: int) -> None:
        self._plant, self._noise, self._random = plant, noise, random.Random(seed)  # noqa: S311  noise, not secrets
        self._state = settled(plant, None)
        self._now, self._visit = 0, 0
        self.samples: list[Sample] = []

    def visit(self, phase: Phase, cap: float | None, count: int, discard: int = 0) -> None:
        """Hold a cap for some samples; the first ones are for settling."""
        given = None if cap is None else CapFraction(cap)
        for index in range(discard + count):
            self._now += 1
            self._state = advanced(self._plant, self._state, [given], Seconds(1.0))
            if index >= discard:
                self.samples.append(self._sample(phase, cap))
        self._visit += 1

    def _sample(self, phase: Phase, cap: float | None) -> Sample:
        rate = self._state.throughput * (1 + self._noise * self._random.gauss(0, 1))
        return Sample(
            at=float(self._now),
            cap=cap,
            throughput_pps=max(0.0, rate),
            used=self._state.used,
            binding=self._state.binding,
            phase=phase,
            visit=self._visit,
        )


def swept(host: str, lag: float, noise: float, seed: int) -> Eq1:
    """Return Eq. 1 of one simulated sweep."""
    curve = bundled_host(host).curve
    offered = PacketsPerSecond(curve.offered or curve.top)
    router = Simulated(Plant(curve, offered, lag), noise, seed)
    router.visit("uncapped", None, 5)
    for cap in CAPS:
        router.visit("steady", cap, 6, discard=6)
    for cap in STEPS:
        router.visit("step", cap, 5)
    return fit(Recording(Metadata(host=host, offered_pps=offered), tuple(router.samples))).eq1


def row_of(host: str, lag: float, noise: float, sweeps: int) -> Row:
    """Return both estimates for several sweeps; without noise one sweep suffices."""
    count = sweeps if noise > 0 else 1
    found = [swept(host, lag, noise, seed) for seed in range(count)]
    joints, steps = [eq1.joint.a for eq1 in found], [eq1.a for eq1 in found]
    means = fmean(a.value for a in joints), fmean(a.value for a in steps)
    return Row(host, lag, noise, count, *means, holding(joints, lag), holding(steps, lag))


def holding(found: Iterable[Interval], truth: float) -> int:
    """Return how many intervals contain the truth, to a rounding error."""
    return sum(one.low - 1e-9 <= truth <= one.high + 1e-9 for one in found)


def recorded(path: Path) -> Row:
    """Return both estimates for a recording."""
    eq1 = fit(read_csv(path)).eq1
    return Row(path.stem, None, None, 1, eq1.joint.a.value, eq1.a.value, None, None)


def coverage(samples: int, means: int) -> Coverage:
    """Return how often intervals of that many samples' mean contain the truth."""
    values = np.random.default_rng(samples).standard_normal((means, samples))
    error = values.std(axis=1, ddof=1) / math.sqrt(samples)
    mean = np.abs(values.mean(axis=1))
    half = interval(0.0, 1.0, samples - 1).high
    shares = [float(np.mean(mean <= factor * error)) for factor in (half, 1.96)]
    return Coverage(samples, *shares)


def show(rows: Sequence[Row], covered: Sequence[Coverage]) -> None:
    """Print both tables."""
    table = Table(title="a of Eq. 1: mean, and how often its interval holds the truth")
    for heading in ("host", "true a", "noise", "joint regression", "holds", "steps", "holds"):
        table.add_column(heading)
    for row in rows:
        true = "-" if row.lag is None else f"{row.lag:g}"
        noise = "-" if row.noise is None else f"{row.noise:.0%}"
        counts = [_of(row, count) for count in (row.joint_holds, row.steps_holds)]
        cells = f"{row.joint:.2f}", counts[0], f"{row.steps:.2f}", counts[1]
        table.add_row(row.host, true, noise, *cells)
    Console(width=100).print(table)
    for one in covered:
        print(f"mean of {one.samples}: t holds in {one.student:.1%}, 1.96 in {one.normal:.1%}")


def _of(row: Row, count: int | None) -> str:
    return "-" if count is None else f"{count} of {row.sweeps}"


def main() -> None:
    """Sweep, fit and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training.lag",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--sweeps", type=whole_number(1), default=30, help="simulated sweeps of a host"
    )
    arguments = parser.parse_args()
    rows = [row_of(*one, arguments.sweeps) for one in product(HOSTS, LAGS, NOISES)]
    rows.append(recorded(RECORDED))
    covered = [coverage(count, MEANS) for count in COUNTS]
    if arguments.json:
        answer = {"lag": [asdict(r) for r in rows], "coverage": [asdict(c) for c in covered]}
        print(json.dumps(answer, indent=2))
    else:
        show(rows, covered)


if __name__ == "__main__":
    main()
