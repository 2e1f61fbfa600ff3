"""make demo, second part: the policer keeps two contracts while a third router floods the host.

Real packets, the real daemon and the real policer, if this machine can hold a lab: three routers in
user space share one core. Gold and silver have contracts, bronze has none of its own but what is
left; then bronze is flooded. The terminal tells the story, and the page shows it meanwhile.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from benchmarks.policer_rig import Policer, enter
from benchmarks.rig import Rig, lab_missing, lab_router
from lab.processes import Source
from lab.topology import Lab
from policer.cli_tables import ROUTER_HEADINGS, event_row, router_row, table
from policer.contract import Contract
from policer.hosts import Host
from policer.ladder import Step
from xtc.units import format_rate

HOST: Final = "lab"
CAPACITY: Final = 150e3
"""What the three routers can forward together on one core of a modest machine, packets/s."""
OFFERED: Final = {"gold": 60e3, "silver": 30e3, "bronze": 5e3}
FLOOD: Final = 250e3
"""What bronze is flooded with."""
CONTRACTS: Final = {
    "gold": Contract(guarantee_pps=60e3),
    "silver": Contract(guarantee_pps=30e3),
    "bronze": Contract(guarantee_pps=5e3, measures=(Step.WARN, Step.LOWER, Step.LIMIT)),
}
PROMISED: Final = ("gold", "silver")
QUICK: Final = """
[policy.patience]
climb_s = 5
descend_s = 8
[policy.habits]
calm_rounds = 8
"""
"""A policer that is less patient than by default: nobody wants to watch a demo for five minutes."""
CALM_S, FLOOD_S, AFTER_S = 10, 32, 30
KEPT: Final = 0.95
"""A guarantee is kept from this share of it on: the rest is the scatter of a second."""
OUTPUT = Path("build/demo")


@dataclass(frozen=True)
class Line:
    """One line of the summary: one router in one part of the story."""

    vr: str
    part: str
    guarantee_pps: float
    throughput_pps: float
    offered_pps: float


def main() -> None:
    """Tell the story; leave policer.json in build/demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stay", action="store_true", help="go on until Ctrl-C, for the page")
    options = parser.parse_args()
    console = Console(highlight=False, emoji=False)
    if missing := lab_missing():
        console.print("The policer's part needs real packets: " + "; ".join(missing))
        return
    with ExitStack() as stack:
        story = Story(console, stack)
        lines = story.tell()
        _summarise(console, lines, story.restored_after)
        if options.stay:
            story.stay()
    sys.exit(any(line.throughput_pps < KEPT * line.guarantee_pps for line in lines))


class Story:
    """The lab with its daemon, a policer, and what was seen of them."""

    def __init__(self, console: Console, stack: ExitStack) -> None:
        self._console = console
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xtc-demo-")))
        lab = stack.enter_context(Lab("xtcfleet"))
        routers = {vr: lab.add_router(vr, "user-space") for vr in OFFERED}
        self._sources: dict[str, Source] = {
            vr: routers[vr].flood(rate) for vr, rate in OFFERED.items()
        }
        tables = {vr: lab_router(router) for vr, router in routers.items()}
        rig = stack.enter_context(Rig(tables, lab))
        url = f"sqlite:///{folder}/policer.db"
        sockets = f"ipc://{rig.folder}/run"
        host = Host(HOST, f"{sockets}/manager.sock", f"{sockets}/telemetry.sock", CAPACITY)
        self._secret = enter(url, [host], {HOST: CONTRACTS})
        self._policer = stack.enter_context(Policer(folder / "p", url, self._secret, more=QUICK))
        self._seen: list[tuple[float, dict[str, Any]]] = []
        self.restored_after: float | None = None
        """Seconds from the flood until both guarantees were kept for good, while it lasted."""

    def tell(self) -> list[Line]:
        """Go through the parts of the story."""
        self._console.print(f"The page: {self._policer.url} (token: {self._secret})")
        with Live(
            console=self._console, auto_refresh=False, transient=not self._console.is_terminal
        ) as live:
            calm = self._watch(live, CALM_S, "calm: nobody is held")
            self._sources["bronze"].set_rate(FLOOD)
            flooded = time.monotonic()
            words = f"bronze is flooded with {format_rate(FLOOD)}"
            flood = self._watch(live, FLOOD_S, words)
            self._sources["bronze"].set_rate(OFFERED["bronze"])
            self._watch(live, AFTER_S, "the flood is over")
        self.restored_after = _restored(flood, flooded)
        self._print_events()
        settled = flood[len(flood) // 2 :]
        return [*_lines("calm", calm), *_lines("flooded", settled)]

    def stay(self) -> None:
        """Keep everything running until Ctrl-C, with a flood every other minute."""
        self._console.print(f"{self._policer.url} is up until Ctrl-C; bronze floods on and off")
        try:
            while True:
                for rate in (FLOOD, OFFERED["bronze"]):
                    self._sources["bronze"].set_rate(rate)
                    time.sleep(60)
        except KeyboardInterrupt:
            return

    def _watch(self, live: Live, seconds: float, words: str) -> list[tuple[float, dict[str, Any]]]:
        """Show the routers every second; return what was seen, with its instants."""
        seen = []
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            items = self._policer.get(f"/v1/hosts/{HOST}/routers")["items"]
            seen.append((now, {item["vr"]: item for item in items}))
            left = Text(f"{words} ({max(0, round(end - now))} s)", style="italic")
            shown = table(ROUTER_HEADINGS, map(router_row, items))
            live.update(Group(shown, left), refresh=True)
            time.sleep(1.0)
        return seen

    def _print_events(self) -> None:
        events = self._policer.get(f"/v1/events?limit=50&host={HOST}")["items"]
        self._console.print(Text("What the policer did:", style="bold"))
        for event in reversed(events):
            self._console.print(Text("  " + "  ".join(event_row(event))))


def _rate(item: dict[str, Any], name: str) -> float:
    return float((item["report"] or {}).get(name) or 0.0)


def _restored(seen: list[tuple[float, dict[str, Any]]], since: float) -> float | None:
    """Return how long it took until guarantees were kept for good."""
    harmed = [
        at
        for at, items in seen
        for vr in PROMISED
        if _rate(items[vr], "throughput_pps") < KEPT * CONTRACTS[vr].guarantee_pps
    ]
    return max(harmed) - since + 1.0 if harmed else 0.0


def _lines(part: str, seen: list[tuple[float, dict[str, Any]]]) -> list[Line]:
    return [
        Line(
            vr,
            part,
            CONTRACTS[vr].guarantee_pps,
            round(fmean(_rate(items[vr], "throughput_pps") for _, items in seen[2:]), 1),
            round(fmean(_rate(items[vr], "offered_pps") for _, items in seen[2:]), 1),
        )
        for vr in OFFERED
    ]


def _summarise(console: Console, lines: list[Line], restored_after: float | None) -> None:
    made = Table(title="The policer's part", box=None, header_style="bold")
    for heading in ("router", "part", "guarantee", "offered", "throughput"):
        made.add_column(heading, justify="left" if heading in {"router", "part"} else "right")
    for line in lines:
        rates = (line.guarantee_pps, line.offered_pps, line.throughput_pps)
        made.add_row(line.vr, line.part, *map(format_rate, rates))
    console.print(made)
    if restored_after is not None:
        console.print(
            f"Both guarantees were kept again {restored_after:.0f} s after the flood began"
        )
    OUTPUT.mkdir(parents=True, exist_ok=True)
    summary = {"restored_after_s": restored_after, "lines": [asdict(line) for line in lines]}
    (OUTPUT / "policer.json").write_text(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
