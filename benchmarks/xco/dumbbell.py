"""SDN-GCC and HyGenICC in the simulated dumbbell: the paper's figures 1, 4, 5 and 6, and beyond.

A tagged TCP sender beside others over one port of 1 Gb/s, three phases (section VIII of the paper).
The paper's laws and the fair ones side by side, then what the paper does not show: links shared
with senders without a shim, links slower than stated, and unequal starts. Everything here is
simulated; the model is described in docs/reference/xco-simulate.md.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from xco.simulate.dumbbell.options import Dumbbell
from xco.simulate.dumbbell.run import run_dumbbell
from xco.simulate.dumbbell.senders import Kind

IDEAL_MBPS: Final = {4: 416.0, 8: 375.0, 16: 354.0, 32: 344.0}
"""Of the paper, which does not count headers."""
FIGURES: Final[tuple[tuple[str, dict[str, Any], dict[Kind, float]], ...]] = (
    ("1a", {}, {Kind.TCP: 416, Kind.DCTCP: 319, Kind.UDP: 153}),
    ("1b", {"tagged": Kind.ECN}, {Kind.ECN: 416, Kind.DCTCP: 375, Kind.UDP: 359}),
    ("4a", {"strategy": "hygenicc"}, {Kind.TCP: 406, Kind.DCTCP: 410, Kind.UDP: 410}),
    ("4b", {"strategy": "gcc"}, {Kind.TCP: 407, Kind.DCTCP: 407, Kind.UDP: 405}),
    ("5a", {"strategy": "gcc", "senders": 8}, {Kind.TCP: 374, Kind.DCTCP: 374, Kind.UDP: 366}),
    ("5b", {"strategy": "gcc", "senders": 16}, {Kind.TCP: 342, Kind.DCTCP: 342, Kind.UDP: 337}),
    ("5c", {"strategy": "gcc", "senders": 32}, {Kind.TCP: 347, Kind.DCTCP: 347, Kind.UDP: 336}),
    ("6a", {"strategy": "gcc", "delay_s": 1e-3}, {Kind.TCP: 412, Kind.DCTCP: 412, Kind.UDP: 412}),
    ("6b", {"strategy": "gcc", "delay_s": 1e-2}, {Kind.TCP: 404, Kind.DCTCP: 404, Kind.UDP: 400}),
    ("6c", {"strategy": "gcc", "delay_s": 5e-2}, {Kind.TCP: 373, Kind.DCTCP: 373, Kind.UDP: 347}),
)
"""Figure, options, and the paper's mean goodput of the tagged sender in Mb/s by competitors."""
WAYS: Final[tuple[dict[str, Any], ...]] = (
    {"strategy": "uncoordinated", "mark_at": 1.0},
    {"strategy": "static"},
    {"strategy": "rate", "mark_at": 1.0},
    {"strategy": "gcc", "law": "published"},
    {"strategy": "gcc", "law": "by-bytes"},
    {"strategy": "gcc"},
    {"strategy": "hygenicc", "law": "published"},
    {"strategy": "hygenicc"},
    {"strategy": "hygenicc", "bottleneck": "core"},
)
"""Strategies beside each other; those without a shim at a port that does not mark."""
CASES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("as in the paper", {}),
    ("delay 50 ms", {"delay_s": 0.05}),
    ("30 % foreign", {"foreign": 0.3}),
    ("link 20 % slower than stated", {"believed": 1.25}),
    ("unequal start", {"first_share": 0.9}),
)


@dataclass(frozen=True)
class Row:
    """One run; rates are Mb/s of payload."""

    case: str
    """The paper's figure, or what is special."""
    strategy: str
    law: str | None
    competitors: str
    senders: int
    tagged_mbps: float
    of_ideal: float
    paper_of_ideal: float | None
    jain: float
    used_by_all: float
    """Share of the link in the second phase."""
    lost_in_second: float
    marked: float


def run(task: tuple[str, dict[str, Any], float | None]) -> Row:
    """Run one row."""
    case, given, paper = task
    found = run_dumbbell(Dumbbell(**given))
    core = given.get("bottleneck") == "core"
    return Row(
        case=case,
        strategy=found.strategy,
        law="fair, by marks alone" if core else found.law,
        competitors=found.competitors,
        senders=found.senders,
        tagged_mbps=round(found.tagged_mbps, 1),
        of_ideal=round(found.of_ideal, 4),
        paper_of_ideal=None if paper is None else round(paper, 4),
        jain=round(found.jain, 4),
        used_by_all=round(found.used[1], 4),
        lost_in_second=round(found.lost_in_second),
        marked=round(found.marked, 4),
    )


def tasks(phase_s: float) -> Iterator[tuple[str, dict[str, Any], float | None]]:
    """Return what is run: the paper's figures with each law, then the ways in each case."""
    for figure, options, paper in FIGURES:
        for competitors, value in paper.items():
            laws = ("published", "fair") if "strategy" in options else ("fair",)
            for law in laws:
                given: dict[str, Any] = {"competitors": competitors, "law": law}
                given |= {"phase_s": phase_s} | options
                senders = int(given.get("senders", 4))
                yield f"figure {figure}", given, value / IDEAL_MBPS[senders]
    for case, special in CASES:
        for way in WAYS:
            yield case, {"phase_s": phase_s} | way | special, None


def table(rows: Iterable[Row]) -> Table:
    """Return the rows as a table."""
    shown = Table(box=None, header_style="bold")
    for name in ("case", "strategy", "beside", "tagged Mb/s", "of ideal", "paper"):
        shown.add_column(name)
    for name in ("Jain", "used", "lost", "marked"):
        shown.add_column(name, justify="right")
    for row in rows:
        shown.add_row(
            row.case,
            row.strategy if row.law is None else f"{row.strategy}, {row.law}",
            f"{row.senders - 1} {row.competitors}",
            f"{row.tagged_mbps:.0f}",
            f"{row.of_ideal:.1%}",
            "" if row.paper_of_ideal is None else f"{row.paper_of_ideal:.1%}",
            f"{row.jain:.3f}",
            f"{row.used_by_all:.1%}",
            f"{row.lost_in_second:.0f}",
            f"{row.marked:.1%}",
        )
    return shown


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--phase", type=float, default=10.0, help="seconds of each phase (10)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    chosen = parser.parse_args()
    wanted = list(tasks(chosen.phase))
    console = Console(stderr=True)
    with (
        Progress(console=console, transient=True, disable=not console.is_terminal) as bar,
        ProcessPoolExecutor() as pool,
    ):
        rows = list(bar.track(pool.map(run, wanted), total=len(wanted)))
    if chosen.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    else:
        Console(highlight=False).print(table(rows))


if __name__ == "__main__":
    main()
