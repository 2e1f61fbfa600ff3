"""make demo: three flooded routers, the real daemon, one retuned and one disturbed halfway."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from benchmarks.figures import Samples, mean, settling
from benchmarks.rig import Rig, lab_missing, lab_router
from common.units import format_rate
from lab.plan import RouterKind
from lab.routers.topology import Lab
from xtc.cli.status import status_view
from xtc.wire import Activate, Retune

HALF = 32
"""Seconds before and after the retune and the disturbance."""
UNCAPPED = 4
"""Seconds of flood before any router is held, to measure their throughput."""
OUTPUT = Path("build/demo")


@dataclass(frozen=True)
class Plan:
    """One router of the demo."""

    vr: str
    kind: RouterKind
    offered: float
    setpoint: float
    second_setpoint: float | None = None
    disturbed: bool = False


PLANS = (
    Plan("gold", "kernel", 120e3, 60e3),
    Plan("silver", "user-space", 80e3, 20e3, second_setpoint=35e3),
    Plan("bronze", "user-space", 60e3, 10e3, disturbed=True),
)


@dataclass(frozen=True)
class Line:
    """One line of the summary: one router in one part of the demo."""

    vr: str
    part: str
    setpoint_pps: float
    achieved_pps: float
    mean_error: float
    settling_s: float | None
    plant: str


def main() -> None:
    """Run the demo and leave summary.json and demo.png in build/demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="do without real packets")
    options = parser.parse_args()
    console = Console(highlight=False)
    missing = lab_missing()
    if options.simulated or missing:
        for sentence in missing:
            console.print(f"no real packets: {sentence}")
        console.print("[bold]The routers of this run are SIMULATED.[/]")
        lines = _on_simulated_plant(console)
    else:
        lines = _on_real_packets(console)
    _print_summary(console, lines)
    sys.exit(any(line.mean_error > 0.1 for line in lines))


def _on_real_packets(console: Console) -> list[Line]:
    with ExitStack() as stack:
        lab = stack.enter_context(Lab())
        routers = {plan.vr: lab.add_router(plan.vr, plan.kind) for plan in PLANS}
        for plan in PLANS:
            routers[plan.vr].flood(plan.offered)
        rig = stack.enter_context(Rig({vr: lab_router(r) for vr, r in routers.items()}, lab))

        def disturb() -> None:
            """Start a thief in bronze that takes 15 % of its cap."""
            cap = rig.recording.of("bronze")[-1][1].cap or 0.0
            routers["bronze"].hog(0.15 * cap)

        return _story(console, rig, "real", disturb)


def _on_simulated_plant(console: Console) -> list[Line]:
    tables = {
        plan.vr: (
            f'interfaces = ["{plan.vr}.0"]\nmodel = "paper"\n'
            f'actuator = {{ kind = "simulated", plant = "{plan.vr}", '
            f"offered_pps = {min(plan.offered, 98e3)}, "
            f"stolen = {0.15 if plan.disturbed else 0.0}, "
            f"stolen_after_s = {UNCAPPED + HALF} }}"
        )
        for plan in PLANS
    }
    with Rig(tables, None) as rig:
        return _story(console, rig, "simulated", lambda: None)


def _story(console: Console, rig: Rig, plant: str, disturb: Callable[[], object]) -> list[Line]:
    with Live(console=console, auto_refresh=False, transient=not console.is_terminal) as live:
        _watch(rig, live, UNCAPPED, "flooded, nothing is held yet")
        for plan in PLANS:
            rig.client.call(Activate(plan.vr, plan.setpoint))
        start = time.monotonic()
        _watch(rig, live, HALF, "held at their setpoints")
        for plan in PLANS:
            if plan.second_setpoint is not None:
                rig.client.call(Retune(plan.vr, plan.second_setpoint))
        disturb()
        middle = time.monotonic()
        _watch(rig, live, HALF, "silver is retuned; a thief takes 15 % of bronze's CPU")
    from benchmarks.demo.xtc_plot import plot  # noqa: PLC0415  a new environment takes 2 s

    OUTPUT.mkdir(parents=True, exist_ok=True)
    lines = _lines(rig, plant, start, middle)
    (OUTPUT / "summary.json").write_text(json.dumps([asdict(line) for line in lines], indent=2))
    plot(rig.recording, [plan.vr for plan in PLANS], OUTPUT / "demo.png", plant, (start, middle))
    return lines


def _watch(rig: Rig, live: Live, seconds: float, words: str) -> None:
    """Show the table as ticks come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rig.wait_for_ticks(1)
        histories = {
            plan.vr: [value for _, value in rig.recording.throughput(plan.vr)][-30:]
            for plan in PLANS
        }
        left = Text(f"{words} ({max(0, round(end - time.monotonic()))} s)", style="italic")
        routers = rig.recording.ticks[-1].routers
        table = status_view(routers, histories, None, live.console.width)
        live.update(Group(table, left), refresh=True)


def _lines(rig: Rig, plant: str, start: float, middle: float) -> list[Line]:
    lines = []
    for plan in PLANS:
        samples = rig.recording.throughput(plan.vr)
        first = [s for s in samples if s[0] <= middle]
        second = [s for s in samples if s[0] > middle]
        lines.append(_line(plan.vr, "held", plan.setpoint, first, start, plant))
        part = "retuned" if plan.second_setpoint else "disturbed" if plan.disturbed else "held on"
        setpoint = plan.second_setpoint or plan.setpoint
        lines.append(_line(plan.vr, part, setpoint, second, middle, plant))
    return lines


def _line(  # noqa: PLR0917  a row of a table
    vr: str, part: str, setpoint: float, samples: Samples, start: float, plant: str
) -> Line:
    settled = settling(samples, start, setpoint)
    steady = [s for s in samples if s[0] > start + 1.5 + (settled or 0.0)]
    achieved = mean(steady)
    error = abs(achieved / setpoint - 1)
    return Line(vr, part, setpoint, round(achieved, 1), round(error, 4), settled, plant)


def _print_summary(console: Console, lines: list[Line]) -> None:
    table = Table(title="Summary", box=None, header_style="bold")
    for heading in ("router", "part", "setpoint", "achieved", "error", "settled after", "plant"):
        table.add_column(heading, justify="left" if heading in {"router", "part"} else "right")
    for line in lines:
        table.add_row(
            line.vr,
            line.part,
            format_rate(line.setpoint_pps),
            format_rate(line.achieved_pps),
            f"{line.mean_error * 100:.1f}%",
            "not settled" if line.settling_s is None else f"{line.settling_s:.0f} s",
            line.plant,
        )
    console.print(table)
    console.print(f"{OUTPUT / 'demo.png'} shows throughput and cap over time")
    console.print(f"{OUTPUT / 'summary.json'} holds this summary")


if __name__ == "__main__":
    main()
