"""Simulated hosts for the coverage benchmark: curves, lag, delay, noise, and speed that changes."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from common.units import CapFraction, Seconds
from training.recording.sweep_model import Span
from training.sweep.bench import Measured

CurveName = Literal["hinge", "affine hinge", "logarithm", "power law"]
CPU_PPS: Final = 100e3
"""Throughput of a whole CPU."""
KNEE: Final = 0.8
"""Share of all vCPUs from which on a larger cap adds nothing."""
LOWEST: Final = 0.01
DRIFT_MEMORY: Final = 0.95
"""Share of an AR(1) speed that is kept from sample to sample."""
STRAY: Final = 0.1
"""Factor on a sample that is an outlier."""


@dataclass(frozen=True)
class Case:
    """One kind of host; values are shares unless noted."""

    curve: CurveName = "hinge"
    """The affine hinge has two straight lines below its top, so it is none of the shapes."""
    offset: float = 0.0
    """Share of the top at which a hinge's line begins, as an exact affine hinge's does."""
    power: float = 0.6
    """Of the power law."""
    lag: float = 0.0
    delay: int = 0
    noise: float = 0.03
    visit_sd: float = 0.0
    drift_sd: float = 0.0
    """Standard deviation of an AR(1) speed."""
    slowdown: float = 0.0
    """Loss of speed from the begin to the end of the sweep."""
    outliers: float = 0.0
    """Share of samples that are far off."""
    loaded: float = math.inf
    """Offered load, as a share of the host's capacity."""
    vcpus: int = 1
    samples: int = 300
    speed: float = 1.0
    """Packets/s at any cap, as a multiple of the usual host's."""


def throughput(case: Case, cap: float) -> float:
    """Return the packets/s of a cap in CPUs at the host's mean speed."""
    share = min(cap / (KNEE * case.vcpus), 1.0)
    rise: Callable[[float], float] = {
        "hinge": lambda x: max(case.offset + (1 - case.offset) * x, 0.0),
        "affine hinge": lambda x: max(1.12 * x - 0.12, 0.3 * x) if x < 1 else 1.0,
        "logarithm": lambda x: max(
            1 + 0.5 * math.log10(max(x, 1e-9)), 2.0 * x if x < 0.01 else 0.02
        ),
        "power law": lambda x: x**case.power,
    }[case.curve]
    top = CPU_PPS * KNEE * case.vcpus * case.speed
    return min(top * rise(share), offered(case))


def shape_of(case: Case) -> str:
    """Return the shape of a case's curve; "none" if it is another."""
    if case.curve == "affine hinge":
        return "none"
    return "affine hinge" if case.offset else case.curve


def offered(case: Case) -> float:
    """Return the packets/s that are sent."""
    most = CPU_PPS * KNEE * case.vcpus
    return most * (case.loaded if math.isfinite(case.loaded) else 3.0)


class SimulatedHost:
    """The router of a sweep (`training.sweep.sweep.Capped`), in simulated time."""

    def __init__(self, case: Case, seed: int) -> None:
        """Take a case, and the seed of its random numbers."""
        self.case, self._random = case, random.Random(seed)  # noqa: S311  no secret
        self.span = Span(LOWEST, float(case.vcpus))
        self._cap: float | None = None
        self._acting: list[float | None] = [None]
        self._rate = throughput(case, case.vcpus)
        self._visit, self._drift, self._taken = 1.0, self._gauss(case.drift_sd), 0

    def cap(self, cap: CapFraction) -> None:
        """Put a cap in force."""
        self._cap = cap
        self._visit = 1 + self._gauss(self.case.visit_sd)

    def sample(self) -> Measured:
        """Return the sample of the next period."""
        case = self.case
        self._taken += 1
        self._acting.append(self._cap)
        acting = self._acting[-1 - case.delay] if len(self._acting) > case.delay else None
        cap = case.vcpus if acting is None else acting
        fresh = math.sqrt(1 - DRIFT_MEMORY**2) * self._gauss(case.drift_sd)
        self._drift = DRIFT_MEMORY * self._drift + fresh
        speed = self._visit * (1 + self._drift) * self._trend()
        steady = min(throughput(case, cap) * speed, offered(case))
        self._rate = case.lag * self._rate + (1 - case.lag) * steady
        seen = self._rate * max(1 + self._gauss(case.noise), 0.0)
        if self._random.random() < case.outliers:
            seen *= STRAY
        free = throughput(case, cap) >= throughput(case, case.vcpus) * (1 - 1e-9)
        return Measured(
            at=Seconds(1000.0 + self._taken),
            throughput=seen,
            offered=offered(case),
            cap=None if self._cap is None else CapFraction(self._cap),
            used=CapFraction(min(cap, KNEE * case.vcpus)),
            binding=self._cap is not None and not free,
        )

    def mean_speed(self) -> float:
        """Return the mean of the trend over the sweep, the reference of the measured curve."""
        return 1.0 - self.case.slowdown / 2 * self._taken / self.case.samples

    def _trend(self) -> float:
        return 1 - self.case.slowdown * self._taken / self.case.samples

    def _gauss(self, sd: float) -> float:
        return sd * self._random.gauss(0, 1)
