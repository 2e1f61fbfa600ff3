"""How often the intervals of a fitted curve hold the truth, on simulated hosts of all kinds.

Each host is swept and fitted as `xtc-train` does it. A model that `xtc-train fit` would not write
counts as refused. Of the others: how many caps' 95 % intervals hold the true throughput, how wrong
the curve is between the smallest and the largest cap (95th percentile), and how often a straight
line over log(cap) is called wrong. Only on the logarithm is that a false alarm.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console
from rich.table import Table

from benchmarks.coverage_host import Case, SimulatedHost, offered, throughput
from training.data import Metadata, Recording
from training.errors import UnfitError
from training.fit import Fit, fit
from training.known import aims_for
from training.sweep import Sweep, resumed
from training.verdict import verdict_on

PLACES: Final = 40
"""Caps at which the curve is compared with the truth."""
CASES: Final = (
    *(Case(curve) for curve in ("hinge", "affine hinge", "logarithm", "power law")),
    *(Case(lag=lag) for lag in (0.3, 0.6, 0.8)),
    *(Case(delay=delay) for delay in (1, 2, 3)),
    Case(lag=0.6, delay=2),
    Case(lag=0.8, delay=3),
    *(Case("logarithm", noise=noise) for noise in (0.01, 0.1, 0.2)),
    *(Case(noise=noise) for noise in (0.01, 0.1, 0.2)),
    *(Case(visit_sd=sd) for sd in (0.02, 0.05, 0.1)),
    *(Case("logarithm", visit_sd=sd) for sd in (0.02, 0.05)),
    Case("power law", lag=0.6, visit_sd=0.03),
    Case(drift_sd=0.05),
    Case(slowdown=0.2),
    Case(outliers=0.02),
    Case(loaded=0.5),
    Case(vcpus=2),
    Case(vcpus=4),
    Case(samples=60),
    Case(samples=120, lag=0.6),
    Case(samples=900, visit_sd=0.05),
    Case("logarithm", samples=900, visit_sd=0.05),
    Case(samples=900, noise=0.2),
    Case(samples=900, drift_sd=0.05),
)


@dataclass(frozen=True)
class Judged:
    """One sweep."""

    refused: str = ""
    """Why no model is written; nothing where one is."""
    inside: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    no_line: bool = False
    """Whether it says that the curve is no straight line over log(cap)."""
    wandered: bool = False


@dataclass(frozen=True)
class Row:
    """All sweeps of one kind of host."""

    case: Case
    sweeps: int
    refused: int
    coverage: float | None
    """Share of caps whose interval holds the truth; None where no model was written."""
    error_p95: float | None
    no_line: float | None
    wandered: float | None
    reasons: list[str]


def judge(case: Case, seed: int) -> Judged:
    """Sweep one host and compare what was fitted with the truth."""
    host = SimulatedHost(case, seed)
    try:
        found = fit(swept(host))
    except UnfitError as error:
        return Judged(refused=str(error))
    verdict = verdict_on(found)
    return _judged(host, found) if verdict.usable else Judged(refused=verdict.reasons[0])


def swept(host: SimulatedHost) -> Recording:
    """Sweep a host as `xtc-train sweep` does it."""
    case = host.case
    with tempfile.TemporaryDirectory(prefix="xtc-coverage-") as folder:
        path = Path(folder) / "sweep.csv"
        begun = resumed(Metadata(host="simulated", offered_pps=offered(case)), path)
        return Sweep(host, begun, path, aims_for(case.samples), lambda _: None).run()


def _judged(host: SimulatedHost, found: Fit) -> Judged:
    def truth(cap: float) -> float:
        return min(throughput(host.case, cap) * host.mean_speed(), offered(host.case))

    low, high = found.points[0].cap, found.points[-1].cap
    caps = [low * (high / low) ** (n / (PLACES - 1)) for n in range(PLACES)]
    wander = found.wander
    return Judged(
        inside=[
            p.throughput_pps.low <= truth(p.cap) <= p.throughput_pps.high for p in found.points
        ],
        errors=[abs(found.curve.throughput(cap) / truth(cap) - 1) for cap in caps],
        no_line=found.eq1.missed.chance <= 0.05,
        wandered=wander is not None and wander.sure,
    )


def row_of(case: Case, judged: Sequence[Judged]) -> Row:
    """Return the figures of one kind of host."""
    written = [one for one in judged if not one.refused]
    inside = [hit for one in written for hit in one.inside]
    errors = sorted(error for one in written for error in one.errors)
    return Row(
        case=case,
        sweeps=len(judged),
        refused=len(judged) - len(written),
        coverage=_mean(inside),
        error_p95=errors[int(0.95 * (len(errors) - 1))] if errors else None,
        no_line=_mean([one.no_line for one in written]),
        wandered=_mean([one.wandered for one in written]),
        reasons=sorted({one.refused for one in judged if one.refused})[:3],
    )


def _mean(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def words_of(case: Case) -> str:
    """Return what is unlike the first case, for people."""
    usual = Case()
    unlike = {name: value for name, value in asdict(case).items() if value != getattr(usual, name)}
    return ", ".join(f"{name} {value}" for name, value in unlike.items()) or "hinge, noise 0.03"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=60, help="of each kind of host")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with ProcessPoolExecutor() as pool:
        for number, case in enumerate(CASES, start=1):
            judged = list(pool.map(partial(judge, case), range(options.sweeps), chunksize=4))
            rows.append(row_of(case, judged))
            print(f"{number} of {len(CASES)}: {words_of(case)}", file=sys.stderr)
    if options.json:
        print(json.dumps([_plain(row) for row in rows], indent=1))
    else:
        _print(rows)


def _plain(row: Row) -> dict[str, object]:
    """Return a row as JSON takes it, which knows no infinity."""
    found = asdict(row)
    loaded = found["case"]["loaded"]
    found["case"]["loaded"] = loaded if loaded != float("inf") else None
    return found


def _print(rows: Sequence[Row]) -> None:
    table = Table(box=None, header_style="bold")
    table.add_column("host")
    for heading in ("refused", "coverage", "error p95", "no line", "wanders"):
        table.add_column(heading, justify="right")
    for row in rows:
        shares = (row.coverage, row.error_p95, row.no_line, row.wandered)
        cells = ["-" if share is None else f"{share * 100:.1f}%" for share in shares]
        table.add_row(words_of(row.case), f"{row.refused} of {row.sweeps}", *cells)
    Console(highlight=False, width=100).print(table)


if __name__ == "__main__":
    main()
