"""Several routers behind one CPU of Dom0, which is the bottleneck as on the paper's Xen host.

Dom0's core compares each packet often enough to be full before the routers are
(`benchmarks.policer.sharing` has the numbers). Answers count as packets forwarded, as xtc counts.
"""

import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.evaluation.calibration import Calibration, model
from benchmarks.evaluation.xtc.stage import NONE, OURS, OURS_BURST, Window, activation, table_of
from benchmarks.policer.sharing import BACK, INTO
from benchmarks.rig import Rig
from lab.programs.processes import Place
from lab.routers.machines import machine_names
from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.system.namespaces import path
from lab.traffic import roles
from lab.traffic.counts import Pinged
from lab.traffic.program import Traffic

PROBE_US: Final = 100_000
"""Less than the paper's 0.1 kp/s: this Dom0 carries a fraction of what the paper's does."""


@dataclass(frozen=True)
class Turn:
    """One way over some seconds."""

    pps: dict[str, float]
    """Throughput by router."""
    rtt_ms: dict[str, float]
    """Mean round trip by router; a router is left out if no probe came back."""

    @property
    def aggregate(self) -> float:
        """Throughput of all routers."""
        return sum(self.pps.values())


class SharedHost:
    """Routers of a lab with separate machines."""

    def __init__(self, lab: Lab, calibration: Calibration, folder: Path) -> None:
        """Write the model file of the paper's laws."""
        self._lab = lab
        self._model = folder / "model.toml"
        self._model.write_text(model(calibration))

    def add_routers(self, count: int) -> None:
        """Add user-space routers, each of which costs Dom0 much."""
        for number in range(1, count + 1):
            self._lab.add_router(f"vr{number}", "user-space").set_packet_cost(INTO, BACK)

    @property
    def routers(self) -> list[Router]:
        """All routers."""
        return list(self._lab.routers.values())

    def turn(self, way: str, setpoints: Mapping[str, float], window: Window) -> Turn:
        """Hold routers at setpoints (packets/s) in one way, and watch all of them."""
        tables = {one.name: table_of(one, way, self._model) for one in self.routers}
        with ExitStack() as stack:
            probes = {one.name: stack.enter_context(self._probe(one)) for one in self.routers}
            rig = stack.enter_context(Rig(tables, self._lab, shield=way in (OURS, OURS_BURST)))
            if way != NONE:
                for name, setpoint in setpoints.items():
                    rig.client.call(activation(name, way, setpoint))
            rig.wait_for_ticks(window.settle)
            for probe in probes.values():
                probe.counts()
            rig.wait_for_ticks(window.counted)
            return _turn(rig, probes, window.counted)

    def _probe(self, router: Router) -> Traffic[Pinged]:
        near, far = router.ports
        source = Place(path(machine_names(self._lab.prefix)[0]))
        return roles.ping(source, far.host_address, bind=near.host_address, interval_us=PROBE_US)


def _turn(rig: Rig, probes: Mapping[str, Traffic[Pinged]], seconds: int) -> Turn:
    pps, rtt_ms = {}, {}
    for name, probe in probes.items():
        samples = rig.recording.throughput(name)[-seconds:]
        pps[name] = statistics.fmean(rate for _, rate in samples)
        if took := probe.counts().rtt_ns:
            rtt_ms[name] = statistics.fmean(took) / 1e6
    return Turn(pps, rtt_ms)


@contextmanager
def shared_host(calibration: Calibration, prefix: str, routers: int) -> Iterator[SharedHost]:
    """Open a lab with some routers behind one core of Dom0."""
    with (
        tempfile.TemporaryDirectory(prefix="xtc-evaluation-") as folder,
        Lab(prefix, beside=True) as lab,
    ):
        host = SharedHost(lab, calibration, Path(folder))
        host.add_routers(routers)
        yield host
