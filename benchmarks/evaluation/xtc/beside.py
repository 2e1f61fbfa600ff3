"""A TCP router next to a flooded one on one Dom0 core: `benchmarks.policer.sharing` (Fig. 17)."""

from collections.abc import Iterator
from typing import Any, Final

from benchmarks.evaluation.plan import Experiment, Metric
from benchmarks.evaluation.programs.program import Program, kept
from benchmarks.evaluation.result import Value
from benchmarks.policer.sharing import WAYS

POINT: Final = "TCP next to UDP"
AGGREGATE: Final = "aggregate, % of no control"
TCP: Final = "TCP router, % of its setpoint"
NAMES: Final = dict(
    zip(
        WAYS,
        ("no control", "our law, cap alone", "our law and the policer's limiter", "ours"),
        strict=True,
    )
)
PAPER_AGGREGATE: Final = 68.0
"""From 100 to 68 kp/s (section 7.3)."""
PAPER_TCP: Final = 60.0
"""48 of 80 kp/s: the aggregate without the 20 of UDP."""


def values(found: Any) -> Iterator[Value]:
    """Yield aggregates and the TCP router's share of its setpoint."""
    aggregates = found["aggregate_of_uncontrolled"]
    reached = found["throughput_of_setpoint"]
    for way, name in NAMES.items():
        yield from kept([(name, POINT, AGGREGATE, 100 * aggregates[way])])
        if way in reached:
            yield from kept([(name, POINT, TCP, 100 * reached[way]["tcp"])])


PROGRAM: Final = Program(
    "policer.sharing",
    "--rounds 1 --seconds 5 --settle 4",
    "--rounds 1 --seconds 2 --settle 2",
    values,
)
EXPERIMENT: Final = Experiment(
    name="xtc-beside",
    paper="XTC",
    title="A TCP router next to a UDP flood, without and with the limiter",
    figures="Fig. 17",
    metrics=(Metric(AGGREGATE, "higher"), Metric(TCP, "higher")),
    cells=PROGRAM.cells(92.0),
    quick_cells=PROGRAM.cells(55.0),
    bench=PROGRAM.bench,
    method=PROGRAM.method,
    published={(NAMES[way], POINT, AGGREGATE): PAPER_AGGREGATE for way in WAYS[1:]}
    | {(NAMES[way], POINT, TCP): PAPER_TCP for way in WAYS[1:]},
)
