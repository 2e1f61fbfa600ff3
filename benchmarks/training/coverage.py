"""How often the intervals of a fitted curve contain the truth, on simulated hosts of all kinds.

Each host is swept and fitted as `xtc-train` does it. A model that `xtc-train fit` would not write
counts as refused. For the others: how many caps' 95 % intervals contain the true throughput, how
wrong the curve is between the smallest and the largest cap (95th percentile), and how often a
straight line over log(cap) is called wrong. Only on the logarithm is that a false alarm. For all
sweeps with a fit, refused ones included: which shape is named, how often it is the host's own, and
how often lack of fit is reported. Rows with too few models get more sweeps. Shares of sweeps have
95 % intervals (Clopper and Pearson); that of coverage is a bootstrap over sweeps, since all caps of
a sweep share one host.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from common.arguments import whole_number

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from benchmarks.training.coverage_host import Case, SimulatedHost, offered, shape_of, throughput
from training.errors import UnfitError
from training.fit.fit import Fit, fit
from training.fit.verdict import verdict_on
from training.recording.recording import Metadata, Recording
from training.recording.sweep_model import aims_for
from training.sweep.sweep import Sweep, resumed

ENOUGH: Final = 12
"""Models that a row needs; below that it gets more sweeps."""
MORE: Final = 4
"""Maximum factor on the sweeps of such a row."""
LACKS: Final = 0.05
"""Probability below which lack of fit is reported."""
RESAMPLED: Final = 2000
PLACES: Final = 40
"""Caps at which the curve is compared with the truth."""
CASES: Final = (
    *(Case(curve) for curve in ("hinge", "affine hinge", "logarithm", "power law")),
    *(Case(offset=offset) for offset in (-0.05, 0.02, 0.1)),
    Case(offset=0.1, visit_sd=0.05),
    *(Case("power law", power=power) for power in (0.8, 0.95, 1.2)),
    Case("power law", power=0.8, visit_sd=0.05),
    *(Case(lag=lag) for lag in (0.3, 0.6, 0.8)),
    *(Case(delay=delay) for delay in (1, 2, 3)),
    Case(lag=0.6, delay=2),
    Case(lag=0.8, delay=3),
    *(Case("logarithm", noise=noise) for noise in (0.01, 0.1, 0.2)),
    *(Case(noise=noise) for noise in (0.01, 0.1, 0.2)),
    *(Case(visit_sd=sd) for sd in (0.02, 0.05, 0.1)),
    *(Case("logarithm", visit_sd=sd) for sd in (0.02, 0.05)),
    Case("logarithm", drift_sd=0.02),
    Case("logarithm", drift_sd=0.05),
    Case("logarithm", slowdown=0.2),
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
    """Why no model is written; empty if one is."""
    inside: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    no_line: bool = False
    """Whether it reports that the curve is not a straight line over log(cap)."""
    varied: bool = False
    named: tuple[str, ...] = ()
    """The shapes that the host may have, the better one first; empty if none fits."""
    fitted: bool = False
    """Whether there was a fit, and so a search for a shape."""


Range = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """All sweeps of one kind of host."""

    case: Case
    sweeps: int
    refused: int
    refused_interval: Range
    """Of the share refused."""
    caps: int
    """Caps of the models that were written."""
    coverage: float | None
    """Share of caps with an interval that contains the truth; None if no model was written."""
    coverage_interval: Range | None
    error_p95: float | None
    no_line: float | None
    """Of all fits, refused ones included."""
    no_line_interval: Range | None
    fits: int
    varied: float | None
    varied_interval: Range | None
    shape: str
    """The host's own shape, or none."""
    shape_right: int
    """Sweeps that name only it."""
    shape_among: int
    """Sweeps that name it with others."""
    shapes: dict[str, int]
    """Number of sweeps by answer."""
    reasons: list[str]


def judge(case: Case, seed: int) -> Judged:
    """Sweep one host and compare the fit with the truth."""
    host = SimulatedHost(case, seed)
    try:
        found = fit(swept(host))
    except UnfitError as error:
        return Judged(refused=str(error))
    verdict = verdict_on(found)
    judged = _judged(host, found) if verdict.usable else Judged(refused=verdict.reasons[0])
    shapes = found.shapes
    names = (shapes.better, *shapes.alike) if shapes.better else ()
    return replace(
        judged,
        named=names,
        fitted=True,
        no_line=found.eq1.missed.chance <= LACKS,
        varied=found.variation is not None and found.variation.sure,
    )


def swept(host: SimulatedHost) -> Recording:
    """Sweep a host as `xtc-train sweep` does."""
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
    forwarding = [cap for cap in caps if truth(cap) > 0]  # errors are relative there
    return Judged(
        inside=[
            p.throughput_pps.low <= truth(p.cap) <= p.throughput_pps.high for p in found.points
        ],
        errors=[abs(found.curve.throughput(cap) / truth(cap) - 1) for cap in forwarding],
    )


def row_of(case: Case, judged: Sequence[Judged]) -> Row:
    """Return the figures of one kind of host."""
    fits = [one for one in judged if one.fitted]
    written = [one for one in judged if not one.refused]
    inside = [hit for one in written for hit in one.inside]
    errors = sorted(error for one in written for error in one.errors)
    shape = shape_of(case)
    answers = Counter(" or ".join(one.named) or "none" for one in judged if one.fitted)
    return Row(
        case=case,
        sweeps=len(judged),
        refused=len(judged) - len(written),
        refused_interval=binomial(len(judged) - len(written), len(judged)),
        caps=len(inside),
        coverage=_mean(inside),
        coverage_interval=of_sweeps([one.inside for one in written]),
        error_p95=errors[int(0.95 * (len(errors) - 1))] if errors else None,
        no_line=_mean([one.no_line for one in fits]),
        no_line_interval=_interval([one.no_line for one in fits]),
        fits=len(fits),
        varied=_mean([one.varied for one in fits]),
        varied_interval=_interval([one.varied for one in fits]),
        shape=shape,
        shape_right=answers[shape],
        shape_among=sum(shape in one.named and len(one.named) > 1 for one in judged),
        shapes=dict(answers.most_common()),
        reasons=sorted({one.refused for one in judged if one.refused})[:3],
    )


def _mean(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _interval(values: Sequence[bool]) -> Range | None:
    return binomial(sum(values), len(values)) if values else None


def binomial(hits: int, count: int) -> Range:
    """Return the 95 % interval of a share (Clopper and Pearson)."""
    found = stats.binomtest(hits, count).proportion_ci(0.95, "exact")
    return float(found.low), float(found.high)


def of_sweeps(inside: Sequence[Sequence[bool]]) -> Range | None:
    """Return the 95 % interval of the share of caps, as a bootstrap over whole sweeps.

    If every cap of every sweep is inside, it is the binomial one of as many sweeps.
    """
    if not inside:
        return None
    hits, caps = np.array([sum(one) for one in inside]), np.array([len(one) for one in inside])
    if hits.sum() == caps.sum():
        return binomial(len(inside), len(inside))
    chosen = np.random.default_rng(0).integers(len(inside), size=(RESAMPLED, len(inside)))
    shares = hits[chosen].sum(axis=1) / caps[chosen].sum(axis=1)
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)


def measured(case: Case, sweeps: int, pool: ProcessPoolExecutor) -> Row:
    """Sweep hosts of one kind; continue if few sweeps, but some, give a model."""
    judged = list(pool.map(partial(judge, case), range(sweeps), chunksize=4))
    if 0 < sum(not one.refused for one in judged) < ENOUGH:
        more = range(sweeps, MORE * sweeps)
        judged += pool.map(partial(judge, case), more, chunksize=4)
    return row_of(case, judged)


def words_of(case: Case) -> str:
    """Describe the differences from the first case."""
    usual = Case()
    unlike = {name: value for name, value in asdict(case).items() if value != getattr(usual, name)}
    return ", ".join(f"{name} {value}" for name, value in unlike.items()) or "hinge, noise 0.03"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=whole_number(1), default=60, help="of each kind of host")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with ProcessPoolExecutor() as pool:
        for number, case in enumerate(CASES, start=1):
            rows.append(measured(case, options.sweeps, pool))
            print(f"{number} of {len(CASES)}: {words_of(case)}", file=sys.stderr)
    if options.json:
        print(json.dumps([_plain(row) for row in rows], indent=1))
    else:
        _print(rows)


def _plain(row: Row) -> dict[str, object]:
    """Return a row for JSON, which has no infinity."""
    found = asdict(row)
    loaded = found["case"]["loaded"]
    found["case"]["loaded"] = loaded if loaded != float("inf") else None
    return found


def _print(rows: Sequence[Row]) -> None:
    table = Table(box=None, header_style="bold")
    table.add_column("host")
    for heading in ("refused", "coverage", "error p95", "no line", "varies", "shape"):
        table.add_column(heading, justify="right")
    for row in rows:
        shares = (row.coverage, row.error_p95, row.no_line, row.varied)
        cells = ["-" if share is None else f"{share * 100:.1f}%" for share in shares]
        named = f"{row.shape_right}+{row.shape_among} of {sum(row.shapes.values())}"
        table.add_row(words_of(row.case), f"{row.refused} of {row.sweeps}", *cells, named)
    Console(highlight=False, width=100).print(table)


if __name__ == "__main__":
    main()
