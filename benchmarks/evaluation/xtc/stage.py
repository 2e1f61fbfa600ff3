"""One router of the lab, held in the ways of the XTC evaluation: no control to our default law.

The paper's laws run in the daemon with period, dead zone and whole-percent caps of the paper, gains
of this machine, and no shield. They begin at the fixed cap of the setpoint: the paper leaves out
the first ten seconds, which its PI needs to come from the smallest cap. Ours is the default: fine
caps, and the shield. For TCP there is a way with a longer burst, because the default burst is as
long as TCP's smallest retransmission timeout.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.evaluation.calibration import Calibration, model
from benchmarks.figures import Samples
from benchmarks.rig import Rig, lab_router
from common.units import CapFraction
from lab.plan import RouterKind
from lab.programs.processes import Place, Source
from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.traffic import roles
from lab.traffic.counts import Pinged
from lab.traffic.program import Traffic
from xtc.actuator.cgroup import CgroupActuator
from xtc.spec import CgroupSpec
from xtc.wire import Activate

NONE: Final = "no control"
FIXED: Final = "fixed cap"
PI: Final = "paper's PI"
DEAD_BEAT: Final = "paper's dead-beat, cap_min 3"
OURS: Final = "ours"
OURS_BURST: Final = "ours, burst of 0.4 s"
OURS_CAP: Final = "our law, cap alone"
CONTROLLED: Final = (FIXED, PI, DEAD_BEAT, OURS)
LAWS: Final = {PI: "pi", DEAD_BEAT: "dead-beat-min3"}
"""The configured law."""
TCP_BURST_S: Final = 0.4
"""A TCP flow that waits 0.2 s for its retransmission has room for as much again afterwards."""
RISING_S: Final = 4
PROBE_US: Final = 10_000
"""The paper's probe: 0.1 kp/s."""


@dataclass(frozen=True)
class Load:
    """What is sent to the router."""

    flood_pps: float = 0.0
    tcp: bool = False
    theft: float = 0.0
    """Share of one CPU that another process takes inside the router's cap."""
    frame_bytes: int = 64
    """Of the flood."""


@dataclass(frozen=True)
class Window:
    """Seconds of a run."""

    settle: int
    counted: int

    def for_way(self, way: str) -> "Window":
        """Return one that counts later with the paper's laws.

        For routers that share a CPU: the fixed cap with which they begin is of a router alone.
        """
        return Window(self.settle + RISING_S, self.counted) if way in LAWS else self


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
        return f'{table}\nlaw = "{LAWS[way]}"\nmodel = "{model_file}"\nshield = false'
    return table + ("\nshield = false" if way == OURS_CAP else "")


def activation(name: str, way: str, setpoint: float) -> Activate:
    """Return the request that holds a router at a setpoint (packets/s) in one of the ways."""
    return Activate(name, setpoint, burst=TCP_BURST_S * setpoint if way == OURS_BURST else None)


@contextmanager
def quota_of(router: Router) -> Iterator[CgroupActuator]:
    """Return the quota of a user-space router, and restore it at the end."""
    actuator = CgroupActuator(CgroupSpec(path=str(router.cgroup)))
    original = actuator.capture()
    try:
        yield actuator
    finally:
        actuator.restore(original)


def begin_at_fixed_cap(
    quota: CgroupActuator, way: str, calibration: Calibration, setpoint: float
) -> None:
    """Set the fixed cap of a setpoint (packets/s), with which the paper's laws begin, too."""
    if way == FIXED or way in LAWS:
        percent = calibration.fixed_percent(setpoint)
        quota.apply(CapFraction(max(percent / 100, quota.limits.floor)))


class Stage:
    """A router in a lab, its sender and its probe."""

    def __init__(
        self, lab: Lab, calibration: Calibration | None, folder: Path, kind: RouterKind
    ) -> None:
        """Add the router."""
        self._lab = lab
        self.router = lab.add_router(kind.partition("-")[0], kind)
        self.flood: Source = self.router.flood(0.0)
        self._model = folder / "model.toml"
        self._calibration = calibration
        if calibration is not None:
            self._model.write_text(model(calibration))

    @property
    def name(self) -> str:
        """The router's name."""
        return self.router.name

    @property
    def dom0(self) -> str:
        """The path of Dom0's network namespace."""
        return self._lab.dom0_netns

    def hold(self, way: str, setpoint: float, load: Load, window: Window) -> Held:
        """Hold the router at a setpoint (packets/s) in one way, and return what was seen."""
        with self.quota() as quota:

            def begin(rig: Rig) -> None:
                self._begin(rig, quota, way, setpoint)

            return self.watch(table_of(self.router, way, self._model), begin, load, window)

    def watch(
        self,
        table: str,
        begin: Callable[[Rig], object],
        load: Load,
        window: Window,
        end: Callable[[], object] | None = None,
    ) -> Held:
        """Return what is seen of the router with this table of a daemon, after a beginning.

        `end` is called as soon as the window has ended.
        """
        with (
            self._sending(load),
            Rig({self.name: table}, self._lab) as rig,
            self._probe() as probe,
        ):
            begin(rig)
            rig.wait_for_ticks(window.settle)
            first, since = probe.counts(), time.monotonic()
            rig.wait_for_ticks(window.counted)
            if end is not None:
                end()
            samples = [one for one in rig.recording.throughput(self.name) if one[0] > since]
            return _held(samples, first, probe.counts())

    def capped(self, percents: tuple[float, ...], seconds: int) -> list[list[float]]:
        """Return the throughputs of each second under each of some caps, 0 for none."""
        with self.quota() as quota, Rig({self.name: lab_router(self.router)}, self._lab) as rig:
            found = []
            for percent in percents:
                if percent:
                    quota.apply(CapFraction(percent / 100))
                rig.wait_for_ticks(1)
                before = len(rig.recording.throughput(self.name))
                rig.wait_for_ticks(seconds)
                found.append([pps for _, pps in rig.recording.throughput(self.name)[before:]])
            return found

    def quota(self) -> AbstractContextManager[CgroupActuator]:
        """Return the quota of a user-space router, which is restored at the end."""
        return quota_of(self.router)

    def _begin(self, rig: Rig, quota: CgroupActuator, way: str, setpoint: float) -> None:
        assert self._calibration is not None
        begin_at_fixed_cap(quota, way, self._calibration, setpoint)
        if way not in (FIXED, NONE):
            rig.client.call(activation(self.name, way, setpoint))

    def _probe(self) -> Traffic[Pinged]:
        near, far = self.router.ports
        place = Place(self.dom0)
        return roles.ping(place, far.host_address, bind=near.host_address, interval_us=PROBE_US)

    @contextmanager
    def _sending(self, load: Load) -> Iterator[None]:
        self.flood.set_rate(load.flood_pps, load.frame_bytes)
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
def stage(
    calibration: Calibration | None, prefix: str, kind: RouterKind = "user-space"
) -> Iterator[Stage]:
    """Open a lab with one router."""
    with tempfile.TemporaryDirectory(prefix="xtc-evaluation-") as folder, Lab(prefix) as lab:
        yield Stage(lab, calibration, Path(folder), kind)
