"""One router on emulated Xen with the paper's scheduler (credit): `xtc-hold` in small.

`make evaluation-xen` makes the runs, because the emulator belongs to the tests. Here are the plan,
the task of the emulated Dom0 (tests/system/xen/dom0/laws.py), and the values of its samples. Rates
are in the paper's kp/s, of which 100 correspond to the packets/s that are offered here.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.evaluation.calibration import (
    PAPER_KPPS,
    SHARE_OF_TOP,
    Calibration,
    Step,
    fit,
    rising,
)
from benchmarks.evaluation.plan import Cell, Experiment, Metric, Run, elsewhere
from benchmarks.evaluation.result import Value
from benchmarks.evaluation.xtc import hold
from benchmarks.evaluation.xtc.calibrate import THRESHOLD, alternating
from benchmarks.evaluation.xtc.hold import ACHIEVED, ERROR, LOSS, RMSE, THEFT, THIEF, UDP, Point
from benchmarks.evaluation.xtc.stage import (
    CONTROLLED,
    DEAD_BEAT,
    FIXED,
    LAWS,
    NONE,
    OURS,
    Held,
    Window,
)

OFFERED_PPS: Final = 150.0
"""What the paper's 100 kp/s correspond to: an uncapped guest forwards about 200 in emulation."""
PERIOD_S: Final = 2.0
"""Of the daemon: an emulated Dom0 is late at the paper's 1 s, and Xen's slices are 30 ms."""
CAPS: Final = (3, 5, 10, 20, 30, 45, 60)
"""Percent of one CPU, for the map of caps and for Eq. 1."""
SAMPLES_A_CAP: Final = 4
WINDOW: Final = Window(5, 6)
"""Samples of a run, as many as those of `xtc-hold`."""
RUN_S: Final = 31.0
"""Two seconds for each sample, and nine to begin again: release, load a law, see the first cap."""
BOOTS_S: Final = 480.0
"""Two boots of Xen, each with a map of caps."""
MODEL: Final = "/job/model.toml"
"""Path in the emulated Dom0."""
TARGET: Final = "`make evaluation-xen`"

SETPOINTS: Final[dict[str, tuple[float, ...]]] = {UDP: (10, 20, 60), THIEF: (20, 60)}
WAYS: Final = {UDP: CONTROLLED, THIEF: (FIXED, DEAD_BEAT, OURS)}
FREE: Final = Point(UDP, None)
POINTS: Final = {
    point.words: point
    for point in (FREE, *(Point(load, pps) for load, rates in SETPOINTS.items() for pps in rates))
}


@dataclass(frozen=True)
class Order:
    """One run, as the emulated Dom0 has to make it."""

    name: str
    setpoint_pps: float | None
    begin_percent: int | None
    """The cap to begin with: 0 is none, None is the fixed cap that the map has for the setpoint."""
    law: str
    """The law that holds the router; empty if a fixed cap does, or nothing."""
    table: str
    """Lines of the router's table."""
    theft: float
    """What the thief takes, as a share of the fixed cap."""


def cells() -> tuple[Cell, ...]:
    """Return the runs of a repetition; ways of a point follow each other."""
    return (
        Cell(NONE, FREE.words, RUN_S),
        *(
            Cell(way, Point(load, setpoint).words, RUN_S)
            for load, setpoints in SETPOINTS.items()
            for setpoint in setpoints
            for way in WAYS[load]
        ),
    )


def quick_cells() -> tuple[Cell, ...]:
    """Return one setpoint of each load, in few ways."""
    ways = {Point(UDP, 20): (FIXED, DEAD_BEAT, OURS), Point(THIEF, 60): (FIXED, OURS)}
    return tuple(Cell(way, point.words, RUN_S) for point, used in ways.items() for way in used)


def order(run: Run) -> Order:
    """Return the order for a run."""
    way, point = run.cell.way, POINTS[run.cell.point]
    law = LAWS.get(way, "default" if way == OURS else "")
    setpoint = point.setpoint
    return Order(
        name=run.words,
        setpoint_pps=None if setpoint is None else setpoint * OFFERED_PPS / PAPER_KPPS,
        begin_percent=None if way == FIXED or way in LAWS else 0,
        law=law,
        table=f'law = "{law}"\nmodel = "{MODEL}"\nshield = false\n' if way in LAWS else "",
        theft=THEFT if point.traffic == THIEF else 0.0,
    )


def task(runs: Sequence[Run]) -> dict[str, object]:
    """Return the task of the emulated Dom0: the map of caps, then these runs in their order."""
    return {
        "offered_pps": OFFERED_PPS,
        "period_s": PERIOD_S,
        "caps_percent": alternating(CAPS),
        "samples_a_cap": SAMPLES_A_CAP,
        "settle": WINDOW.settle,
        "counted": WINDOW.counted,
        "runs": [asdict(order(run)) for run in runs],
    }


def calibration(steps: Sequence[tuple[float, Sequence[float]]]) -> Calibration:
    """Return the calibration of the emulated host: caps in percent, with samples in packets/s.

    Raises:
        ValueError: Eq. 1 cannot be fitted.
    """
    samples = [Step(percent, pps / 1e3) for percent, rates in steps for pps in rates]
    points = [(percent, statistics.fmean(rates)) for percent, rates in steps]
    return Calibration(OFFERED_PPS / SHARE_OF_TOP, rising(points), fit(samples, THRESHOLD))


def measured(run: Run, pps: Sequence[float], known: Calibration) -> Iterator[Value]:
    """Yield the metrics of a run from its samples of throughput; there is no probe."""
    held = Held(list(enumerate(pps)), 0, 0, ())
    values = hold.measured(run, held, known, POINTS[run.cell.point].setpoint)
    yield from (one for one in values if one.metric != LOSS)


EXPERIMENT: Final = Experiment(
    name="xen-hold",
    paper="XTC",
    title="One router on emulated Xen (credit): throughput and scatter, with a thief of CPU too",
    figures="Fig. 5 to 14, in small and emulated",
    metrics=(Metric(ACHIEVED), Metric(ERROR, "lower"), Metric(RMSE, "lower")),
    cells=cells(),
    quick_cells=quick_cells(),
    bench=elsewhere,
    published={},
    made_by=TARGET,
)
