"""A router that answers as a host model says, with noise: what a sweep drives, without time."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from common.units import CapFraction, PacketsPerSecond, Seconds
from models import HostModel, bundled_host
from training.recording.recording import Metadata, Recording
from training.recording.sweep_model import Span, SweepPlan, aims_for
from training.sweep.bench import Measured
from training.sweep.sweep import Sweep, Watcher, resumed
from xtc.simulation.plant import Plant, advanced, settled

METADATA = Metadata(host="simulated", router="gold", actuator="simulated")
CONFIG = """
[daemon]
state_dir = "{0}/state"
runtime_dir = "{0}/run"
[router.gold]
actuator = {{ kind = "simulated", plant = "gold" }}
interfaces = ["gold.0"]
"""
"""One simulated router, gold; {0} is a folder for what the daemon keeps."""


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
        self.drift: Callable[[int], float] = lambda _sample: 1.0
        """How fast the router is at each sample, as a share of what its curve says."""
        self.toll = 1.0
        """What is left of the throughput under a cap when the load costs CPU time, too."""
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
        toll = self.toll * self.drift(self.samples) if self._cap is not None else 1.0
        throughput = toll * self._state.throughput * (1 + self._noise * self._random.gauss(0, 1))
        return Measured(
            at=Seconds(1000.0 + self.samples),
            throughput=max(0.0, throughput),
            offered=self.plant.offered,
            cap=self._cap,
            used=None if self._cap is None and self.blind_uncapped else self._state.used,
            binding=self._state.binding and self._cap is not None,
        )


class Sender:
    """Sends towards a simulated router; above some rate each lost packet costs the router time."""

    def __init__(
        self, simulated: Router, *, most: float = 1e9, heavy: float = 1e9, toll: float = 1.0
    ) -> None:
        self.rates: list[float] = []
        self.alive = True
        self._router, self._most, self._heavy, self._toll = simulated, most, heavy, toll

    def set_rate(self, rate_pps: float) -> None:
        self.rates.append(rate_pps)
        self._router.plant = replace(
            self._router.plant, offered=PacketsPerSecond(min(rate_pps, self._most))
        )
        self._router.toll = self._toll if rate_pps > self._heavy else 1.0

    def stop(self) -> None:
        self.alive = False


def router(name: str, **options: float) -> Router:
    """Return a router of one of the hosts that come with xtc."""
    return Router(bundled_host(name), **options)  # type: ignore[arg-type]


def floor_of(simulated: Router, floor: float) -> Router:
    """Return the router with another smallest cap."""
    simulated.span = replace(simulated.span, floor=floor)
    return simulated


def swept(simulated: Router, path: Path, aims: SweepPlan | int = 300) -> Recording:
    """Sweep a router into a file, or go on with the file."""
    wanted = aims_for(aims) if isinstance(aims, int) else aims
    simulated.release()
    return Sweep(simulated, resumed(METADATA, path), path, wanted, lambda _: None).run()


def swept_under(
    sender: Sender,
    simulated: Router,
    path: Path,
    rates: Sequence[float],
    *,
    samples: int = 300,
    watcher: Watcher = lambda _: None,
) -> Recording:
    """Sweep at the first rate, and measure a few caps at the others."""
    simulated.release()
    sender.set_rate(rates[0])
    recording = resumed(msgspec.structs.replace(METADATA, offered_pps=rates[0]), path)
    aims = aims_for(samples, rates[1:])
    return Sweep(simulated, recording, path, aims, watcher, load=sender).run()
