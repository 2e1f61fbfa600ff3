"""The loop at short periods on real packets: 0.1, 0.2 and 1 s, and a fixed cap sampled alike.

For each kind of router and each period, with the shield and without it, in turn and repeatedly: the
router is held at one setpoint, stepped to another and back, and then left at a fixed cap (the
loop's mean). All are measured for the same number of seconds. Raw samples go to a file, from which
`--from` prints the table again.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Samples, mean, relative_rmse
from benchmarks.rig import Rig, lab_missing, lab_router
from common.arguments import whole_number
from common.units import CapFraction
from lab.plan import RouterKind
from lab.routers.router import Router
from lab.routers.topology import Lab
from xtc.actuator.factory import open_actuator
from xtc.spec import CgroupSpec, DeadlineSpec
from xtc.wire import Activate, Deactivate, Pause, Resume, Retune

PERIODS = (0.1, 0.2, 1.0)
SHARES = (0.1, 0.3, 0.6)
"""Setpoints, of the uncapped throughput."""
STEP = 2.0
"""Factor of the setpoint's step, down from it and back up."""
RATES: dict[RouterKind, float] = {"user-space": 200e3, "kernel": 300e3}
"""Packets/s offered to each kind of router."""
SETTLED = 5
"""Periods left out at the start."""
HELD_S = 8.0
"""Seconds that count of each way; at 1 s, at least `LEAST` samples."""
LEAST = 15
BAND = 0.10
"""A sample is right within this of the setpoint, or within thrice the fixed cap's RMSE ..."""
WIDEST = 0.3
"""... but no more than this: throughput that scatters by more never counts as settled."""


@dataclass(frozen=True)
class Run:
    """One setpoint, held and stepped at one period, and the fixed cap sampled alike."""

    kind: str
    period_s: float
    shield: bool
    share: float
    setpoint_pps: float
    cap: float
    held: list[float]
    fixed: list[float]
    down: list[float]
    """Throughputs after the step down, from the first whole period under a new cap on."""
    up: list[float]

    @property
    def mean_error(self) -> float:
        """Of the loop."""
        return statistics.fmean(self.held) / self.setpoint_pps - 1

    @property
    def rmse(self) -> tuple[float, float]:
        """Relative RMSE of the loop and of the fixed cap."""
        return _rmse(self.held), _rmse(self.fixed)

    @property
    def settling(self) -> tuple[int | None, int | None]:
        """Periods after the step down and the step up until the throughput is right."""
        band = min(max(BAND, 3 * self.rmse[1]), WIDEST)
        lower = _settled(self.down, self.setpoint_pps / STEP, band)
        return lower, _settled(self.up, self.setpoint_pps, band)


def _rmse(values: list[float]) -> float:
    return relative_rmse([(0.0, value) for value in values])


def _settled(values: list[float], setpoint: float, band: float) -> int | None:
    """Return the samples before the first two in a row that are right."""
    inside = [abs(value / setpoint - 1) <= band for value in values]
    for at, pair in enumerate(pairwise(inside)):
        if all(pair):
            return at
    return None


class Bench:
    """One router of the lab under a daemon of one period."""

    def __init__(self, rig: Rig, router: Router, period: float, *, shield: bool) -> None:
        self._rig, self._router, self._period = rig, router, period
        self._shield, self._vr = shield, router.name

    def uncapped(self) -> float:
        """Return the throughput of the flooded, uncapped router."""
        self._rig.client.call(Deactivate(self._vr))
        self._wait(max(4.0, 4 * self._period))
        return mean(self._rig.recording.throughput(self._vr)[-max(3, int(3 / self._period)) :])

    def run(self, share: float, top: float) -> Run:
        """Hold, step, and fix the router once."""
        setpoint = share * top
        self._rig.client.call(Activate(self._vr, setpoint))
        self._wait((SETTLED + 3) * self._period + 1.0)
        held, cap = self._measured()
        down = self._stepped(setpoint / STEP)
        up = self._stepped(setpoint)
        fixed = self._fixed(cap)
        self._rig.client.call(Deactivate(self._vr))
        kind = str(self._router.kind)
        return Run(kind, self._period, self._shield, share, setpoint, cap, held, fixed, down, up)

    def _wait(self, seconds: float) -> None:
        self._rig.wait_for_ticks(max(1, round(seconds / self._period)))

    def _measured(self) -> tuple[list[float], float]:
        """Return throughputs and the mean cap over the seconds that count."""
        start = time.monotonic()
        self._wait(max(HELD_S, LEAST * self._period))
        caps = [r.cap for at, r in self._rig.recording.of(self._vr) if at > start and r.cap]
        return self._values(start + self._period), statistics.fmean(caps) if caps else 0.0

    def _values(self, since: float) -> list[float]:
        samples: Samples = self._rig.recording.throughput(self._vr)
        return [value for at, value in samples if at > since]

    def _stepped(self, setpoint: float) -> list[float]:
        """Return the samples after a step of the setpoint; the first has its new cap throughout."""
        self._rig.wait_for_ticks(1)
        start = time.monotonic()
        self._rig.client.call(Retune(self._vr, setpoint))
        self._rig.wait_for_ticks(8)
        return self._values(start)[1:]

    def _fixed(self, cap: float) -> list[float]:
        """Fix a cap behind the paused loop's back and measure."""
        self._rig.client.call(Pause(self._vr))
        actuator = open_actuator(_spec(self._router), loop_s=self._period)
        for _ in range(4):  # applying a deadline cap determines its threads' shares
            actuator.apply(CapFraction(cap))
            time.sleep(0.3)
        values, _ = self._measured()
        self._rig.client.call(Resume(self._vr))
        return values


def _spec(router: Router) -> DeadlineSpec | CgroupSpec:
    if router.kind == "kernel":
        return DeadlineSpec(netns=str(router.netns), interfaces=tuple(router.inner_interfaces))
    return CgroupSpec(path=str(router.cgroup))


def measure(options: argparse.Namespace) -> list[Run]:
    """Measure all ways in turn, for each kind of router."""
    found = []
    for kind in options.kind or RATES:
        with Lab(prefix="xtcperiod") as lab:
            router = lab.add_router("vr", kind)
            router.flood(RATES[kind])
            for number in range(options.runs):
                for period in options.period or PERIODS:
                    for shield in (False, True):
                        found += _one_way(lab, router, period, options.share, shield=shield)
                print(f"{kind}: run {number + 1} done", file=sys.stderr)
    return found


def _one_way(
    lab: Lab, router: Router, period: float, shares: list[float] | None, *, shield: bool
) -> list[Run]:
    daemon = f"period_s = {period}\nmeter_period_s = {min(0.1, period / 2)}\n"
    with Rig({"vr": lab_router(router)}, lab, daemon=daemon, shield=shield) as rig:
        bench = Bench(rig, router, period, shield=shield)
        top = bench.uncapped()
        found = [bench.run(share, top) for share in shares or SHARES]
    for run in found:
        print(f"  {_words(run)}", file=sys.stderr)
    return found


def _words(run: Run) -> str:
    ours, fixed = run.rmse
    return (
        f"{run.kind} {run.period_s:g} s shield={run.shield} {run.share:.0%}: mean "
        f"{run.mean_error:+.1%}, RMSE {ours:.1%} fixed {fixed:.1%} ratio {ours / fixed:.2f}, "
        f"settled {run.settling}, cap {run.cap:.3f}"
    )


def show(runs: list[Run]) -> None:
    """Print a table: medians over the runs, the worst mean error."""
    table = Table(box=None, header_style="bold")
    heads = ("router", "period", "shield", "share", "mean error", "RMSE", "fixed", "ratio", "down")
    for head in (*heads, "up"):
        table.add_column(head, justify="right")
    keys = dict.fromkeys((r.kind, r.period_s, r.shield, r.share) for r in runs)
    for key in keys:
        group = [r for r in runs if (r.kind, r.period_s, r.shield, r.share) == key]
        table.add_row(*map(str, key[:1]), f"{key[1]:g} s", "yes" if key[2] else "no", *_row(group))
    console = Console(highlight=False, width=120)
    console.print(table)
    console.print("down, up: periods until two samples in a row were right, median; 99 is never.")


def _row(group: list[Run]) -> list[str]:
    ratio = statistics.median(r.rmse[0] / r.rmse[1] for r in group)
    steps = [[99 if s is None else s for s in r.settling] for r in group]
    return [
        f"{group[0].share:.0%}",
        f"{max((r.mean_error for r in group), key=abs):+.1%}",
        f"{statistics.median(r.rmse[0] for r in group):.1%}",
        f"{statistics.median(r.rmse[1] for r in group):.1%}",
        f"{ratio:.2f}",
        *(f"{statistics.median(each):g}" for each in zip(*steps, strict=True)),
    ]


def main() -> None:
    """Measure, or read earlier measurements, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="file for the raw results")
    parser.add_argument("--from", type=Path, dest="source", help="print what this file holds")
    parser.add_argument("--runs", type=whole_number(1), default=3, help="of each way")
    parser.add_argument("--kind", choices=tuple(RATES), action="append")
    parser.add_argument("--period", type=float, action="append")
    parser.add_argument("--share", type=float, action="append")
    options = parser.parse_args()
    if options.source is not None:
        show(msgspec.json.decode(options.source.read_bytes(), type=list[Run]))
        return
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    runs = measure(options)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(run) for run in runs]) + "\n")
    show(runs)


if __name__ == "__main__":
    main()
