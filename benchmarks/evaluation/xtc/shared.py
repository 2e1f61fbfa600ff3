"""Several routers behind one CPU of Dom0, which is the bottleneck as on the paper's Xen host.

Dom0's core compares each packet often enough to be full before the routers are
(`benchmarks.policer.sharing` has the numbers). Answers count as packets forwarded, as xtc counts.

What the host forwards without control is measured before and after each controlled turn: a machine
that others use as well changes its speed within minutes. A turn with a change is repeated.
"""

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.evaluation.calibration import Calibration, model
from benchmarks.evaluation.xtc.stage import (
    FIXED,
    NONE,
    OURS,
    OURS_BURST,
    Window,
    activation,
    begin_at_fixed_cap,
    quota_of,
    table_of,
)
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
from xtc.wire import Deactivate

PROBE_US: Final = 100_000
"""Less than the paper's 0.1 kp/s: this Dom0 carries a fraction of what the paper's does."""
RELEASED: Final = Window(1, 3)
"""After a turn, without control."""
STEADY: Final = 0.25
"""How much the uncontrolled throughput may change during a turn, as a part of it."""
ATTEMPTS: Final = 2


@dataclass(frozen=True)
class Turn:
    """One way over some seconds."""

    pps: dict[str, float]
    """Throughput by router."""
    rtt_ms: dict[str, float]
    """Mean round trip by router; a router is left out if no probe came back."""
    setpoints: Mapping[str, float]
    """By router; none without control."""
    before: float
    """Throughput of all routers without control before the turn, packets/s."""
    after: float
    """The same after it."""

    @property
    def aggregate_percent(self) -> float:
        """Throughput of all routers, in percent of what they have without control."""
        return sum(self.pps.values()) / statistics.fmean((self.before, self.after)) * 100

    @property
    def change(self) -> float:
        """Part by which the machine's speed changed during the turn."""
        return abs(self.after / self.before - 1)


Probes = Mapping[str, Traffic[Pinged]]


class SharedHost:
    """Routers of a lab with separate machines."""

    def __init__(self, lab: Lab, calibration: Calibration, folder: Path) -> None:
        """Write the model file of the paper's laws."""
        self._lab, self._calibration = lab, calibration
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

    def uncontrolled(self, window: Window) -> Turn:
        """Watch all routers without control."""
        with self._running(NONE) as (rig, probes):
            pps, rtt_ms = _watched(rig, probes, window)
        total = sum(pps.values())
        return Turn(pps, rtt_ms, {}, total, total)

    def turn(self, way: str, setpoints: Mapping[str, float], before: float, window: Window) -> Turn:
        """Hold routers at setpoints (packets/s) in one way and watch all of them; release them."""
        with self._running(way) as (rig, probes):
            with self._fixed_caps(way, setpoints):
                if way != FIXED:
                    for name, setpoint in setpoints.items():
                        rig.client.call(activation(name, way, setpoint))
                pps, rtt_ms = _watched(rig, probes, window.for_way(way))
                rig.client.call(Deactivate(None))
                rig.wait_for_ticks(1)
            rig.wait_for_ticks(RELEASED.settle + RELEASED.counted)
            after = sum(_throughput(rig, name, RELEASED.counted) for name in probes)
        return Turn(pps, rtt_ms, setpoints, before, after)

    @contextmanager
    def _fixed_caps(self, way: str, setpoints: Mapping[str, float]) -> Iterator[None]:
        with ExitStack() as stack:
            for name, setpoint in setpoints.items():
                quota = stack.enter_context(quota_of(self._lab.routers[name]))
                begin_at_fixed_cap(quota, way, self._calibration, setpoint)
            yield

    @contextmanager
    def _running(self, way: str) -> Iterator[tuple[Rig, Probes]]:
        tables = {one.name: table_of(one, way, self._model) for one in self.routers}
        with ExitStack() as stack:
            probes = {one.name: stack.enter_context(self._probe(one)) for one in self.routers}
            rig = stack.enter_context(Rig(tables, self._lab, shield=way in (OURS, OURS_BURST)))
            yield rig, probes

    def _probe(self, router: Router) -> Traffic[Pinged]:
        near, far = router.ports
        source = Place(path(machine_names(self._lab.prefix)[0]))
        return roles.ping(source, far.host_address, bind=near.host_address, interval_us=PROBE_US)


def _throughput(rig: Rig, name: str, seconds: int) -> float:
    return statistics.fmean(rate for _, rate in rig.recording.throughput(name)[-seconds:])


def _watched(rig: Rig, probes: Probes, window: Window) -> tuple[dict[str, float], dict[str, float]]:
    """Return throughput and mean round trip by router."""
    rig.wait_for_ticks(window.settle)
    for probe in probes.values():
        probe.counts()
    rig.wait_for_ticks(window.counted)
    took = {name: probe.counts().rtt_ns for name, probe in probes.items()}
    rtt_ms = {name: statistics.fmean(found) / 1e6 for name, found in took.items() if found}
    return {name: _throughput(rig, name, window.counted) for name in probes}, rtt_ms


class Turns:
    """Turns on a host, each next to its throughput without control before and after."""

    def __init__(self, free: Turn, hold: Callable[[str, Mapping[str, float], float], Turn]) -> None:
        """Begin after a turn without control; `hold` makes others (`SharedHost.turn`)."""
        self.free, self._hold = free, hold
        self._before = free.after

    def make(self, way: str, setpoints_of: Callable[[float], Mapping[str, float]]) -> Turn:
        """Return a turn in one way.

        Args:
            way: how routers are held.
            setpoints_of: from the throughput without control to setpoints, packets/s.

        Returns: the first during which the machine was steady; of four, the steadiest.
        """
        made: list[Turn] = []
        while len(made) < ATTEMPTS and (not made or made[-1].change > STEADY):
            before = self._before
            made.append(self._hold(way, setpoints_of(before), before))
            self._before = made[-1].after
        return min(made, key=lambda turn: turn.change)


def turns_on(host: SharedHost, window: Window) -> Turns:
    """Watch a host without control, and return its turns."""
    return Turns(host.uncontrolled(window), partial(host.turn, window=window))


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
