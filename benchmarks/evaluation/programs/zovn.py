"""The experiment of the zOVN paper: query completion with partition and aggregate."""

from collections.abc import Iterator
from typing import Any, Final

from benchmarks.evaluation.plan import Experiment, Metric
from benchmarks.evaluation.programs.program import Program, kept
from benchmarks.evaluation.result import Value

MEAN: Final = "mean completion, ms"
P99: Final = "p99 of completion, ms"
DROPS: Final = "frames dropped for each query"
WAYS: Final = {"bridge": "bridge, drops at a full queue"}
"""In the words of the report; other ways keep their names."""


def values(found: Any) -> Iterator[Value]:
    """Yield the values of all points; one without completed queries has no times."""
    for row in found:
        way = WAYS.get(row["mode"], f"ours, {row['mode']}")
        point = f"{row['workers']} workers, {row['size_bytes'] / 1e3:g} KB"
        drops = row["dropped"] / max(1, row["queries"])
        yield from kept(
            [
                (way, point, MEAN, row["mean_ms"]),
                (way, point, P99, row["p99_ms"]),
                (way, point, DROPS, drops),
            ]
        )


PROGRAM: Final = Program(
    "zovn.partition_aggregate",
    "--workers 8 --sizes 2KB,48KB --queue 64 --queries 50 --rounds 1 --limit 5",
    "--quick",
    values,
)
EXPERIMENT: Final = Experiment(
    name="zovn-fct",
    paper="zOVN",
    title="Completion of queries to many workers at once",
    figures="Testbed 1, scaled",
    metrics=(Metric(MEAN, "lower"), Metric(P99, "lower"), Metric(DROPS, "lower")),
    cells=PROGRAM.cells(25.0),
    quick_cells=PROGRAM.cells(25.0),
    bench=PROGRAM.bench,
    published={},
)
