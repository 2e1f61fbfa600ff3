"""One router at 20 kp/s by simpler tools and by ours: accuracy, cost, and three disturbances."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.evaluation.calibration import PAPER_KPPS, Calibration
from benchmarks.evaluation.plan import Cell, Experiment, Measure, Metric, Run
from benchmarks.evaluation.result import Value
from benchmarks.evaluation.simpler import realtime, tools
from benchmarks.evaluation.xtc.hold import ERROR, LOSS, RMSE, RTT, measured
from benchmarks.evaluation.xtc.stage import OURS, Load, Stage, Window, stage
from benchmarks.figures import mean
from benchmarks.rig import Rig, lab_router
from benchmarks.xco.runs import cpu_ticks
from lab.routers.topology import default_cpus
from xtc.actuator.cgroup import CgroupActuator
from xtc.spec import CgroupSpec
from xtc.wire import Activate

SETPOINT: Final = 20.0
TICKS_PER_S: Final = 100
FLOOD: Final = "64-byte packets"
LARGE: Final = "1000-byte packets"
DEAR: Final = "64-byte packets through a long filter chain"
NEIGHBOUR: Final = "64-byte packets and a busy neighbour"
QUOTA: Final = "fixed quota"
WEIGHT: Final = "weight alone"
REALTIME: Final = "real-time bandwidth"
TBF: Final = "TBF on each interface"
XDP: Final = "XDP packet limit"
COST: Final = "CPU of the machine for each forwarded packet, us"
USED: Final = "CPU of the router, % of one"
METRICS: Final = (
    *(Metric(name, "lower") for name in (ERROR, RMSE, LOSS, RTT, COST)),
    Metric(USED),
)
POINTS: Final = {
    FLOOD: (QUOTA, WEIGHT, REALTIME, TBF, XDP, OURS),
    LARGE: (QUOTA, TBF, OURS),
    DEAR: (QUOTA, XDP, OURS),
    NEIGHBOUR: (QUOTA, WEIGHT, OURS),
}
LARGE_BYTES: Final = 1000
WINDOW: Final = Window(3, 4)
QUICK_WINDOW: Final = Window(3, 3)


@contextmanager
def tool(on: Stage, way: str, percent: float, pps: float) -> Iterator[None]:
    """Set one of the simpler tools; ours is set by the daemon."""
    with ExitStack() as stack:
        if way == QUOTA:
            stack.enter_context(tools.quota(on, percent))
        elif way == WEIGHT:
            stack.enter_context(tools.weight(on.router, percent))
        elif way == REALTIME:
            stack.enter_context(realtime.bandwidth(on.router, percent))
        elif way == TBF:
            stack.enter_context(tools.tbf(on.dom0, on.router, pps))
        elif way == XDP:
            stack.enter_context(tools.xdp(on.router, pps))
        yield


@contextmanager
def disturbance(on: Stage, point: str) -> Iterator[None]:
    """Disturb the router as a point says."""
    with ExitStack() as stack:
        if point == DEAR:
            stack.enter_context(tools.dear_packets(on.router))
        elif point == NEIGHBOUR:
            stack.enter_context(tools.neighbour(on.router, default_cpus().forwarder))
        yield


class Meter:
    """Counts CPU time of the machine and of the router from the settled state on."""

    def __init__(self, on: Stage) -> None:
        """Keep the router's counters open: some kernels count from their opening on."""
        self._actuator = CgroupActuator(CgroupSpec(path=str(on.router.cgroup)))
        self._begin = self._end = self._read()

    def begin(self) -> None:
        """Count from now on."""
        self._begin = self._read()

    def end(self) -> None:
        """Count until now."""
        self._end = self._read()

    @property
    def spent(self) -> tuple[float, float]:
        """CPU seconds of machine and router between begin and end."""
        return self._end[0] - self._begin[0], self._end[1] - self._begin[1]

    def _read(self) -> tuple[float, float]:
        _, busy = cpu_ticks()
        return busy / TICKS_PER_S, self._actuator.usage().used or 0.0


@contextmanager
def bench(calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
    """Open the router that all runs hold in turn."""
    assert calibration is not None
    window = QUICK_WINDOW if quick else WINDOW
    with stage(calibration, "xtcevalsimple") as on:
        yield lambda run: list(_measure(on, run, calibration, window))


def _measure(on: Stage, run: Run, calibration: Calibration, window: Window) -> Iterator[Value]:
    way, point, pps = run.cell.way, run.cell.point, calibration.pps(SETPOINT)
    if way == REALTIME and not realtime.has_bandwidth(on.router):
        return
    percent = calibration.fixed_percent(pps)
    frame_bytes = LARGE_BYTES if point == LARGE else tools.FRAME_BYTES
    load = Load(calibration.pps(PAPER_KPPS), frame_bytes=frame_bytes)
    meter = Meter(on)

    def begin(rig: Rig) -> None:
        if way == OURS:
            rig.client.call(Activate(on.name, pps))
        rig.wait_for_ticks(window.settle)
        meter.begin()

    with disturbance(on, point), tool(on, way, percent, pps):
        counted = Window(0, window.counted)
        held = on.watch(lab_router(on.router), begin, load, counted, meter.end)
    machine, router = meter.spent
    yield from measured(run, held, calibration, SETPOINT)
    forwarded = mean(held.samples) * window.counted
    yield Value(way, point, COST, machine / max(1.0, forwarded) * 1e6)
    yield Value(way, point, USED, router / window.counted * 100)


EXPERIMENT: Final = Experiment(
    name="simpler",
    paper="What a user would pick instead",
    title="One router at 20 kp/s by simpler tools",
    figures="No paper: the same work, the same machine",
    metrics=METRICS,
    cells=tuple(Cell(way, point, 9.3) for point, ways in POINTS.items() for way in ways),
    quick_cells=tuple(Cell(way, FLOOD, 8.5) for way in (TBF, XDP, OURS)),
    bench=bench,
    method=f"{WINDOW}, CPU time of the window alone",
    published={},
    calibrated=True,
)
