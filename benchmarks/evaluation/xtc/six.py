"""Differentiation among six routers with a TCP flow each, and their round trips (Fig. 15, 16).

One run has both configurations in each way. As in the paper, the setpoints of a configuration add
up to the uncontrolled aggregate, which is measured before and after each turn.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.plan import Cell, Experiment, Measure, Metric
from benchmarks.evaluation.result import Value
from benchmarks.evaluation.xtc.shared import SharedHost, Turn, shared_host, turns_on
from benchmarks.evaluation.xtc.stage import DEAD_BEAT, FIXED, NONE, OURS, RISING_S, Window

CONFIGURATIONS: Final = {
    "configuration A": (28.0, 10.0, 10.0, 10.0, 10.0, 10.0),
    "configuration B": (22.0, 18.0, 14.0, 8.0, 8.0, 8.0),
}
"""The paper's setpoints in kp/s, which add up to its uncontrolled 78 kp/s."""
QUICK_CONFIGURATIONS: Final = ("configuration A",)
UNCONTROLLED_KPPS: Final = 77.97
PAPER_KPPS: Final = {"configuration A": 74.96, "configuration B": 75.49}
PAPER_RTT_MS: Final = 70.0
AGGREGATE: Final = "aggregate, % of no control"
MISSED: Final = "largest error of a router, %"
RTT: Final = "longest mean round trip, ms"
WAYS: Final = {
    "configuration A": (FIXED, DEAD_BEAT, OURS),
    "configuration B": (DEAD_BEAT, OURS),
}
"""By configuration; the paper's PI takes longer to rise than a turn lasts."""
WINDOW: Final = Window(4, 5)
QUICK_WINDOW: Final = Window(2, 3)


def setpoints_of(configuration: str, aggregate: float) -> dict[str, float]:
    """Return the setpoints of the routers for an uncontrolled aggregate, in its unit."""
    parts = CONFIGURATIONS[configuration]
    return {f"vr{n}": part / sum(parts) * aggregate for n, part in enumerate(parts, start=1)}


def values_of(way: str, point: str, turn: Turn) -> Iterator[Value]:
    """Yield the metrics of one way."""
    errors = [abs(turn.pps[name] / rate - 1) for name, rate in turn.setpoints.items()]
    found = {AGGREGATE: turn.aggregate_percent}
    if errors:
        found[MISSED] = max(errors) * 100
    if turn.rtt_ms:
        found[RTT] = max(turn.rtt_ms.values())
    for metric, value in found.items():
        yield Value(way, point, metric, value)


@contextmanager
def bench(calibration: Calibration | None, quick: bool) -> Iterator[Measure]:
    """Open the host with six routers and their flows."""
    assert calibration is not None
    window = QUICK_WINDOW if quick else WINDOW
    points = QUICK_CONFIGURATIONS if quick else tuple(CONFIGURATIONS)
    with shared_host(calibration, "xtcevalsix", routers=6) as host:
        for router in host.routers:
            router.tcp()
        yield lambda _run: list(_measure(host, points, window))


def _measure(host: SharedHost, points: Sequence[str], window: Window) -> Iterator[Value]:
    turns = turns_on(host, window)
    for point in points:
        yield from values_of(NONE, point, turns.free)
        for way in WAYS[point]:
            yield from values_of(way, point, turns.make(way, partial(setpoints_of, point)))


def published() -> dict[tuple[str, str, str], float]:
    """Return Table 2 as parts of the uncontrolled aggregate, and the longest of Fig. 16."""
    found = {}
    for point, kpps in PAPER_KPPS.items():
        for way in WAYS[point]:
            found[way, point, AGGREGATE] = kpps / UNCONTROLLED_KPPS * 100
            found[way, point, RTT] = PAPER_RTT_MS
    return found


EXPERIMENT: Final = Experiment(
    name="xtc-six",
    paper="XTC",
    title="Six routers with a TCP flow each: aggregate, setpoints and round trips",
    figures="Fig. 15 and 16, Table 2",
    metrics=(Metric(AGGREGATE, "higher"), Metric(MISSED, "lower"), Metric(RTT, "lower")),
    cells=(Cell("all ways", "", 102.0),),
    quick_cells=(Cell("all ways", "", 50.0),),
    bench=bench,
    published=published(),
    calibrated=True,
    method=f"{WINDOW}, the paper's law from the fixed cap on, with {RISING_S} s more",
)
