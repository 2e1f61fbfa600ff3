"""One router of the lab, held in the ways of the XTC evaluation: no control to our default law.

The paper's laws run in the daemon with period, dead zone and whole-percent caps of the paper, gains
of this machine, and no shield; they begin at their smallest cap, as in the paper. Ours is the
default: fine caps, and the shield.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.evaluation.calibration import Calibration, model
from benchmarks.figures import Samples
from benchmarks.rig import Rig, lab_router
from common.units import CapFraction
from lab.programs.processes import Place, Source
from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.traffic import roles
from lab.traffic.counts import Pinged
from xtc.actuator.cgroup import CgroupActuator
from xtc.spec import CgroupSpec
from xtc.wire import Activate

NONE: Final = "no control"
FIXED: Final = "fixed cap"
PI: Final = "paper's PI"
DEAD_BEAT: Final = "paper's dead-beat, cap_min 3"
OURS: Final = "ours"
WAYS: Final = (NONE, FIXED, PI, DEAD_BEAT, OURS)
CONTROLLED: Final = (FIXED, PI, DEAD_BEAT, OURS)
LAWS: Final = {PI: ("pi", 1.0), DEAD_BEAT: ("dead-beat-min3", 3.0)}
"""The configured law, and its smallest cap in percent."""
PROBE_US: Final = 10_000
"""The paper's probe: 0.1 kp/s."""


@dataclass(frozen=True)
class Load:
    """What is sent to the router."""

    flood_pps: float = 0.0
    tcp: bool = False
    theft: float = 0.0
    """Share of one CPU that another process takes inside the router's cap."""


@dataclass(frozen=True)
class Window:
    """Seconds of a run."""

    settle: int
    counted: int


@dataclass(frozen=True)
class Held:
    """What was seen of a router."""

    samples: Samples
    """Throughputs of each second, packets/s."""
    sent: int
    """Probes."""
    received: int
    rtt_ms: tuple[float, ...]

    @property
    def probe_loss(self) -> float:
        """Share of probes that were lost."""
        return max(0.0, 1 - self.received / self.sent) if self.sent else 0.0


def table_of(router: Router, way: str, model_file: Path) -> str:
    """Return a router's table for one of the ways."""
    table = lab_router(router)
    if way in LAWS:
        table += f'\nlaw = "{LAWS[way][0]}"\nmodel = "{model_file}"\nshield = false'
    return table


class Stage:
    """A user-space router in a lab, its sender and its probe."""

    def __init__(self, lab: Lab, calibration: Calibration | None, folder: Path) -> None:
        """Add the router."""
        self._lab = lab
        self.router = lab.add_router("vr", "user-space")
        self.flood: Source = self.router.flood(0.0)
        self._model = folder / "model.toml"
        self._calibration = calibration
        if calibration is not None:
            self._model.write_text(model(calibration))

    def hold(self, way: str, setpoint: float, load: Load, window: Window) -> Held:
        """Hold the router at a setpoint (packets/s) in one way, and return what was seen."""
        with ExitStack() as stack:
            quota = stack.enter_context(self._quota())
            stack.enter_context(self._sending(load))
            tables = {"vr": table_of(self.router, way, self._model)}
            rig = stack.enter_context(Rig(tables, self._lab))
            self._begin(rig, quota, way, setpoint)
            return self._watch(rig, window)

    def capped(self, percents: tuple[float, ...], seconds: int) -> list[list[float]]:
        """Return the throughputs of each second under each of some caps, 0 for none."""
        with self._quota() as quota, Rig({"vr": lab_router(self.router)}, self._lab) as rig:
            found = []
            for percent in percents:
                if percent:
                    quota.apply(CapFraction(percent / 100))
                rig.wait_for_ticks(1)
                before = len(rig.recording.throughput("vr"))
                rig.wait_for_ticks(seconds)
                found.append([pps for _, pps in rig.recording.throughput("vr")[before:]])
            return found

    def _begin(self, rig: Rig, quota: CgroupActuator, way: str, setpoint: float) -> None:
        if way == FIXED:
            assert self._calibration is not None
            percent = self._calibration.fixed_percent(setpoint)
            quota.apply(CapFraction(max(percent / 100, quota.limits.floor)))
        elif way != NONE:
            if way in LAWS:
                quota.apply(CapFraction(LAWS[way][1] / 100))
            rig.client.call(Activate("vr", setpoint))

    def _watch(self, rig: Rig, window: Window) -> Held:
        near, far = self.router.ports
        place = Place(self._lab.dom0_netns)
        pings = roles.ping(place, far.host_address, bind=near.host_address, interval_us=PROBE_US)
        with pings as probe:
            rig.wait_for_ticks(window.settle)
            first, begin = probe.counts(), time.monotonic()
            rig.wait_for_ticks(window.counted)
            samples = [one for one in rig.recording.throughput("vr") if one[0] > begin]
            return _held(samples, first, probe.counts())

    @contextmanager
    def _quota(self) -> Iterator[CgroupActuator]:
        actuator = CgroupActuator(CgroupSpec(path=str(self.router.cgroup)))
        original = actuator.capture()
        try:
            yield actuator
        finally:
            actuator.restore(original)

    @contextmanager
    def _sending(self, load: Load) -> Iterator[None]:
        self.flood.set_rate(load.flood_pps)
        flow = self.router.tcp() if load.tcp else None
        hog = self.router.hog(load.theft) if load.theft else None
        try:
            yield
        finally:
            self.flood.set_rate(0.0)
            for program in (flow, hog):
                if program is not None:
                    program.stop()


def _held(samples: Samples, first: Pinged, last: Pinged) -> Held:
    sent, received = last.sent - first.sent, last.received - first.received
    return Held(samples, sent, received, tuple(ns / 1e6 for ns in last.rtt_ns))


@contextmanager
def stage(calibration: Calibration | None, prefix: str) -> Iterator[Stage]:
    """Open a lab with one router."""
    with tempfile.TemporaryDirectory(prefix="xtc-evaluation-") as folder, Lab(prefix) as lab:
        yield Stage(lab, calibration, Path(folder))
