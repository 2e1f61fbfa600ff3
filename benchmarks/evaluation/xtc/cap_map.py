"""The map of caps that the calibration measured, next to the paper's (Table 1).

It has no runs of its own: the calibration measures it once, before any experiment.
"""

from collections.abc import Iterator
from typing import Final

from benchmarks.evaluation.calibration import Calibration
from benchmarks.evaluation.plan import Experiment, Metric, elsewhere
from benchmarks.evaluation.result import Result
from benchmarks.evaluation.xtc.stage import FIXED

RATE: Final = "throughput, kp/s"
PAPER: Final[dict[float, float]] = {
    5: 16.0,
    10: 32.0,
    15: 50.0,
    20: 65.0,
    25: 77.0,
    30: 85.0,
    35: 91.0,
    40: 94.0,
    45: 96.0,
    50: 98.0,
}
"""Cap in percent of one CPU, and kp/s of 64-byte packets, of which 100 kp/s are offered."""


def results(calibration: Calibration | None) -> Iterator[Result]:
    """Yield what the router forwarded under each cap."""
    if calibration is None:
        return
    for percent, pps in calibration.cap_map:
        yield Result(
            paper=EXPERIMENT.paper,
            experiment=f"{EXPERIMENT.name}: cap of {percent:g} %",
            way=FIXED,
            metric=RATE,
            value=calibration.paper_kpps(pps),
            low=None,
            high=None,
            paper_value=PAPER.get(percent),
        )


EXPERIMENT: Final = Experiment(
    name="xtc-map",
    paper="XTC",
    title="Throughput of one flooded router under fixed caps",
    figures="Table 1",
    metrics=(Metric(RATE),),
    cells=(),
    quick_cells=(),
    bench=elsewhere,
    published={},
    made_by="the calibration",
)
