"""The loop on real packets: default law against the fixed cap, for both kinds of router.

For each kind and each setpoint (a share of the uncapped throughput) and each run: the router is
released, activated and held; then the loop's mean cap is fixed, and measured for the same number of
seconds. At the end a disturbance: a thief of 15 % of the cap for the user-space router, a long
filter chain for the kernel's router.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Samples, mean, relative_rmse, settling
from benchmarks.rig import Rig, lab_missing, lab_router
from common.arguments import whole_number
from common.units import CapFraction, format_rate
from lab.plan import RouterKind
from lab.routers.router import Router
from lab.routers.topology import Lab
from xtc.actuator.factory import open_actuator
from xtc.spec import CgroupSpec, DeadlineSpec
from xtc.wire import Activate, Deactivate, Pause, Resume

SHARES = (0.03, 0.1, 0.3, 0.6, 0.9)
HELD = 34
"""Seconds that a loop is held in a full run: 4 to settle in, 30 that count."""
BRIEF = 13
"""Seconds of a brief run, which only shows how fast the loop settles."""
FIXED = 20
RATES: dict[RouterKind, float] = {"user-space": 200e3, "kernel": 300e3}
"""Packets/s offered to each kind of router."""
FILTERS = 60
"""Of the kernel router's heavier path; about 15 % of its work (docs/tutorial/lab.md)."""
THEFT = 0.15


@dataclass(frozen=True)
class Run:
    """One setpoint held once, and the fixed cap for comparison."""

    kind: str
    share: float
    setpoint_pps: float
    settling_s: float | None
    mean_error: float | None = None
    """Over 30 s; None in a brief run, like all that follow."""
    relative_rmse: float | None = None
    fixed_relative_rmse: float | None = None
    cap: float | None = None


@dataclass(frozen=True)
class Disturbed:
    """Effect of a disturbance on the loop, and on the fixed cap."""

    kind: str
    setpoint_pps: float
    recovery_s: float | None
    mean_error: float
    fixed_error: float


class Bench:
    """One router of the lab under the daemon."""

    def __init__(self, rig: Rig, router: Router) -> None:
        self._rig, self._router = rig, router
        self.kind, self._vr = str(router.kind), router.name

    def uncapped(self) -> float:
        """Return the throughput of the flooded, uncapped router."""
        self._rig.client.call(Deactivate(self._vr))
        self._rig.wait_for_ticks(6)
        return mean(self._rig.recording.throughput(self._vr)[-4:])

    def run(self, share: float, top: float, *, full: bool) -> Run:
        """Hold the router once; in a full run, then fix its mean cap and measure that."""
        setpoint = share * top
        self._rig.client.call(Deactivate(self._vr))
        self._rig.wait_for_ticks(3)
        start = self._activate(setpoint)
        self._rig.wait_for_ticks(HELD if full else BRIEF)
        samples = self._since(start)
        settled = settling(samples, start, setpoint)
        if not full:
            return Run(self.kind, share, setpoint, settled)
        counted = [s for s in samples if s[0] > start + 4][:30]
        cap = self._mean_cap(start + 4)
        return Run(
            self.kind,
            share,
            setpoint,
            settled,
            mean(counted) / setpoint - 1,
            relative_rmse(counted),
            relative_rmse(self._fixed(cap)),
            cap,
        )

    def disturb(self, setpoint: float) -> Disturbed:
        """Disturb the held router, then the router at a fixed cap."""
        self._rig.client.call(Deactivate(self._vr))
        start = self._activate(setpoint)
        self._rig.wait_for_ticks(15)
        cap = self._mean_cap(start + 5)
        undo = self._disturbance(cap)
        at = time.monotonic()
        self._rig.wait_for_ticks(25)
        held = self._since(at)
        undo()
        self._rig.wait_for_ticks(4)
        undo = self._disturbance(cap)
        fixed = self._fixed(cap)
        undo()
        return Disturbed(
            self.kind,
            setpoint,
            settling(held, at, setpoint),
            mean(held[5:]) / setpoint - 1,
            mean(fixed) / setpoint - 1,
        )

    def _disturbance(self, cap: float) -> Callable[[], object]:
        if self.kind == "kernel":
            self._router.set_path_weight(FILTERS)
            return lambda: self._router.set_path_weight(0)
        hog = self._router.hog(THEFT * cap)
        return hog.stop

    def _activate(self, setpoint: float) -> float:
        self._rig.client.call(Activate(self._vr, setpoint))
        return time.monotonic()

    def _since(self, start: float) -> Samples:
        return [s for s in self._rig.recording.throughput(self._vr) if s[0] > start]

    def _mean_cap(self, since: float) -> float:
        caps = [r.cap for at, r in self._rig.recording.of(self._vr) if at > since and r.cap]
        return statistics.fmean(caps)

    def _fixed(self, cap: float) -> Samples:
        """Fix a cap while the loop is paused, and measure."""
        self._rig.client.call(Pause(self._vr))
        self._spec_actuator_apply(cap)
        self._rig.wait_for_ticks(2)
        start = time.monotonic()
        self._rig.wait_for_ticks(FIXED)
        samples = self._since(start)
        self._rig.client.call(Resume(self._vr))
        return samples

    def _spec_actuator_apply(self, cap: float) -> None:
        router = self._router
        spec = (
            DeadlineSpec(netns=str(router.netns), interfaces=tuple(router.inner_interfaces))
            if self.kind == "kernel"
            else CgroupSpec(path=str(router.cgroup))
        )
        actuator = open_actuator(spec)
        for _ in range(4):  # applying a deadline cap determines its threads' shares
            actuator.apply(CapFraction(cap))
            time.sleep(0.3)


def measure(
    kind: RouterKind, runs: int, full: int, shares: tuple[float, ...]
) -> tuple[list[Run], list[Disturbed]]:
    """Measure one kind of router."""
    with Lab(prefix="xtcbench") as lab:
        router = lab.add_router("vr", kind)
        router.flood(RATES[kind])
        with Rig({"vr": lab_router(router)}, lab) as rig:
            bench = Bench(rig, router)
            top = bench.uncapped()
            print(f"{kind}: uncapped {format_rate(top)}", file=sys.stderr)
            results = []
            for share in shares:
                for number in range(runs):
                    results.append(bench.run(share, top, full=number < full))
                    print(f"  {results[-1]}", file=sys.stderr)
            return results, [bench.disturb(0.3 * top) for _ in range(full)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=whole_number(1), default=5, help="of each setpoint")
    parser.add_argument(
        "--full", type=whole_number(0), default=2, help="of them, compared with a fixed cap"
    )
    parser.add_argument("--kind", choices=tuple(RATES), action="append")
    parser.add_argument("--share", type=float, action="append")
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    results: list[Run] = []
    disturbed: list[Disturbed] = []
    for kind in options.kind or RATES:
        shares = tuple(options.share or SHARES)
        more, troubles = measure(kind, options.runs, options.full, shares)
        results += more
        disturbed += troubles
    if options.json:
        found = {
            "runs": [asdict(run) for run in results],
            "disturbed": [asdict(trouble) for trouble in disturbed],
        }
        print(json.dumps(found, indent=2))
    else:
        _print(results, disturbed)


def _print(results: list[Run], disturbed: list[Disturbed]) -> None:
    table = Table(box=None, header_style="bold")
    for heading in (
        "router",
        "setpoint",
        "share",
        "settled",
        "mean error",
        "RMSE",
        "fixed",
        "ratio",
    ):
        table.add_column(heading, justify="right")
    for kind, share in dict.fromkeys((r.kind, r.share) for r in results):
        table.add_row(*_row([r for r in results if (r.kind, r.share) == (kind, share)]))
    console = Console(highlight=False, width=120)
    console.print(table)
    console.print("settled: median of the runs; mean error: worst; RMSE: relative, median.")
    for trouble in disturbed:
        recovery = "not" if trouble.recovery_s is None else f"after {trouble.recovery_s:.0f} s"
        console.print(
            f"{trouble.kind} at {format_rate(trouble.setpoint_pps)}, disturbed: recovered "
            f"{recovery}, mean error {trouble.mean_error * 100:+.1f}%; "
            f"fixed cap {trouble.fixed_error * 100:+.1f}%"
        )


def _row(group: list[Run]) -> list[str]:
    settled = statistics.median(99.0 if r.settling_s is None else r.settling_s for r in group)
    errors = [abs(r.mean_error) for r in group if r.mean_error is not None]
    pairs = [
        (r.relative_rmse, r.fixed_relative_rmse)
        for r in group
        if r.relative_rmse is not None and r.fixed_relative_rmse is not None
    ]
    return [
        group[0].kind,
        format_rate(group[0].setpoint_pps),
        f"{group[0].share * 100:.0f}%",
        f"{settled:.0f} s",
        f"{max(errors) * 100:.1f}%" if errors else "-",
        *(_scatter(pairs) if pairs else ("-", "-", "-")),
    ]


def _scatter(pairs: list[tuple[float, float]]) -> tuple[str, str, str]:
    """Return the relative RMSE of loop and fixed cap, and their ratio."""
    return (
        f"{statistics.median(ours for ours, _ in pairs) * 100:.1f}%",
        f"{statistics.median(fixed for _, fixed in pairs) * 100:.1f}%",
        f"{statistics.median(ours / fixed for ours, fixed in pairs):.2f}",
    )


if __name__ == "__main__":
    main()
