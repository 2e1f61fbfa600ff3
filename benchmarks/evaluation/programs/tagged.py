"""Ways and metrics of a tagged TCP flow next to others, for SDN-GCC and HyGenICC."""

from collections.abc import Iterator
from typing import Final

from benchmarks.evaluation.plan import Metric
from benchmarks.evaluation.result import Value

NONE: Final = "no control"
ECN: Final = "ECN in TCP"
PUBLISHED: Final = "as published"
OURS: Final = "ours"
TAGGED: Final = "tagged flow, % of its equal share"
MISSED: Final = "distance from its equal share, %"
"""More than the equal share is at the expense of others."""
JAIN: Final = "Jain's index of all senders"
METRICS: Final = (Metric(TAGGED), Metric(MISSED, "lower"), Metric(JAIN, "higher"))


def tagged(way: str, point: str, of_ideal: float) -> Iterator[Value]:
    """Yield both values of a tagged flow, from its part of the equal share."""
    yield Value(way, point, TAGGED, of_ideal * 100)
    yield Value(way, point, MISSED, abs(of_ideal - 1) * 100)


def published(way: str, point: str, of_ideal: float) -> dict[tuple[str, str, str], float]:
    """Return both values of the paper."""
    return {(one.way, one.point, one.metric): one.value for one in tagged(way, point, of_ideal)}
