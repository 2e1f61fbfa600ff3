"""A router that answers as a host model says, with noise: what a sweep drives, without time."""

import random
from dataclasses import replace
from pathlib import Path

from models import HostModel, bundled_host
from training.bench import Measured
from training.data import Metadata, Recording
from training.known import Aims, Span, aims_for
from training.sweep import Sweep, resumed
from xtc.plant import Plant, advanced, settled
from xtc.units import CapFraction, PacketsPerSecond, Seconds

METADATA = Metadata(host="simulated", router="gold", actuator="simulated")


class Router:
    """Something that a sweep can cap and sample."""

    def __init__(self, host: HostModel, *, noise: float = 0.0, seed: int = 0) -> None:
        offered = PacketsPerSecond(host.curve.offered or host.curve.top)
        self.plant = Plant(host.curve, offered, host.lag)
        self.span = Span(max(host.cap_floor, 0.001), 2.0, host.cap_step)
        self.caps: list[float] = []
        self.samples = 0
        self.blind_uncapped = False
        """Whether nobody counts the CPU time of the uncapped router, as with kernel threads."""
        self.breaks_after: int | None = None
        """Samples after which sampling raises Interrupted."""
        self.plant_host = host
        self._noise, self._random = noise, random.Random(seed)
        self._cap: CapFraction | None = None
        self._state = settled(self.plant, None)

    def release(self) -> None:
        """Do what the end of a bench does."""
        self._cap, self._state = None, settled(self.plant, None)

    def cap(self, cap: CapFraction) -> None:
        self.caps.append(cap)
        self._cap = cap

    def sample(self) -> Measured:
        if self.breaks_after is not None and self.samples >= self.breaks_after:
            raise InterruptedError
        self.samples += 1
        self._state = advanced(self.plant, self._state, [self._cap], Seconds(1.0))
        throughput = self._state.throughput * (1 + self._noise * self._random.gauss(0, 1))
        return Measured(
            at=Seconds(1000.0 + self.samples),
            throughput=max(0.0, throughput),
            offered=self.plant.offered,
            cap=self._cap,
            used=None if self._cap is None and self.blind_uncapped else self._state.used,
            binding=self._state.binding and self._cap is not None,
        )


def router(name: str, **options: float) -> Router:
    """Return a router of one of the hosts that come with xtc."""
    return Router(bundled_host(name), **options)  # type: ignore[arg-type]


def floor_of(simulated: Router, floor: float) -> Router:
    """Return the router with another smallest cap."""
    simulated.span = replace(simulated.span, floor=floor)
    return simulated


def swept(simulated: Router, path: Path, aims: Aims | int = 300) -> Recording:
    """Sweep a router into a file, or go on with the file."""
    wanted = aims_for(aims) if isinstance(aims, int) else aims
    simulated.release()
    return Sweep(simulated, resumed(METADATA, path), path, wanted, lambda _: None).run()
