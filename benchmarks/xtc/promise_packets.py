"""Which loads keep the promise of a setpoint on real packets, with the shield and by cap alone.

    python -m benchmarks.xtc.promise_packets --way shield        # as root; 20 minutes
    python -m benchmarks.xtc.promise_packets --kind kernel --load "steady flood"
    python -m benchmarks.xtc.promise_packets --headroom 1.6      # of the routers, instead of 1.1
    python -m benchmarks.xtc.promise_packets --period 0.2        # of the daemon, instead of 1 s
    python -m benchmarks.xtc.promise_packets --json FILE         # the raw results, too

A real router of the lab between two machines, the real daemon, the default law and burst. Each load
begins two seconds before the router is activated: the daemon begins with what it learned under the
load before. The promise counts from the answer to `activate`, by counters that this program reads
every 20 ms (`benchmarks.xtc.promise_line`). TCP is iperf3's.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.rig import Rig, lab_missing, lab_router
from benchmarks.xtc.promise_line import Counters, Kept, Player, kept
from common.setpoint import Setpoint
from lab.plan import RouterKind
from lab.programs.processes import Place
from lab.routers.machines import machine_names
from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.system.namespaces import path
from xtc.control.law import HEADROOM
from xtc.simulation.loads import Load, Pulses, Ramp, Sine, Steady, walk
from xtc.wire import Activate, Deactivate

PREFIX: Final = "xtcpromise"
SETPOINTS: Final = (10e3, 7e3)
FLOOD: Final = 30e3
SECONDS: Final = 20.0
BEFORE_S: Final = 2.0
"""Seconds of load before the router is activated."""
BETWEEN_S: Final = 3.0
WORK: Final[dict[RouterKind, tuple[int, int]]] = {
    "user-space": (3_000, 20_000),
    "kernel": (60, 400),
}
"""Filter comparisons per packet of a router: few, and many."""
WAYS: Final = ("shield", "cap")
KINDS: Final[tuple[RouterKind, ...]] = ("user-space", "kernel")


@dataclass(frozen=True)
class Case:
    """The load of one router or two."""

    name: str
    loads: tuple[Load, ...] = ()
    flows: int = 0
    """Flows of TCP, next to the loads."""
    work: tuple[int, int, int] = (0, 0, 0)
    """Work per packet in each third of the time (`WORK`)."""
    seconds: float = SECONDS


@dataclass(frozen=True)
class Result:
    """One router under one load."""

    kind: str
    load: str
    shield: bool
    setpoint_pps: float
    seconds: float
    wanted_packets: float
    delivered_packets: float
    over_promise_packets: float
    under_promise_packets: float
    breach_seconds: float
    first_second_pps: float
    peak_pps: float
    """Of the busiest second after the first."""
    longest_step_s: float


def _on_off(cycle: float, seconds: float = SECONDS) -> Case:
    return Case(f"on-off {cycle:g} s", (Pulses(FLOOD, cycle / 2, cycle),), seconds=seconds)


def cases() -> tuple[Case, ...]:
    """Return every load, in the order of the table."""
    return (
        Case("steady flood", (Steady(FLOOD),)),
        *(_on_off(cycle) for cycle in (0.5, 2.0, 5.3, 10.7)),
        _on_off(30.0, 60.0),
        _on_off(60.0, 90.0),
        Case("sine 2-18k, 20 s", (Sine(2e3, 18e3, 20.3),)),
        Case("ramp 0-30k, 20 s", (Ramp(0.0, FLOOD, 20.0),)),
        Case("random walk 1-40k", (walk(1e3, 40e3, 0.5, SECONDS + BEFORE_S, 5),)),
        Case("trains 50 ms a second", (Pulses(FLOOD, 0.05, 1.0),)),
        Case("trains 200 ms in 310", (Pulses(FLOOD, 0.2, 0.31),)),
        Case("dearer packets, then as before", (Steady(FLOOD),), work=(0, 1, 0), seconds=45.0),
        Case("cheaper packets, then as before", (Steady(FLOOD),), work=(1, 0, 1), seconds=45.0),
        *(Case(f"TCP, {flows} flow{'s' * (flows > 1)}", flows=flows) for flows in (1, 8, 32)),
        Case("two on one CPU", (Steady(FLOOD), Pulses(FLOOD, 5.0, 10.0))),
    )


class Bench:
    """The routers of one kind under one daemon."""

    def __init__(self, lab: Lab, rig: Rig, *, shield: bool) -> None:
        self._lab, self._rig, self._shield = lab, rig, shield
        self._routers = list(lab.routers.values())
        self._kind = self._routers[0].kind

    def run(self, case: Case) -> Iterator[Result]:
        """Run one case on the first routers, as many as there are loads."""
        routers = self._routers[: max(1, len(case.loads))]
        setpoints = [Setpoint(rate) for rate, _ in zip(SETPOINTS, routers, strict=False)]
        with ExitStack() as running:
            for router in routers:
                running.callback(_set_work, router, 0)
                _set_work(router, WORK[self._kind][case.work[0]])
            running.enter_context(tcp(self._lab, routers[0], case.flows))
            sources = [running.enter_context(router.flood(0.0)) for router in routers]
            player = running.enter_context(Player(list(zip(sources, case.loads, strict=False))))
            counters = running.enter_context(Counters(self._rig.pid, routers))
            time.sleep(BEFORE_S)
            since = self._hold(case, routers, setpoints)
        names = [case.name] if len(routers) == 1 else [f"{case.name}: {one}" for one in "AB"]
        until = since + case.seconds
        found = kept(counters.counted, setpoints, player.shares, since, until)
        for name, one in zip(names, found, strict=True):
            yield self._result(name, case, one)
        time.sleep(BETWEEN_S)

    def _hold(self, case: Case, routers: Sequence[Router], setpoints: Sequence[Setpoint]) -> float:
        """Hold the routers for as long as the case takes; return when the promise began."""
        for router, setpoint in zip(routers, setpoints, strict=True):
            self._rig.client.call(Activate(router.name, setpoint.rate))
        since = time.monotonic()
        for number, work in enumerate(case.work):
            if number and work != case.work[number - 1]:
                _set_work(routers[0], WORK[self._kind][work])
            time.sleep(max(0.0, since + (number + 1) * case.seconds / 3 - time.monotonic()))
        for router in routers:
            self._rig.client.call(Deactivate(router.name))
        return since

    def _result(self, name: str, case: Case, one: Kept) -> Result:
        return Result(
            kind=self._kind,
            load=name,
            shield=self._shield,
            setpoint_pps=one.setpoint.rate,
            seconds=case.seconds,
            wanted_packets=round(one.wanted, 1),
            delivered_packets=one.delivered,
            over_promise_packets=round(one.account.over, 1),
            under_promise_packets=round(one.account.under, 1),
            breach_seconds=round(one.account.breach_s, 3),
            first_second_pps=one.seconds[0],
            peak_pps=max(one.seconds[1:-1]),
            longest_step_s=round(one.longest_step_s, 3),
        )


def _set_work(router: Router, filters: int) -> None:
    """Set the number of comparisons per packet."""
    if router.kind == "kernel":
        router.set_path_weight(filters)
    else:
        router.set_packet_cost(0, filters)


@contextmanager
def tcp(lab: Lab, router: Router, flows: int) -> Iterator[None]:
    """Send flows of iperf3 through a router, if any."""
    if not flows:
        yield
        return
    near, far = router.ports
    source, sink = (Place(path(name)) for name in machine_names(lab.prefix))
    client = ["iperf3", "-c", far.host_address, "-B", near.host_address, "-t", "600"]
    with (
        _running(sink.command(["iperf3", "-s", "-B", far.host_address])),
        _running(source.command([*client, "-P", str(flows)])),
    ):
        yield


@contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(0.5)
        try:
            yield
        finally:
            process.kill()


def measure(options: argparse.Namespace) -> Iterator[Result]:
    """Run every requested case, with the shield and without it."""
    chosen = [case for case in cases() if not options.load or case.name in options.load]
    for kind in options.kind or KINDS:
        for way in options.way or WAYS:
            shield = way == WAYS[0]
            with Lab(PREFIX, beside=True) as lab:
                for name in "ab":
                    lab.add_router(name, kind)
                own = f"\nheadroom = {options.headroom}"
                routers = {one.name: lab_router(one) + own for one in lab.routers.values()}
                daemon = f"period_s = {options.period}\n"
                with Rig(routers, lab, daemon=daemon, shield=shield) as rig:
                    for case in chosen:
                        yield from Bench(lab, rig, shield=shield).run(case)


def show(results: Sequence[Result], console: Console) -> None:
    """Print a table for each kind of router."""
    for kind in dict.fromkeys(one.kind for one in results):
        table = Table("load", box=None, header_style="bold", title=f"{kind}: over / under / breach")
        table.title_justify = "left"
        mine = [one for one in results if one.kind == kind]
        for shield in dict.fromkeys(one.shield for one in mine):
            for heading in ("with its shield" if shield else "cap alone", "first s", "peak"):
                table.add_column(heading, justify="right")
        for load in dict.fromkeys(one.load for one in mine):
            cells = [_cells(one) for one in mine if one.load == load]
            table.add_row(load, *(cell for each in cells for cell in each))
        console.print(table)


def _cells(one: Result) -> tuple[str, str, str]:
    """Return per mille of the wanted packets, and seconds; two rates as parts of the setpoint."""
    over = 1e3 * one.over_promise_packets / one.wanted_packets
    under = 1e3 * one.under_promise_packets / one.wanted_packets
    kept = f"{over:.3g} / {under:.3g} / {one.breach_seconds:.3g}"
    rates = [rate / one.setpoint_pps for rate in (one.first_second_pps, one.peak_pps)]
    return kept, f"{rates[0]:.2f}", f"{rates[1]:.2f}"


def main() -> None:
    """Measure, or read earlier measurements, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--load", choices=[case.name for case in cases()], action="append")
    parser.add_argument("--headroom", type=float, default=HEADROOM, help="of the routers")
    parser.add_argument("--period", type=float, default=1.0, help="of the daemon, in seconds")
    parser.add_argument("--json", type=Path, help="file for the raw results")
    parser.add_argument("--from", type=Path, dest="source", help="print what this file holds")
    options = parser.parse_args()
    console = Console(highlight=False, width=120)
    if options.source is not None:
        show([Result(**one) for one in json.loads(options.source.read_text())], console)
        return
    missing = lab_missing() + ([] if shutil.which("iperf3") else ["iperf3 (apt install iperf3)"])
    if missing:
        sys.exit("real packets need: " + "; ".join(missing))
    results = []
    for one in measure(options):
        results.append(one)
        print(f"  {one}", file=sys.stderr)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in results], indent=1) + "\n")
    show(results, console)


if __name__ == "__main__":
    main()
