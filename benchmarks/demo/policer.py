"""make demo, second part: the policer keeps two contracts while a third router floods the host.

Real packets, the real daemon and the real policer, if this machine can hold a lab: three routers in
user space share one core. Elsewhere the host is simulated, and the policer is still real. Gold and
silver have contracts, bronze gets what they leave; then bronze is flooded. Terminal and page both
show the demo.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import msgspec
import zmq
import zmq.auth
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from benchmarks.policer import hosts as policer_hosts
from benchmarks.policer.rig import Policer, enter
from benchmarks.rig import Rig, lab_missing, lab_router
from common.units import format_rate
from lab.routers.topology import Lab
from policer.cli.shared.tables import ROUTER_HEADINGS, event_row, router_row, table
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.ladder import Step

HOST: Final = "lab"
CAPACITY: Final = 150e3
"""Capacity of the three routers together on one core of a modest machine, packets/s."""
OFFERED: Final = {"gold": 60e3, "silver": 30e3, "bronze": 5e3}
FLOOD: Final = 250e3
"""Flood sent to bronze."""
CONTRACTS: Final = {
    "gold": Contract(guarantee_pps=60e3),
    "silver": Contract(guarantee_pps=30e3),
    "bronze": Contract(guarantee_pps=5e3, measures=(Step.WARN, Step.LOWER, Step.LIMIT)),
}
PROMISED: Final = ("gold", "silver")
QUICK: Final = """
[policy.escalation]
climb_s = 5
descend_s = 8
[policy.engagement]
calm_rounds = 8
"""
"""Settings for faster escalation than the defaults, which would take five minutes."""
CALM_S, FLOOD_S, AFTER_S = 10, 32, 30
KEPT: Final = 0.95
"""Share from which on a guarantee counts as kept: the rest is the scatter of a second."""
SIMULATED: Final = policer_hosts.CAPACITY / CAPACITY
"""The simulated host is smaller: all rates are this share of the real demo's."""
TURN_MS: Final = 50
OUTPUT = Path("build/demo")
Seen = list[tuple[float, dict[str, Any]]]
"""Instants, with the state of each router."""


@dataclass(frozen=True)
class Line:
    """One line of the summary: one router in one part of the demo."""

    vr: str
    part: str
    guarantee_pps: float
    throughput_pps: float
    offered_pps: float
    plant: str


@dataclass(frozen=True)
class Stage:
    """The host of the demo."""

    plant: str
    """real or simulated."""
    host: Host
    offer: Callable[[str, float], None]
    """Function that sets a router's offered load, packets/s."""
    scale: float = 1.0
    """Of all rates."""
    keys: Path | None = None
    """The policer's own, if it reaches the host by TCP."""


def main() -> None:
    """Run the demo; leave policer.json in build/demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="do without real packets")
    parser.add_argument("--stay", action="store_true", help="go on until Ctrl-C, for the page")
    options = parser.parse_args()
    console = Console(highlight=False, emoji=False)
    missing = lab_missing()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xtc-demo-")))
        if options.simulated or missing:
            _say_what_is_skipped(console, missing)
            stage = stack.enter_context(_simulated(folder))
        else:
            stage = _real(stack)
        story = Story(console, stack, folder, stage)
        lines = story.tell()
        _summarise(console, lines, story.restored_after)
        if options.stay:
            story.stay()
    sys.exit(any(line.throughput_pps < KEPT * line.guarantee_pps for line in lines))


def _say_what_is_skipped(console: Console, missing: list[str]) -> None:
    for sentence in missing:
        console.print(f"no real packets: {sentence}")
    console.print(
        "[bold]The host of this run and its routers are SIMULATED; the policer is real.[/]"
    )


def _real(stack: ExitStack) -> Stage:
    """Return a lab with three flooded routers, and the daemon."""
    lab = stack.enter_context(Lab("xtcfleet"))
    routers = {vr: lab.add_router(vr, "user-space") for vr in OFFERED}
    sources = {vr: routers[vr].flood(rate) for vr, rate in OFFERED.items()}
    rig = stack.enter_context(Rig({vr: lab_router(one) for vr, one in routers.items()}, lab))
    sockets = f"ipc://{rig.folder}/run"
    host = Host(HOST, f"{sockets}/manager.sock", f"{sockets}/telemetry.sock", CAPACITY)
    return Stage("real", host, lambda vr, rate: sources[vr].set_rate(rate))


class Steady(policer_hosts.Router):
    """A simulated router with a constant offered load."""

    def pass_time(self, now: float) -> None:
        """Let leases and limits end."""
        super().pass_time(now)
        self.offered = self.base_pps


@contextmanager
def _simulated(folder: Path) -> Iterator[Stage]:
    """Yield a simulated host in a thread; it speaks to the policer as a daemon does."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    host = policer_hosts.build(context, 1, len(OFFERED))
    host.routers = {vr: Steady(vr, SIMULATED * rate) for vr, rate in OFFERED.items()}
    _, keys = zmq.auth.create_certificates(folder, "policer")
    Path(keys).chmod(0o600)

    def offer(vr: str, rate: float) -> None:
        host.routers[vr].base_pps = rate

    ended = threading.Event()
    thread = threading.Thread(target=_play, args=(host, ended))
    thread.start()
    try:
        entry = msgspec.structs.replace(host.entry, name=HOST)
        yield Stage("simulated", entry, offer, SIMULATED, Path(keys))
    finally:
        ended.set()
        thread.join()
        context.destroy(linger=0)


def _play(host: policer_hosts.SimulatedHost, ended: threading.Event) -> None:
    while not ended.is_set():
        host.requests.poll(TURN_MS)
        now = time.monotonic()
        host.answer(now)
        if host.due_at <= now:
            host.publish(now)


class Story:
    """A host, a policer, and their observations."""

    def __init__(self, console: Console, stack: ExitStack, folder: Path, stage: Stage) -> None:
        self._console, self._stage = console, stage
        self._contracts = {
            vr: msgspec.structs.replace(one, guarantee_pps=stage.scale * one.guarantee_pps)
            for vr, one in CONTRACTS.items()
        }
        url = f"sqlite:///{folder}/policer.db"
        self._secret = enter(url, [stage.host], {HOST: self._contracts})
        self._policer = stack.enter_context(
            Policer(folder / "p", url, self._secret, keys=stage.keys, more=QUICK)
        )
        self.restored_after: float | None = None
        """Seconds from the flood until both guarantees were kept for the rest of it."""

    def tell(self) -> list[Line]:
        """Run the parts of the demo."""
        self._console.print(f"The page: {self._policer.url} (token: {self._secret})")
        with Live(
            console=self._console, auto_refresh=False, transient=not self._console.is_terminal
        ) as live:
            calm = self._watch(live, CALM_S, "calm: no router is held")
            self._offer_bronze(FLOOD)
            flooded = time.monotonic()
            words = f"bronze is flooded with {format_rate(self._stage.scale * FLOOD)}"
            flood = self._watch(live, FLOOD_S, words)
            self._offer_bronze(OFFERED["bronze"])
            self._watch(live, AFTER_S, "the flood is over")
        self.restored_after = self._restored(flood, flooded)
        self._print_events()
        settled = flood[len(flood) // 2 :]
        return [*self._lines("calm", calm), *self._lines("flooded", settled)]

    def stay(self) -> None:
        """Keep everything running until Ctrl-C, with a flood every other minute."""
        self._console.print(f"{self._policer.url} is up until Ctrl-C; bronze floods on and off")
        try:
            while True:
                for rate in (FLOOD, OFFERED["bronze"]):
                    self._offer_bronze(rate)
                    time.sleep(60)
        except KeyboardInterrupt:
            return

    def _offer_bronze(self, rate: float) -> None:
        self._stage.offer("bronze", self._stage.scale * rate)

    def _watch(self, live: Live, seconds: float, words: str) -> Seen:
        """Show the routers every second; return the observations with their instants."""
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

    def _restored(self, seen: Seen, since: float) -> float:
        """Return how long it took until the guarantees were kept for the rest of the flood."""
        harmed = [
            at
            for at, items in seen
            for vr in PROMISED
            if _rate(items[vr], "throughput_pps") < KEPT * self._contracts[vr].guarantee_pps
        ]
        return max(harmed) - since + 1.0 if harmed else 0.0

    def _lines(self, part: str, seen: Seen) -> list[Line]:
        return [
            Line(
                vr,
                part,
                round(self._contracts[vr].guarantee_pps, 1),
                round(fmean(_rate(items[vr], "throughput_pps") for _, items in seen[2:]), 1),
                round(fmean(_rate(items[vr], "offered_pps") for _, items in seen[2:]), 1),
                self._stage.plant,
            )
            for vr in OFFERED
        ]


def _rate(item: dict[str, Any], name: str) -> float:
    return float((item["report"] or {}).get(name) or 0.0)


def _summarise(console: Console, lines: list[Line], restored_after: float | None) -> None:
    made = Table(title="The policer's part", box=None, header_style="bold")
    for heading in ("router", "part", "guarantee", "offered", "throughput", "plant"):
        made.add_column(heading, justify="left" if heading in {"router", "part"} else "right")
    for line in lines:
        rates = (line.guarantee_pps, line.offered_pps, line.throughput_pps)
        made.add_row(line.vr, line.part, *map(format_rate, rates), line.plant)
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
