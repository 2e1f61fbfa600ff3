"""Summary of the lab's runs of SDN-GCC: medians of the repetitions, with the least and the most."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

from benchmarks.xco.phases import Others
from benchmarks.xco.phases_judged import Figures


@dataclass(frozen=True)
class Case:
    """Who sends beside the tagged flow."""

    beside: int
    """Elephants beside the tagged one."""
    others: Others
    foreign: float
    """Share of the port that a foreign sender offers in the second phase."""
    mice: bool
    delay_ms: float = 0.0
    """Of feedback: from a host to the controller and back."""

    @property
    def words(self) -> str:
        """What is beside the tagged flow."""
        delay = f", {self.delay_ms:g} ms late" if self.delay_ms else ""
        return f"{self.beside} {self.others}{delay}"


@dataclass(frozen=True)
class Row:
    """One run."""

    case: Case
    way: str
    repetition: int
    figures: Figures


@dataclass(frozen=True)
class Spread:
    """The median of the repetitions, with the least and the most."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Summary:
    """All repetitions of one way in one case; rates are of payload, in Mb/s."""

    case: Case
    way: str
    repetitions: int
    tagged_mbps: Spread
    ideal_mbps: float
    """Median."""
    of_ideal: Spread
    jain: Spread
    used_in_second: Spread
    """Share of the port's rate, of all that passes it."""
    drops_in_second: Spread
    """Packets at the port."""
    marks: Spread
    mice_mean_ms: Spread | None
    """Of the repetitions in which short flows ended; None: in none."""
    mice_p99_ms: Spread | None
    mice_flows: Spread | None


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """Return a summary of each way in each case."""
    keys = dict.fromkeys((row.case, row.way) for row in rows)
    return [_summary(*key, [r.figures for r in rows if (r.case, r.way) == key]) for key in keys]


def _summary(case: Case, way: str, found: Sequence[Figures]) -> Summary:
    mice = [one.mice for one in found if one.mice is not None]
    ended = [one for one in mice if one.mean_ms is not None and one.p99_ms is not None]
    return Summary(
        case=case,
        way=way,
        repetitions=len(found),
        tagged_mbps=spread([one.tagged_mbps for one in found]),
        ideal_mbps=statistics.median(one.ideal_mbps for one in found),
        of_ideal=spread([one.of_ideal for one in found]),
        jain=spread([one.jain for one in found]),
        used_in_second=spread([one.used[1] for one in found]),
        drops_in_second=spread([one.drops_in_second for one in found]),
        marks=spread([one.marks for one in found]),
        mice_mean_ms=spread([one.mean_ms or 0.0 for one in ended]) if ended else None,
        mice_p99_ms=spread([one.p99_ms or 0.0 for one in ended]) if ended else None,
        mice_flows=spread([one.flows for one in mice]) if mice else None,
    )


def spread(values: Sequence[float]) -> Spread:
    """Return the median, the least and the most of some values."""
    return Spread(statistics.median(values), min(values), max(values))


def table(found: Sequence[Summary]) -> Table:
    """Return the summaries as a table."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    mice = any(one.mice_flows for one in found)
    headings = ["tagged Mb/s", "of ideal", "Jain", "used", "drops", "marks"]
    headings += ["mice ms", "p99 ms", "mice"] if mice else []
    for heading in ("beside", "way", *headings):
        justify: Literal["left", "right"] = "left" if heading in {"beside", "way"} else "right"
        shown.add_column(heading, justify=justify, no_wrap=True)
    for one in found:
        flows = (one.mice_mean_ms, one.mice_p99_ms, one.mice_flows) if mice else ()
        shown.add_row(
            one.case.words,
            one.way,
            text(one.tagged_mbps, 1),
            *(text(value, 3) for value in (one.of_ideal, one.jain, one.used_in_second)),
            *(text(value, 0) for value in (one.drops_in_second, one.marks, *flows)),
        )
    return shown


def text(value: Spread | None, digits: int) -> str:
    """Return a median with the least and the most."""
    if value is None:
        return "-"
    median, least, most = (f"{one:.{digits}f}" for one in (value.median, value.least, value.most))
    return median if least == most else f"{median} ({least}-{most})"
