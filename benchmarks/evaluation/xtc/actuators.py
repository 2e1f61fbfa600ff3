"""Round trip and loss of a probe at 20 kp/s, by actuator and scheduling period (Fig. 7).

Quotas are fixed caps of the measured map. A deadline has no such map: our law sets its cap, without
the shield. Ours is the default of each kind of router. Xen's credit scheduler has slices of 30 ms.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

from benchmarks.evaluation.calibration import PAPER_KPPS, Calibration
from benchmarks.evaluation.plan import Cell, Experiment, Measure, Metric, Run
from benchmarks.evaluation.result import Value
from benchmarks.evaluation.xtc.hold import LOSS, RMSE, RTT, measured
from benchmarks.evaluation.xtc.stage import Load, Stage, Window, stage
from benchmarks.rig import Rig, lab_router
from xtc.kernel.cgroupfs import open_group
from xtc.kernel.quota import MIN_QUOTA_US, Quota
from xtc.wire import Activate

SETPOINT: Final = 20.0
UDP: Final = "UDP, setpoint 20 kp/s"
TCP: Final = "TCP, setpoint 20 kp/s"
QUOTAS: Final = {"quota, 100 ms": 100_000, "quota, 30 ms": 30_000}
DEADLINES: Final = {"deadline, 30 ms": 30_000, "deadline, 1 ms": 1_000}
OURS_QUOTA: Final = "ours, user-space router"
OURS_DEADLINE: Final = "ours, kernel's router"
WAYS: Final = (*QUOTAS, OURS_QUOTA, *DEADLINES, OURS_DEADLINE)
WAYS_OF: Final = {UDP: WAYS, TCP: ("deadline, 1 ms", OURS_DEADLINE)}
"""By point; `xtc-hold` has quotas with TCP."""
PAPER_RTT_MS: Final = 55.0
WINDOW: Final = Window(3, 6)
QUICK_WINDOW: Final = Window(3, 3)


def quota_of(percent: float, period_us: int) -> Quota:
    """Return the quota of a cap in percent; it is at least the kernel's smallest."""
    return Quota(max(MIN_QUOTA_US, round(percent / 100 * period_us)), period_us)


def table_of(on: Stage, way: str) -> str:
    """Return the router's table of a way."""
    table = lab_router(on.router)
    if way in DEADLINES:
        table = table.replace(" }", f", period_us = {DEADLINES[way]} }}", 1) + "\nshield = false"
    return table


@contextmanager
def bench(calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
    """Open a router of each kind."""
    assert calibration is not None
    window = QUICK_WINDOW if quick else WINDOW
    with ExitStack() as stack:
        user = stack.enter_context(stage(calibration, "xtcevalquota"))
        kernel = stack.enter_context(stage(calibration, "xtcevaldl", "kernel"))
        routers = {way: kernel if "kernel" in way or way in DEADLINES else user for way in WAYS}
        yield lambda run: _measure(routers[run.cell.way], run, calibration, window)


def _measure(on: Stage, run: Run, calibration: Calibration, window: Window) -> list[Value]:
    way, setpoint = run.cell.way, calibration.pps(SETPOINT)
    load = Load(tcp=True) if run.cell.point == TCP else Load(calibration.pps(PAPER_KPPS))
    with ExitStack() as stack:
        begin: Callable[[Rig], object] = partial(_activate, on, setpoint)
        if way in QUOTAS:
            stack.enter_context(on.quota())
            quota = quota_of(calibration.fixed_percent(setpoint), QUOTAS[way])
            begin = partial(_write, on, quota)
        held = on.watch(table_of(on, way), begin, load, window)
    return list(measured(run, held, calibration, SETPOINT))


def _activate(on: Stage, setpoint: float, rig: Rig) -> None:
    rig.client.call(Activate(on.name, setpoint))


def _write(on: Stage, quota: Quota, rig: Rig) -> None:
    """Write a quota with a period of its own, which the daemon's actuator would choose itself."""
    del rig
    group = open_group(str(on.router.cgroup))
    assert group is not None
    group.write(group.read(), quota)


EXPERIMENT: Final = Experiment(
    name="xtc-actuators",
    paper="XTC",
    title="Loss and round trip of a probe by actuator and scheduling period",
    figures="Fig. 7",
    metrics=(Metric(RMSE, "lower"), Metric(LOSS, "lower"), Metric(RTT, "lower")),
    cells=tuple(Cell(way, point, 9.5) for point, ways in WAYS_OF.items() for way in ways),
    quick_cells=tuple(
        Cell(way, UDP, 9.0) for way in ("quota, 30 ms", OURS_QUOTA, "deadline, 30 ms")
    ),
    bench=bench,
    published=dict.fromkeys([(way, UDP, RTT) for way in WAYS], PAPER_RTT_MS),
    calibrated=True,
    method=f"{WINDOW}",
)
