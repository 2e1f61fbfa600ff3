"""Setpoint against achieved throughput, scatter, probe loss and round trip (Fig. 5 to 14).

One run holds one router at one setpoint, so that all these metrics are of the same seconds. Rates
are in the paper's kp/s.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.evaluation.calibration import PAPER_KPPS, Calibration
from benchmarks.evaluation.plan import Cell, Experiment, Measure, Metric, Run
from benchmarks.evaluation.result import Result, Value
from benchmarks.evaluation.xtc.operating_range import SMALLEST, ranges
from benchmarks.evaluation.xtc.stage import (
    CONTROLLED,
    DEAD_BEAT,
    FIXED,
    NONE,
    OURS,
    OURS_BURST,
    OURS_CAP,
    PI,
    Held,
    Load,
    Stage,
    Window,
    stage,
)
from benchmarks.figures import mean, relative_rmse

ACHIEVED: Final = "achieved, kp/s"
ERROR: Final = "error of the mean, %"
RMSE: Final = "relative RMSE, %"
LOSS: Final = "probe loss, %"
RTT: Final = "mean round trip, ms"
METRICS: Final = (
    Metric(ACHIEVED),
    Metric(ERROR, "lower"),
    Metric(RMSE, "lower"),
    Metric(LOSS, "lower"),
    Metric(RTT, "lower"),
    Metric(SMALLEST, "lower"),
)
WINDOW: Final = Window(3, 6)
QUICK_WINDOW: Final = Window(4, 4)
RUN_S: Final = 10.6
QUICK_RUN_S: Final = 10.0
THEFT: Final = 0.15
"""The paper's disturbance, of the CPU that the router's cap gives it."""


@dataclass(frozen=True)
class Point:
    """Conditions of a run, in the paper's kp/s."""

    traffic: str
    """UDP, TCP, or UDP next to a thief of CPU."""
    setpoint: float | None
    offered: float = PAPER_KPPS
    """With UDP."""

    @property
    def words(self) -> str:
        """The name of the point."""
        if self.setpoint is None:
            return f"{self.traffic}, no setpoint"
        rate = "" if self.offered == PAPER_KPPS else f" of {self.offered:g} kp/s"
        return f"{self.traffic}{rate}, setpoint {self.setpoint:g} kp/s"


UDP, TCP, THIEF = "UDP", "TCP", "UDP and a thief of CPU"
SETPOINTS: Final[dict[str, tuple[float, ...]]] = {
    UDP: (6, 10, 20, 60),
    TCP: (6, 20, 40),
    THIEF: (50,),
}
LESS_OFFERED: Final = tuple(Point(UDP, 20, offered) for offered in (30,))
_ALL_POINTS: Final = (
    *(Point(traffic, one) for traffic, rates in SETPOINTS.items() for one in (None, *rates)),
    *LESS_OFFERED,
)
POINTS: Final = {point.words: point for point in _ALL_POINTS}
OF_OURS: Final = (OURS, OURS_BURST)
RANGE: Final = {PI: {UDP: 20.0, TCP: 20.0}, DEAD_BEAT: {UDP: 10.0, TCP: 6.0}}
"""The smallest setpoint that the paper's laws hold, in kp/s (sections 7.1 and 7.2.3)."""


def _cells(traffic: str, ways: Sequence[str], seconds: float) -> list[Cell]:
    free = [Cell(NONE, Point(traffic, None).words, seconds)] if traffic != THIEF else []
    points = [Point(traffic, setpoint).words for setpoint in SETPOINTS[traffic]]
    return free + [Cell(way, point, seconds) for point in points for way in ways]


def cells() -> tuple[Cell, ...]:
    """Return the runs of a repetition; ways of a point follow each other."""
    disturbed = (FIXED, DEAD_BEAT, OURS)
    return (
        *_cells(UDP, CONTROLLED, RUN_S),
        *(Cell(way, one.words, RUN_S) for one in LESS_OFFERED for way in (DEAD_BEAT, OURS)),
        *_cells(TCP, (*CONTROLLED, OURS_BURST), RUN_S),
        Cell(OURS_CAP, Point(TCP, 20).words, RUN_S),
        *_cells(THIEF, disturbed, RUN_S),
    )


def quick_cells() -> tuple[Cell, ...]:
    """Return one setpoint of each traffic, in few ways."""
    return tuple(
        Cell(way, Point(traffic, setpoint).words, QUICK_RUN_S)
        for traffic, setpoint, ways in (
            (UDP, 20, (FIXED, DEAD_BEAT, OURS)),
            (TCP, 20, (DEAD_BEAT, OURS)),
            (THIEF, 50, (FIXED, OURS)),
        )
        for way in ways
    )


def published() -> dict[tuple[str, str, str], float]:
    """Return the paper's numbers: TCP without a setpoint, and the round trip at 20 kp/s."""
    at_20 = Point(UDP, 20).words
    return {
        (NONE, Point(TCP, None).words, ACHIEVED): 60.0,
        **{(way, at_20, RTT): 55.0 for way in (PI, DEAD_BEAT, OURS)},
    }


def measured(
    run: Run, held: Held, calibration: Calibration, setpoint: float | None
) -> Iterator[Value]:
    """Yield the metrics of a run; the setpoint is in the paper's kp/s."""
    achieved = calibration.paper_kpps(mean(held.samples))
    found = {ACHIEVED: achieved}
    if setpoint is not None:
        found[ERROR] = abs(achieved / setpoint - 1) * 100
    scatter = relative_rmse(held.samples)
    if math.isfinite(scatter):
        found[RMSE] = scatter * 100
    found[LOSS] = held.probe_loss * 100
    if held.rtt_ms:
        found[RTT] = statistics.fmean(held.rtt_ms)
    for metric, value in found.items():
        yield Value(run.cell.way, run.cell.point, metric, value)


def derived(results: Sequence[Result]) -> Iterator[Result]:
    """Yield the operating ranges."""
    errors = []
    for one in results:
        point = POINTS[one.experiment.partition(": ")[2]]
        whole = point.traffic != THIEF and point.offered == PAPER_KPPS
        if one.metric == ERROR and point.setpoint is not None and whole:
            errors.append((point.traffic, point.setpoint, one))
    numbers = {
        (way, traffic): RANGE.get(way, RANGE[DEAD_BEAT])[traffic]
        for way in (PI, DEAD_BEAT, *OF_OURS)
        for traffic in (UDP, TCP)
    }
    yield from ranges(errors, numbers)


def load_of(point: Point, calibration: Calibration) -> Load:
    """Return what is sent at a point."""
    if point.traffic == TCP:
        return Load(tcp=True)
    flood = calibration.pps(point.offered)
    if point.traffic != THIEF or point.setpoint is None:
        return Load(flood)
    percent = calibration.fixed_percent(calibration.pps(point.setpoint))
    return Load(flood, theft=THEFT * percent / 100)


@contextmanager
def bench(calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
    """Open the router that all runs hold in turn."""
    assert calibration is not None
    with stage(calibration, "xtcevalhold") as on:
        yield lambda run: list(_measure(on, run, calibration, quick=quick))


def _measure(on: Stage, run: Run, calibration: Calibration, *, quick: bool) -> Iterator[Value]:
    point = POINTS[run.cell.point]
    setpoint = calibration.pps(point.setpoint or PAPER_KPPS)
    window = QUICK_WINDOW if quick else WINDOW
    held = on.hold(run.cell.way, setpoint, load_of(point, calibration), window)
    yield from measured(run, held, calibration, point.setpoint)


EXPERIMENT: Final = Experiment(
    name="xtc-hold",
    paper="XTC",
    title="One router at a setpoint: throughput, scatter, probe loss and round trip",
    figures="Fig. 5 to 14",
    metrics=METRICS,
    cells=cells(),
    quick_cells=quick_cells(),
    bench=bench,
    published=published(),
    calibrated=True,
    method=f"{WINDOW}, the paper's laws from the fixed cap on",
    derive=derived,
)
