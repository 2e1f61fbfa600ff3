"""Ways and metrics of a tagged TCP flow beside others, for SDN-GCC and HyGenICC."""

from typing import Final

from benchmarks.evaluation.plan import Metric

NONE: Final = "no control"
ECN: Final = "ECN in TCP"
PUBLISHED: Final = "as published"
OURS: Final = "ours"
TAGGED: Final = "tagged flow, % of its equal share"
JAIN: Final = "Jain's index of all senders"
METRICS: Final = (Metric(TAGGED, "higher"), Metric(JAIN, "higher"))
