"""Simulated hosts for `benchmarks.coverage`: curves, lag, delay, noise, and speed that changes."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from common.units import CapFraction, Seconds
from training.bench import Measured
from training.known import Span

CurveName = Literal["hinge", "affine hinge", "logarithm", "power law"]
CPU_PPS: Final = 100e3
"""What a whole CPU forwards."""
KNEE: Final = 0.8
"""Share of all vCPUs from which on more cap adds nothing."""
LOWEST: Final = 0.01
DRIFT_MEMORY: Final = 0.95
"""What an AR(1) speed keeps from sample to sample."""
STRAY: Final = 0.1
"""What is left of a sample that is an outlier."""


@dataclass(frozen=True)
class Case:
    """One kind of host; shares where nothing else is said."""

    curve: CurveName = "hinge"
    """The affine hinge is one of two straight lines below its top, so it is none of the shapes."""
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
    """What the speed loses from the begin to the end of the sweep."""
    outliers: float = 0.0
    """Share of samples that are far off."""
    loaded: float = math.inf
    """Offered load, as a share of what the host could forward."""
    vcpus: int = 1
    samples: int = 300
    speed: float = 1.0
    """Packets/s at any cap, as a multiple of the usual host's."""


def throughput(case: Case, cap: float) -> float:
    """Return the packets/s that a cap in CPUs gives at the host's mean speed."""
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
    """Return the shape that the curve of a case has; none where it is another."""
    if case.curve == "affine hinge":
        return "none"
    return "affine hinge" if case.offset else case.curve


def offered(case: Case) -> float:
    """Return the packets/s that are sent."""
    most = CPU_PPS * KNEE * case.vcpus
    return most * (case.loaded if math.isfinite(case.loaded) else 3.0)


class SimulatedHost:
    """What a sweep caps and samples (`training.sweep.Capped`), without any time passing."""

    def __init__(self, case: Case, seed: int) -> None:
        """Take a case, and what its chance begins with."""
        self.case, self._random = case, random.Random(seed)  # noqa: S311  no secret
        self.span = Span(LOWEST, float(case.vcpus))
        self._cap: float | None = None
        self._acting: list[float | None] = [None]
        self._rate = throughput(case, case.vcpus)
        self._visit, self._drift, self._taken = 1.0, self._gauss(case.drift_sd), 0

    def cap(self, cap: CapFraction) -> None:
        """Put a cap in force; the host is another from now on."""
        self._cap = cap
        self._visit = 1 + self._gauss(self.case.visit_sd)

    def sample(self) -> Measured:
        """Return what the next period shows."""
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
        """Return the mean of the trend over the sweep, which the curve is measured at."""
        return 1.0 - self.case.slowdown / 2 * self._taken / self.case.samples

    def _trend(self) -> float:
        return 1 - self.case.slowdown * self._taken / self.case.samples

    def _gauss(self, sd: float) -> float:
        return sd * self._random.gauss(0, 1)
