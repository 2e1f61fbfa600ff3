"""Training on the lab, side by side: two sweeps of one host, and its loop with and without a model.

Each sweep is fitted; the curves are compared with each other and with the held-out caps. Then the
default law holds the same router at five setpoints, in turns with the model of the first sweep that
`xtc-train fit` accepts and without a model; if it accepts none, only without.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import mean, relative_rmse, settling
from benchmarks.rig import Rig, lab_missing, lab_router
from common.units import Seconds, format_cap, format_rate
from lab.plan import RouterKind
from lab.routers.router import Router
from lab.routers.topology import Lab
from models import ThroughputCurve, dump_host
from training.design.gains import design
from training.design.host_model import b_of, host_model, lag_of
from training.fit.fit import Fit, fit
from training.fit.verdict import verdict_on
from training.recording.metadata import metadata_of
from training.recording.recording import Recording
from training.recording.sweep_model import aims_for
from training.sweep.sweep import Sweep, resumed
from training.sweep.targets import lab_site
from training.sweep.watch import Stop
from xtc.wire import Activate, Deactivate

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
HELD = 34
"""Seconds that a loop is held: 4 to settle in, 30 that count."""
RATES: dict[RouterKind, float] = {"user-space": 200e3, "kernel": 300e3}
"""Packets/s offered to each kind of router, as in the other benchmarks."""
COMPARED = 20
"""Caps at which two curves are compared."""


@dataclass(frozen=True)
class Swept:
    """One sweep and its fit."""

    seconds: float
    samples: int
    caps: int
    top_pps: float
    cap_threshold: float
    shape: str
    shape_r_squared: float
    """Of the better or nearest shape, over the caps."""
    curve_r_squared: float
    """Of the monotone curve, over the samples."""
    held_out_error: float | None
    """Median, as a share."""
    held_out_worst: float | None
    """The largest, as a share."""
    verdict: str
    """Result of `xtc-train fit`: usable, or what to measure."""
    usable: bool
    variation: float | None
    """Standard deviation of the host's speed during the sweep, as a share."""
    a: float
    b: float


@dataclass(frozen=True)
class Held:
    """One setpoint held once."""

    share: float
    setpoint_pps: float
    trained: bool
    settling_s: float | None
    mean_error: float
    relative_rmse: float


@dataclass(frozen=True)
class Result:
    """All figures of one kind of router."""

    kind: str
    sweeps: tuple[Swept, ...]
    agreement_median: float
    """Of the two curves' difference over their caps, as a share of the first."""
    agreement_worst: float
    held: tuple[Held, ...]


def sweep(
    kind: RouterKind, budget: float, period: Seconds, path: Path
) -> tuple[Swept, Recording, Fit]:
    """Sweep a router of the lab once and fit the recording."""
    with (
        Stop() as stop,
        lab_site(kind, period, path.parent / "state", stop) as site,
        site.bench() as bench,
    ):
        assert site.load is not None  # a lab has its source
        site.load.set_rate(RATES[kind])
        metadata = metadata_of(site.plan.name, site.plan.spec, period, RATES[kind])
        began = time.monotonic()
        aims = aims_for(int(budget / period))
        recording = Sweep(bench, resumed(metadata, path), path, aims, lambda _: None).run()
        took = time.monotonic() - began
    found = fit(recording)
    return _swept(recording, found, took), recording, found


def _swept(recording: Recording, found: Fit, took: float) -> Swept:
    return Swept(
        seconds=took,
        samples=len(recording.samples),
        caps=len(found.points),
        top_pps=found.top_pps,
        cap_threshold=found.cap_threshold,
        shape=found.shapes.answer,
        shape_r_squared=found.shapes.chosen.r_squared,
        curve_r_squared=found.curve_r_squared,
        held_out_error=found.held_out_error,
        held_out_worst=found.held_out_worst,
        verdict=verdict_on(found).words,
        usable=verdict_on(found).usable,
        variation=None if found.variation is None else found.variation.speed,
        a=found.eq1.a.value,
        b=found.eq1.b.value,
    )


def agreement(one: Fit, other: Fit) -> tuple[float, float]:
    """Return median and worst difference of two curves over their common caps."""
    low = max(one.points[0].cap, other.points[0].cap)
    high = max(one.cap_threshold, other.cap_threshold)
    caps = [low * (high / low) ** (n / (COMPARED - 1)) for n in range(COMPARED)]
    apart = [_apart(one.curve, other.curve, cap) for cap in caps]
    return statistics.median(apart), max(apart)


def _apart(one: ThroughputCurve, other: ThroughputCurve, cap: float) -> float:
    return abs(other.throughput(cap) / max(one.throughput(cap), 1.0) - 1)


def model_file(recording: Recording, found: Fit, folder: Path) -> Path:
    """Write the model of a sweep."""
    gains = design(lag_of(found), b_of(found), period_s=recording.metadata.period_s)
    path = folder / "model.toml"
    path.write_text(dump_host(host_model(found, gains, recording.metadata)))
    return path


def compare(
    kind: RouterKind, model: Path | None, top: float, shares: tuple[float, ...], seconds: int
) -> list[Held]:
    """Hold each setpoint with the model and without it, in turns; the first one alternates."""
    with Lab(prefix="xtcbench") as lab:
        router = lab.add_router("vr", kind)
        router.flood(RATES[kind])
        held = []
        for number, share in enumerate(shares):
            both = (bool(number % 2), not number % 2)
            for trained in (False,) if model is None else both:
                given = model if trained else None
                held.append(_hold(lab, router, given, share=share, top=top, seconds=seconds))
                print(f"  {held[-1]}", file=sys.stderr)
        return held


def _hold(
    lab: Lab, router: Router, model: Path | None, *, share: float, top: float, seconds: int
) -> Held:
    setpoint = share * top
    table = lab_router(router, model=None if model is None else str(model))
    with Rig({"vr": table}, lab) as rig:
        rig.wait_for_ticks(3)
        rig.client.call(Activate("vr", setpoint))
        start = time.monotonic()
        rig.wait_for_ticks(seconds)
        samples = [s for s in rig.recording.throughput("vr") if s[0] > start]
        rig.client.call(Deactivate("vr"))
    counted = [s for s in samples if s[0] > start + 4][:30]
    return Held(
        share,
        setpoint,
        model is not None,
        settling(samples, start, setpoint),
        mean(counted) / setpoint - 1,
        relative_rmse(counted),
    )


def measure(
    kind: RouterKind, budget: float, period: Seconds, shares: tuple[float, ...], seconds: int
) -> Result:
    """Measure one kind of router."""
    with tempfile.TemporaryDirectory(prefix="xtc-training-") as name:
        folder = Path(name)
        sweeps = []
        for number in (1, 2):
            sweeps.append(sweep(kind, budget, period, folder / f"sweep{number}.csv"))
            print(f"  {sweeps[-1][0]}", file=sys.stderr)
        (first, _, one), (second, _, other) = sweeps
        median, worst = agreement(one, other)
        accepted = [(recording, found) for swept, recording, found in sweeps if swept.usable]
        model = model_file(*accepted[0], folder) if accepted else None
        held = compare(kind, model, first.top_pps, shares, seconds)
    return Result(kind, (first, second), median, worst, tuple(held))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kind", choices=tuple(RATES), action="append")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of a sweep")
    parser.add_argument("--quick", action="store_true", help="short: shows that all of it runs")
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    results = []
    for kind in options.kind or RATES:
        print(f"{kind}:", file=sys.stderr)
        if options.quick:
            results.append(measure(kind, 22.0, Seconds(0.5), (0.3,), 16))
        else:
            results.append(measure(kind, options.budget, Seconds(1.0), SHARES, HELD))
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        for result in results:
            _print(result)


def _worst(one: Swept) -> str:
    return "" if one.held_out_worst is None else f", {one.held_out_worst * 100:.1f}% (worst)"


def _varied(one: Swept) -> str:
    return (
        "" if one.variation is None else f", the host's speed varied by {one.variation * 100:.1f}%"
    )


def _print(result: Result) -> None:
    console = Console(highlight=False, width=120)
    for number, one in enumerate(result.sweeps, start=1):
        held_out = "-" if one.held_out_error is None else f"{one.held_out_error * 100:.1f}%"
        console.print(
            f"{result.kind}, sweep {number}: {one.seconds:.0f} s, {one.caps} caps, "
            f"top {format_rate(one.top_pps)}, threshold {format_cap(one.cap_threshold)}, "
            f"{one.shape} R² {one.shape_r_squared:.4f}, curve R² {one.curve_r_squared:.4f}, "
            f"held-out caps {held_out} (median){_worst(one)}{_varied(one)}; {one.verdict}"
        )
    console.print(
        f"the two curves are {result.agreement_median * 100:.1f}% apart (median; worst "
        f"{result.agreement_worst * 100:.1f}%)"
    )
    table = Table(box=None, header_style="bold")
    for heading in ("setpoint", "share", "model", "settled", "mean error", "RMSE"):
        table.add_column(heading, justify="right")
    for held in sorted(result.held, key=lambda held: (held.share, held.trained)):
        settled = "never" if held.settling_s is None else f"{held.settling_s:.0f} s"
        table.add_row(
            format_rate(held.setpoint_pps),
            f"{held.share * 100:.0f}%",
            "trained" if held.trained else "none",
            settled,
            f"{held.mean_error * 100:+.1f}%",
            f"{held.relative_rmse * 100:.1f}%",
        )
    console.print(table)


if __name__ == "__main__":
    main()
