"""Recordings of simulated hosts whose speed is known, for fleets."""

from dataclasses import replace
from pathlib import Path

from benchmarks.training.coverage_host import Case, SimulatedHost
from training.recording.recording import Metadata, Recording
from training.recording.sweep_model import aims_for
from training.sweep.bench import Measured
from training.sweep.sweep import Sweep, resumed

CPU = "AMD EPYC 7763 64-Core Processor"


class FastHost(SimulatedHost):
    """A simulated host that forwards so many times what its case says."""

    def __init__(self, case: Case, seed: int, speed: float) -> None:
        super().__init__(case, seed)
        self._speed = speed

    def sample(self) -> Measured:
        measured = super().sample()
        return replace(measured, throughput=measured.throughput * self._speed)


def metadata(name: str, cpu: str = CPU) -> Metadata:
    """Return what a recording says of its host."""
    return Metadata(
        host=name,
        cpu=f"2x {cpu}" if cpu else "",
        kernel="Linux 6.18",
        actuator="cgroup (CFS quota)",
        router="gold",
        started="2026-11-23T09:00:00+00:00",
        offered_pps=300e3,
    )


def swept_host(
    folder: Path,
    name: str,
    *,
    speed: float = 1.0,
    cpu: str = CPU,
    case: Case | None = None,
    seed: int = 0,
) -> Recording:
    """Sweep a simulated host into FOLDER/NAME.csv, or go on with the file."""
    case = case or Case(noise=0.02)
    path = folder / f"{name}.csv"
    recording = resumed(metadata(name, cpu), path)
    host = FastHost(case, seed, speed)
    return Sweep(host, recording, path, aims_for(case.samples), lambda _: None).run()
