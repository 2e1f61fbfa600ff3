"""How often compare and transfer are right, on pairs of simulated hosts.

Each pair is swept as `xtc-train` does it: B is the same kind of host as A, as fast or faster, or
one with another curve. For the comparisons: how often the 95 % interval of the common ratio
contains the truth, and the conclusions. For the transfers, three caps in a minute: how many are
refused, how often the factor's interval contains the truth, and how wrong the transferred curve is
(95th percentile and worst, from the smallest cap of the known curve to its largest).
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

from benchmarks.training.coverage import PLACES, swept
from benchmarks.training.coverage_host import Case, SimulatedHost, offered, throughput
from training.compare.known_curve import Known, known_from_model, known_from_sweep
from training.compare.likeness import likeness_of
from training.compare.ratio import Ratio, ratio_of_fits
from training.compare.scaled import scaled_curve
from training.compare.transfer import Transfer, transfer_of
from training.errors import UnfitError
from training.fit.fit import fit
from training.recording.recording import Metadata, Recording
from training.recording.sweep_model import aims_for_caps
from training.sweep.sweep import Sweep, resumed

OTHERS: Final = 100_000
"""Offset of B's seeds from those of A."""
CAPS: Final = (0.2, 0.4, 0.6)
SHORT: Final = 60
"""Samples of a few caps."""
USUAL: Final = Case()
UNSTEADY: Final = Case(visit_sd=0.03)


@dataclass(frozen=True)
class Pair:
    """Two kinds of hosts."""

    name: str
    a: Case
    b: Case

    @property
    def ratio(self) -> float | None:
        """The true ratio at every cap; None if there is none."""
        return self.b.speed if self.a.curve == self.b.curve else None


KINDS: Final = (
    ("hinge", USUAL),
    ("hinge, visit_sd 0.03", UNSTEADY),
    ("logarithm", replace(USUAL, curve="logarithm")),
    ("logarithm, visit_sd 0.03", replace(UNSTEADY, curve="logarithm")),
)
PAIRS: Final = (
    *(Pair(f"{name}, ratio 1", case, case) for name, case in KINDS),
    *(Pair(f"{name}, ratio 1.2", case, replace(case, speed=1.2)) for name, case in KINDS),
    Pair("hinge and logarithm", USUAL, replace(USUAL, curve="logarithm")),
    Pair("the same, visit_sd 0.03", UNSTEADY, replace(UNSTEADY, curve="logarithm")),
)


@dataclass(frozen=True)
class Judged:
    """One pair of hosts."""

    verdict: str = ""
    inside: bool | None = None
    refused: str = ""
    """Why the transfer was refused."""
    factor_inside: bool | None = None
    errors: list[float] = field(default_factory=list)


def judge(pair: Pair, *, from_model: bool, seed: int) -> Judged:
    """Compare and transfer one pair."""
    a, b = swept(SimulatedHost(pair.a, seed)), swept(SimulatedHost(pair.b, OTHERS + seed))
    try:
        ratio = ratio_of_fits((a, fit(a)), (b, fit(b)))
    except UnfitError as error:
        return Judged(verdict=f"unfit: {error.lacks}", refused="unfit")
    inside = None if pair.ratio is None else ratio.common.low <= pair.ratio <= ratio.common.high
    return replace(
        _transferred(pair, a, from_model=from_model, seed=seed),
        verdict=_verdict(ratio),
        inside=inside,
    )


def _verdict(ratio: Ratio) -> str:
    return likeness_of(ratio).kind


def _transferred(pair: Pair, a: Recording, *, from_model: bool, seed: int) -> Judged:
    try:
        known = known_from_sweep(a)
        known = known_from_model(known.host) if from_model else known
    except UnfitError:
        return Judged(refused="known")
    try:
        found = transfer_of(known, few(pair.b, 2 * OTHERS + seed))
    except UnfitError as error:
        return Judged(refused=error.lacks)
    right = None if pair.ratio is None else found.factor.low <= pair.ratio <= found.factor.high
    return Judged(factor_inside=right, errors=_errors(pair.b, known, found))


def few(case: Case, seed: int) -> Recording:
    """Measure a few caps, as `xtc-train sweep --cap` does."""
    with tempfile.TemporaryDirectory(prefix="xtc-ratios-") as folder:
        path = Path(folder) / "few.csv"
        begun = resumed(Metadata(host="new", offered_pps=offered(case)), path)
        aims = aims_for_caps(SHORT, CAPS)
        return Sweep(SimulatedHost(case, seed), begun, path, aims, lambda _: None).run()


def _errors(case: Case, known: Known, found: Transfer) -> list[float]:
    curve = scaled_curve(known.host, found)
    low, high = curve.points[0][0], curve.points[-1][0]
    caps = [low * (high / low) ** (n / (PLACES - 1)) for n in range(PLACES)]
    return [abs(curve.throughput(cap) / throughput(case, cap) - 1) for cap in caps]


def row_of(pair: Pair, judged: Sequence[Judged]) -> dict[str, object]:
    """Return the figures of one kind of pair."""
    errors = sorted(error for one in judged for error in one.errors)
    worst = [max(one.errors) for one in judged if one.errors]
    return {
        "pair": pair.name,
        "pairs": len(judged),
        "coverage": _share([one.inside for one in judged]),
        "verdicts": dict(Counter(one.verdict for one in judged)),
        "transferred": len(worst),
        "refused": dict(Counter(one.refused for one in judged if one.refused)),
        "factor_coverage": _share([one.factor_inside for one in judged]),
        "error_p95": errors[int(0.95 * (len(errors) - 1))] if errors else None,
        "error_median_worst": sorted(worst)[len(worst) // 2] if worst else None,
        "error_worst": errors[-1] if errors else None,
        "a": _plain(pair.a),
        "b": _plain(pair.b),
    }


def _plain(case: Case) -> dict[str, object]:
    """Return a case for JSON, which has no infinity."""
    return {key: value for key, value in asdict(case).items() if value != float("inf")}


def _share(hits: Sequence[bool | None]) -> float | None:
    known = [hit for hit in hits if hit is not None]
    return sum(known) / len(known) if known else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=whole_number(1), default=40, help="of each kind")
    parser.add_argument("--model", action="store_true", help="transfer from a model file, no sweep")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with ProcessPoolExecutor() as pool:
        for pair in PAIRS:
            one = partial(_judge_seed, pair, options.model)
            rows.append(row_of(pair, list(pool.map(one, range(options.pairs), chunksize=2))))
            if not options.json:
                print(_words(rows[-1]), flush=True)
    if options.json:
        json.dump(rows, sys.stdout, indent=1)


def _judge_seed(pair: Pair, from_model: bool, seed: int) -> Judged:
    return judge(pair, from_model=from_model, seed=seed)


def _words(row: dict[str, object]) -> str:
    shown = (f"{key} {_figure(value)}" for key, value in row.items() if key not in {"a", "b"})
    return "; ".join(shown)


def _figure(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
