"""Calibration of this machine for the XTC experiments: scale of rates, map of caps, paper's gains.

One factor scales all rates: the paper's router that is offered 100 kp/s is not saturated from a cap
of 60 on, so 100 kp/s correspond to a fixed share of what an uncapped router of the lab forwards.
The map of caps is the paper's Table 1, measured here. Eq. 1 is fitted as in section 5.2, and the
gains of PI and dead-beat follow from it as in sections 6 and 7.2.1 (`training.design.gains`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from models import ControlGains, HostModel, LogCapModel, dump_host
from training.design.gains import design

PAPER_KPPS: Final = 100.0
"""The rate of the paper's flood."""
SHARE_OF_TOP: Final = 0.8
"""What the paper's 100 kp/s correspond to, of the uncapped router's throughput here."""


MAX_LAG: Final = 0.99
"""Of Eq. 1: with a = 1 the throughput would not settle."""
Floats = npt.NDArray[np.float64]


class Step(NamedTuple):
    """A sample of the throughput, one second under one cap."""

    percent: float
    kpps: float


@dataclass(frozen=True, slots=True)
class Equation:
    """Eq. 1 of the paper around its operating point, in kp/s and log10 of percent."""

    a: float
    b: float
    mean_kpps: float
    mean_log_cap: float
    r_squared: float


@dataclass(frozen=True)
class Calibration:
    """What the experiments need to know of this machine."""

    top_pps: float
    """Throughput of an uncapped, flooded router."""
    cap_map: tuple[tuple[float, float], ...]
    """Cap in percent and throughput in packets/s, rising."""
    equation: Equation
    cpu: str = ""
    """Of the machine that was measured."""

    @property
    def scale(self) -> float:
        """Packets/s here for each packet/s of the paper."""
        return scale_of(self.top_pps)

    def pps(self, paper_kpps: float) -> float:
        """Return a rate of the paper in packets/s of this machine."""
        return paper_kpps * 1e3 * self.scale

    def paper_kpps(self, pps: float) -> float:
        """Return a rate of this machine in the paper's kp/s."""
        return pps / self.scale / 1e3

    def fixed_percent(self, pps: float) -> float:
        """Return the cap that the map has for a throughput, interpolated."""
        caps, rates = zip(*self.cap_map, strict=True)
        return float(np.interp(pps, (0.0, *rates), (0.0, *caps)))


def scale_of(top_pps: float) -> float:
    """Return packets/s here for each packet/s of the paper, from the uncapped throughput."""
    return top_pps * SHARE_OF_TOP / (PAPER_KPPS * 1e3)


def fit(steps: Sequence[Step], threshold_percent: float) -> Equation:
    """Fit Eq. 1 by least squares to samples below the cap threshold (section 5.2).

    Raises:
        ValueError: there are too few samples, or the throughput does not rise with the cap.
    """
    below = [pair for pair in pairwise(steps) if pair[1].percent <= threshold_percent]
    if len(below) < 3:
        raise ValueError("the fit needs at least three samples below the cap threshold")
    before = np.array([first.kpps for first, _ in below])
    after = np.array([second.kpps for _, second in below])
    caps = np.log10([second.percent for _, second in below])
    y, u = float(after.mean()), float(caps.mean())
    columns = np.column_stack([before - before.mean(), caps - u])
    a, b = _stable(columns, after - y)
    missed = after - y - columns @ np.array([a, b])
    explained = 1 - float(missed @ missed) / float((after - y) @ (after - y))
    if b <= 0:
        raise ValueError(f"b of Eq. 1 is {b:.3g}: the throughput does not rise with the cap")
    return Equation(float(a), float(b), y, u, explained)


def _stable(columns: Floats, after: Floats) -> tuple[float, float]:
    """Return least-squares a and b, with b for the nearest a if a is not in 0 to 0.99."""
    (a, b), *_ = np.linalg.lstsq(columns, after, rcond=None)
    bounded = min(max(float(a), 0.0), MAX_LAG)
    if bounded != a:
        before, caps = columns.T
        b = caps @ (after - bounded * before) / (caps @ caps)
    return bounded, float(b)


def rising(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return a map of caps without descents, which are noise."""
    highest, found = 0.0, []
    for percent, rate in sorted(points):
        highest = max(highest, rate)
        found.append((percent, highest))
    return tuple(found)


def model(calibration: Calibration, period_s: float = 1.0) -> str:
    """Return the model file with the gains that the paper's method gives for this machine.

    Args:
        calibration: its equation gives the gains, which settle in 5 samples as the paper's do.
        period_s: of its samples.
    """
    eq = calibration.equation
    laws = design(eq.a, eq.b)
    line = LogCapModel(
        a=eq.a,
        b=eq.b,
        mean_throughput=eq.mean_kpps,
        mean_log_cap=eq.mean_log_cap,
        cap_threshold=1.0,
        offered=calibration.pps(PAPER_KPPS),
        r_squared=min(max(eq.r_squared, 0.0), 1.0),
    )
    pi, dead_beat = (ControlGains(loop.kp, loop.ki, period_s) for loop in (laws.pi, laws.dead_beat))
    return dump_host(
        HostModel(name="evaluation", log_model=line, lag=eq.a, pi=pi, dead_beat=dead_beat)
    )


def save(calibration: Calibration, path: Path) -> None:
    """Write a calibration."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(calibration), indent=1) + "\n")


def load(path: Path) -> Calibration | None:
    """Read a calibration; None: there is none."""
    if not path.exists():
        return None
    return of_json(json.loads(path.read_text()))


def of_json(found: Mapping[str, Any]) -> Calibration:
    """Return the calibration of a JSON object."""
    points = tuple((percent, rate) for percent, rate in found["cap_map"])
    equation = Equation(**found["equation"])
    return Calibration(found["top_pps"], points, equation, found.get("cpu", ""))
