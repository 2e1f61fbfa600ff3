"""The experiments of zOVN: completion of queries with partition and aggregate, and overload."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks.evaluation.plan import Experiment, Metric
from benchmarks.evaluation.programs.program import Program, kept
from benchmarks.evaluation.result import Result, Value

MEAN: Final = "mean completion, ms"
P99: Final = "p99 of completion, ms"
DROPS: Final = "frames dropped for each query"
FASTER: Final = "mean completion of a switch that drops, of ours"
BEST: Final = "zovn-fct: best point"
OURS, LOSSY = "ours", "zovn, drops at a full queue"
WAYS: Final = {"zovn": OURS, "zovn-lossy": LOSSY, "bridge": "bridge, drops at a full queue"}
"""In the words of the report; other ways keep their names."""
OLD_TCP: Final = "no tail loss probes"
"""As TCP was at the time of the paper."""
PAPER_FASTER: Final = 19.1
"""At the paper's best point, testbed 1."""


def values(found: Any) -> Iterator[Value]:
    """Yield the values of all points; one without completed queries has no times."""
    for row in found:
        way = WAYS.get(row["mode"], row["mode"])
        point = f"{row['workers']} workers, {row['size_bytes'] / 1e3:g} KB"
        point += "" if row["tail_probes"] else f", {OLD_TCP}"
        drops = row["dropped"] / max(1, row["queries"])
        times = [(way, point, MEAN, row["mean_ms"]), (way, point, P99, row["p99_ms"])]
        yield from kept([*times, (way, point, DROPS, drops)])


def derived(results: Sequence[Result]) -> Iterator[Result]:
    """Yield how much faster ours is than the same switch with drops, at the best point."""
    means = {(one.experiment, one.way): one for one in results if one.metric == MEAN}
    ratios = [
        means[point, LOSSY].value / one.value
        for (point, way), one in means.items()
        if way == OURS and (point, LOSSY) in means
    ]
    if ratios:
        yield Result("zOVN", BEST, OURS, FASTER, max(ratios), None, None, PAPER_FASTER)


PROGRAM: Final = Program(
    "zovn.partition_aggregate",
    "--workers 32 --sizes 12KB --queue 64 --tail-probes no yes --queries 50 --rounds 1 --limit 4",
    "--quick",
    values,
)
LOST: Final = "frames lost, %"
USED: Final = "use of the receiver, %"
JAIN: Final = "Jain's index of the senders"
SWITCHES: Final = {
    "zovn": OURS,
    "lossy": LOSSY,
    "ovs": "OVS-DPDK",
    "bridge": "bridge, TAPs",
}
"""In the words of the report."""


def overload(found: Any) -> Iterator[Value]:
    """Yield what an overloaded receiver lost and got."""
    for row in found["rows"]:
        way, point = SWITCHES[row["way"]], f"{row['senders']} senders, {row['bytes']} bytes"
        yield Value(way, point, LOST, row["lost_percent"])
        yield Value(way, point, USED, row["used"]["median"] * 100)
        yield Value(way, point, JAIN, row["fairness"]["median"])


OVERLOAD: Final = Program(
    "zovn.overload",
    "--senders 8 --seconds 1 --repetitions 1",
    "--quick --ways zovn lossy",
    overload,
)
FCT: Final = Experiment(
    name="zovn-fct",
    paper="zOVN",
    title="Completion of queries to many workers at the same time",
    figures="Testbed 1, scaled: up to 19.1 times faster",
    metrics=(
        *(Metric(name, "lower") for name in (MEAN, P99, DROPS)),
        Metric(FASTER, "higher"),
    ),
    cells=PROGRAM.cells(29.5),
    quick_cells=PROGRAM.cells(25.0),
    bench=PROGRAM.bench,
    method=PROGRAM.method,
    published={},
    derive=derived,
)
EXPERIMENTS: Final = (
    FCT,
    Experiment(
        name="zovn-overload",
        paper="zOVN",
        title="Eight guests that send to one that takes less",
        figures="Section 3: virtual switches drop what their receivers cannot take",
        metrics=(Metric(LOST, "lower"), Metric(USED, "higher"), Metric(JAIN, "higher")),
        cells=OVERLOAD.cells(30.0),
        quick_cells=OVERLOAD.cells(8.0),
        bench=OVERLOAD.bench,
        method=OVERLOAD.method,
        published={},
    ),
)
