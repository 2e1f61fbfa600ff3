"""Fairness between a router with one TCP flow and one with several (Fig. 18).

As in the paper, each router's setpoint is half of the uncontrolled aggregate, which is measured
before and after each turn.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.plan import Cell, Experiment, Measure, Metric, Run
from benchmarks.evaluation.result import Value
from benchmarks.evaluation.xtc.shared import SharedHost, Turn, shared_host, turns_on
from benchmarks.evaluation.xtc.stage import DEAD_BEAT, FIXED, NONE, OURS, RISING_S, Window

FIRST_PORT: Final = 5001
MIN_MAX: Final = "min-max ratio"
AGGREGATE: Final = "aggregate, % of no control"
LARGEST: Final = "8 flows to 1"
FLOWS: Final = {"2 flows to 1": 2, "4 flows to 1": 4, LARGEST: 8}
WAYS: Final = {**dict.fromkeys(FLOWS, (OURS,)), LARGEST: (FIXED, DEAD_BEAT, OURS)}
"""By ratio: others only at the largest, for lack of time."""
SECONDS: Final = {**dict.fromkeys(FLOWS, 28.0), LARGEST: 66.0}
WINDOW: Final = Window(4, 5)
QUICK_WINDOW: Final = Window(2, 3)


def values_of(way: str, point: str, turn: Turn) -> Iterator[Value]:
    """Yield the metrics of one way."""
    rates = turn.pps.values()
    yield Value(way, point, MIN_MAX, min(rates) / max(rates))
    yield Value(way, point, AGGREGATE, turn.aggregate_percent)


@contextmanager
def bench(calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
    """Open the host with two routers."""
    assert calibration is not None
    window = QUICK_WINDOW if quick else WINDOW
    with shared_host(calibration, "xtcevalfair", routers=2) as host:
        yield lambda run: list(_measure(host, run, window))


def _measure(host: SharedHost, run: Run, window: Window) -> Iterator[Value]:
    point = run.cell.point
    one, several = host.routers
    with ExitStack() as stack:
        stack.callback(one.tcp().stop)
        for number in range(FLOWS[point]):
            stack.callback(several.tcp(port=FIRST_PORT + number).stop)
        turns = turns_on(host, window)
        yield from values_of(NONE, point, turns.free)
        for way in WAYS[point]:
            yield from values_of(way, point, turns.make(way, _halves))


def _halves(aggregate: float) -> dict[str, float]:
    return dict.fromkeys(("vr1", "vr2"), aggregate / 2)


EXPERIMENT: Final = Experiment(
    name="xtc-fairness",
    paper="XTC",
    title="Two routers, one TCP flow against several: fairness and its cost",
    figures="Fig. 18",
    metrics=(Metric(MIN_MAX, "higher"), Metric(AGGREGATE, "higher")),
    cells=tuple(Cell("all ways", point, seconds) for point, seconds in SECONDS.items()),
    quick_cells=(Cell("all ways", LARGEST, 48.0),),
    bench=bench,
    published={},
    calibrated=True,
    method=f"{WINDOW}, the paper's law from the fixed cap on, with {RISING_S} s more",
)
