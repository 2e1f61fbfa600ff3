"""Which laws keep the promise of a setpoint, under which loads, with the shield and without it.

Everything here is simulated (`benchmarks.xtc.promise_rig`): the paper's host, a setpoint of 20 kp/s
with the default burst, five minutes a run. `fixed cap` is not a law but the model's cap for the
setpoint. Packets over and under the promise, and seconds in breach, are counted in steps of 50 ms
from the first second on.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.xtc.promise_rig import Blind, FixedCap, Router, Source, Tcp, always, play
from common.setpoint import Setpoint
from common.units import CapFraction, PacketsPerSecond
from models import ThroughputCurve, bundled_host
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.law import DEAD_BEAT, PI, Law, PaperLaw
from xtc.simulation.loads import Load, Pulses, Ramp, Sine, Steady, Steps, walk

DOCS = Path(__file__).parents[2] / "docs"
RAW, PAGE = DOCS / "measured" / "promise.json", DOCS / "reference" / "promise.md"
BEGIN, END = "<!-- tables of benchmarks.xtc.promise -->", "<!-- end of the tables -->"
SECONDS = 300
SKIPPED = 10
"""Seconds at the start that peak and out-of-range seconds ignore."""
SETPOINT = 20e3
FLOOD = 60e3
PAPER = bundled_host("paper").curve
LINE = ThroughputCurve(tuple((CapFraction(n / 2), PacketsPerSecond(n * 50e3)) for n in (1, 2)))
"""A host with a CPU for 100 kp/s, for routers that share one."""
LAWS: dict[str, Callable[[float, ThroughputCurve], Law[Any]]] = {
    "default": lambda *_: AdaptiveLaw(),
    "pi": lambda *_: PaperLaw(PI),
    "dead-beat": lambda *_: PaperLaw(DEAD_BEAT),
    "fixed cap": lambda setpoint, curve: FixedCap(
        CapFraction(curve.cap_for(PacketsPerSecond(setpoint)))
    ),
}


@dataclass(frozen=True)
class Result:
    """One router in one run."""

    load: str
    law: str
    shield: bool
    setpoint_pps: float
    seconds: int
    wanted_packets: float
    """The smaller of offered load and setpoint, by the step."""
    delivered_packets: float
    over_promise_packets: float
    under_promise_packets: float
    breach_seconds: float
    mean_error: float | None
    """Of the seconds in which the setpoint was wanted all the time; None if there are none."""
    peak_error: float
    """Of the busiest second after the first ten."""
    seconds_above: int
    """With more than 1.1 times the setpoint, after the first ten."""
    seconds_below: int
    """With less than 0.9 times the setpoint, of those in which it was wanted all the time."""


@dataclass(frozen=True)
class Case:
    """A load, and the routers that it is for."""

    name: str
    sources: tuple[Callable[[], Source], ...]
    setpoints: tuple[float, ...] = (SETPOINT,)
    curve: ThroughputCurve = PAPER
    cpus: float | None = None
    """CPUs that the routers share; None is a CPU for each."""
    efficiency: Callable[[float], float] = always
    polls: bool = False
    """Whether its routers use all the CPU that they get, regardless of load."""


def _blind(load: Load) -> Callable[[], Source]:
    return lambda: Blind(load)


def _on_off(cycle: float) -> Case:
    return Case(f"on-off {cycle:g} s", (_blind(Pulses(FLOOD, cycle / 2, cycle)),))


def _floods(base: Load, cycle: float, calm: float) -> Steps:
    """Return a load that is calm for a part of each cycle, and floods for the rest."""
    starts, rates = [], []
    for number in range(math.ceil(SECONDS / cycle)):
        starts += [number * cycle, number * cycle + calm]
        rates += [base.peak, FLOOD]
    return Steps(starts, rates)


def _bursts(calm: float, on: float, every: float, cycle: float) -> Steps:
    """Return floods of `on` seconds in every `every` seconds, and one for the rest of a cycle."""
    rates: dict[float, float] = {}
    for number in range(math.ceil(SECONDS / cycle)):
        for burst in range(round(calm / every)):
            at = number * cycle + burst * every
            rates |= {at: FLOOD, at + on: 0.0}
        rates[number * cycle + calm] = FLOOD
    return Steps(list(rates), list(rates.values()))


def _by_a_third(at: float) -> float:
    return 1 / 3 if SECONDS / 3 <= at < 2 * SECONDS / 3 else 1.0


def _threefold(at: float) -> float:
    return 3.0 if SECONDS / 3 <= at < 2 * SECONDS / 3 else 1.0


CASES = (
    Case("steady flood", (_blind(Steady(FLOOD)),)),
    *(_on_off(cycle) for cycle in (0.5, 2.0, 3.1, 5.3, 10.7, 30.0, 60.0)),
    Case("sine 5-35k, 20 s", (_blind(Sine(5e3, 35e3, 20.3)),)),
    Case("ramp 0-60k, 120 s", (_blind(Ramp(0.0, FLOOD, 120.0)),)),
    Case("random walk 2-80k", (_blind(walk(2e3, 80e3, 0.5, SECONDS, 5)),)),
    Case("14k, then 60k", (_blind(_floods(Steady(14e3), 60.0, 50.0)),)),
    Case("micro-bursts 12k, then 60k", (_blind(_bursts(50.0, 0.05, 0.25, 60.0)),)),
    Case("busy-poll 8k, then 60k", (_blind(_floods(Steady(8e3), 60.0, 50.0)),), polls=True),
    Case("busy-poll, on-off 20 s", (_blind(Pulses(FLOOD, 10.15, 20.3)),), polls=True),
    Case("trains 50 ms a second", (_blind(Pulses(FLOOD, 0.05, 1.0)),)),
    Case("trains 200 ms in 310", (_blind(Pulses(FLOOD, 0.2, 0.31)),)),
    Case("efficiency x1/3, x1", (_blind(Steady(90e3)),), efficiency=_by_a_third),
    Case("efficiency x3, x1", (_blind(Steady(90e3)),), efficiency=_threefold),
    Case("TCP, 1 flow", (partial(Tcp, 1),)),
    *(Case(f"TCP, {flows} flows", (partial(Tcp, flows),)) for flows in (4, 12, 32)),
    Case(
        "two on one CPU, 40k + 30k",
        (_blind(Steady(90e3)), _blind(Pulses(90e3, 20.0, 40.0))),
        setpoints=(40e3, 30e3),
        curve=LINE,
        cpus=1.0,
    ),
)


def results(laws: tuple[str, ...], cases: tuple[Case, ...], seconds: int) -> Iterator[Result]:
    """Run everything that the tables show, with and without the shield in turns."""
    for case in cases:
        for law in laws:
            for shield in (False, True):
                yield from _run(case, law, seconds, shield=shield)


def _run(case: Case, law: str, seconds: int, *, shield: bool) -> Iterator[Result]:
    routers = [
        Router(
            Setpoint(setpoint),
            case.curve,
            source(),
            LAWS[law](setpoint, case.curve),
            shield,
            case.efficiency,
            case.polls,
            seed=number,
        )
        for number, (source, setpoint) in enumerate(
            zip(case.sources, case.setpoints, strict=True), start=1
        )
    ]
    play(routers, seconds, case.cpus)
    for number, router in enumerate(routers):
        name = case.name if len(routers) == 1 else f"{case.name}: {'AB'[number]}"
        yield _result(name, law, router)


def _result(name: str, law: str, router: Router) -> Result:
    setpoint, account = router.setpoint.rate, router.playing.account
    later = router.seconds[SKIPPED:]
    always_wanted = [second.delivered for second in later if second.always_wanted]
    mean = sum(always_wanted) / len(always_wanted) if always_wanted else None
    return Result(
        load=name,
        law=law,
        shield=router.shield,
        setpoint_pps=setpoint,
        seconds=len(router.seconds),
        wanted_packets=round(router.wanted, 3),
        delivered_packets=round(sum(second.delivered for second in router.seconds), 3),
        over_promise_packets=round(account.over, 3),
        under_promise_packets=round(account.under, 3),
        breach_seconds=round(account.breach_s, 3),
        mean_error=None if mean is None else round(mean / setpoint - 1, 6),
        peak_error=round(max(second.delivered for second in later) / setpoint - 1, 6),
        seconds_above=sum(second.delivered > 1.1 * setpoint for second in later),
        seconds_below=sum(delivered < 0.9 * setpoint for delivered in always_wanted),
    )


def _kept(result: Result) -> str:
    """Return the excess and the shortfall, in per mille of the wanted packets, and the seconds."""
    over = 1e3 * result.over_promise_packets / result.wanted_packets
    under = 1e3 * result.under_promise_packets / result.wanted_packets
    return f"{over:.3g} / {under:.3g} / {result.breach_seconds:.3g}"


def _seconds(result: Result) -> str:
    """Return the usual figures of a law's trial, from the seconds."""
    mean = "-" if result.mean_error is None else f"{100 * result.mean_error:+.1f}"
    return (
        f"{mean} / {100 * result.peak_error:+.0f} / {result.seconds_above} / {result.seconds_below}"
    )


TABLES = (
    ("Over / under the promise, per mille of what was wanted / seconds in breach", _kept),
    ("Mean error % / peak % / seconds above 1.1 / below 0.9 of the setpoint", _seconds),
)


def markdown(found: list[Result]) -> str:
    """Return the tables as a page has them."""
    lines = []
    for title, cell in TABLES:
        for shield in (True, False):
            laws = list(dict.fromkeys(result.law for result in found))
            lines += ["", f"{title}; {'with' if shield else 'without'} the shield:", ""]
            lines += [f"| load | {' | '.join(laws)} |", "| --- " * (len(laws) + 1) + "|"]
            lines += [
                f"| {load} | {' | '.join(cells)} |" for load, cells in _rows(found, shield, cell)
            ]
    return "\n".join(lines[1:])


def _rows(
    found: list[Result], shield: bool, cell: Callable[[Result], str]
) -> Iterator[tuple[str, list[str]]]:
    rows: dict[str, list[str]] = {}
    for result in found:
        if result.shield is shield:
            rows.setdefault(result.load, []).append(cell(result))
    yield from rows.items()


def with_tables(page: str, found: list[Result]) -> str:
    """Return a page with its tables replaced by these."""
    begin, rest = page.split(BEGIN)
    return f"{begin}{BEGIN}\n\n{markdown(found)}\n\n{END}{rest.split(END)[1]}"


def as_json(found: list[Result]) -> str:
    """Return the raw results, one per line."""
    rows = ",\n".join(json.dumps(asdict(result)) for result in found)
    return f"[\n{rows}\n]\n"


def read_json(text: str) -> list[Result]:
    """Read raw results."""
    return [Result(**row) for row in json.loads(text)]


def _show(found: list[Result]) -> None:
    console = Console(highlight=False, width=150)
    laws = list(dict.fromkeys(result.law for result in found))
    for title, cell in TABLES:
        for shield in (True, False):
            words = f"{title}; {'with' if shield else 'without'} the shield"
            table = Table(title=words, box=None, header_style="bold", title_justify="left")
            for heading in ("load", *laws):
                table.add_column(heading, justify="left" if heading == "load" else "right")
            for load, cells in _rows(found, shield, cell):
                table.add_row(load, *cells)
            console.print(table)
    console.print("Simulated.")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every run as JSON")
    parser.add_argument(
        "--docs", action="store_true", help="write the tables of docs/reference/promise.md"
    )
    options = parser.parse_args()
    found = list(results(tuple(LAWS), CASES, SECONDS))
    text = as_json(found)
    RAW.write_text(text)
    if options.docs:
        PAGE.write_text(with_tables(PAGE.read_text(), found))
    if options.json:
        sys.stdout.write(text)
    else:
        _show(found)


if __name__ == "__main__":
    main()
