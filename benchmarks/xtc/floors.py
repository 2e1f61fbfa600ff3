"""CPU floors: two held routers and a hog on one CPU, with caps alone and with caps and weights.

Set-up: two routers in user space and a process that wants all CPU that it can get, each in its own
control group below one parent group, pinned to one CPU. Sources, sinks and the daemon have the
other CPU, with precedence for sources. A chain of filters checks each packet as it leaves its
router. The forwarder pays for that, so that its CPU limits a router. Setpoints are 60 and 20 % of
one router's throughput alone, and each router's load is a third above its setpoint. In turns, on
one daemon: weights are left the same for all three; the daemon weights the routers by what their
setpoints need.

The parent group has the largest weight in both turns, as an operator gives it to the slice of
routers, so that other programs on the machine do not matter.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.rig import Rig, cpu_seconds, lab_missing, lab_router
from common.arguments import whole_number
from common.units import format_cap, format_rate
from lab.programs.processes import Place, Program, Source
from lab.routers.router import Router
from lab.routers.topology import Lab, default_cpus
from lab.system.cgroups import processes
from xtc.kernel.weights import scale_of
from xtc.wire import Activate, Deactivate

PREFIX: Final = "xtcfloors"
SHARES: Final = {"gold": 0.6, "silver": 0.2}
"""Setpoints, as shares of one router's throughput alone."""
WAYS: Final = {"caps": "keep", "caps and floors": "auto"}
"""Weights of the routers, by way."""
OFFERED: Final = 1.33
"""Load of a router, as a multiple of its setpoint."""
TOO_MUCH: Final = 300e3
"""Packets/s that no router of this bench forwards."""
COMPARISONS: Final = 6_000
"""Filters that check each packet on its way out of a router."""
FOREMOST: Final = -20
"""The nice value of sources."""
GOAL: Final = 0.05


@dataclass(frozen=True)
class Alone:
    """One router that has the CPU to itself."""

    pps: float
    cpu: float
    """CPU use of its forwarder; well below 1, the source was too slow."""


@dataclass(frozen=True)
class Turn:
    """One way over some seconds; rates in packets/s."""

    round: int
    way: str
    pps: dict[str, float]
    """The mean throughput of each router."""
    weights: dict[str, int]
    hog_cpu: float
    """Of one CPU."""


@dataclass(frozen=True)
class Median:
    """Result of a way for one router's setpoint, the median of its turns."""

    way: str
    router: str
    setpoint_pps: float
    pps: float

    @property
    def error(self) -> float:
        """Of the setpoint; negative is too little."""
        return self.pps / self.setpoint_pps - 1

    @property
    def reached(self) -> bool:
        """Whether it is close enough to its setpoint."""
        return abs(self.error) <= GOAL


def medians(turns: Iterable[Turn], setpoints: dict[str, float]) -> list[Median]:
    """Return the medians of each way and router."""
    every = list(turns)
    return [
        Median(
            way,
            router,
            setpoint,
            statistics.median(turn.pps[router] for turn in every if turn.way == way),
        )
        for way in WAYS
        for router, setpoint in setpoints.items()
        if any(turn.way == way for turn in every)
    ]


class Bench:
    """Two routers and a hog under one daemon."""

    def __init__(self, lab: Lab, rig: Rig) -> None:
        self._lab, self._rig = lab, rig
        self._hog: Program | None = None

    def alone(self, seconds: float) -> Alone:
        """Return one router's throughput with the CPU to itself."""
        with self._flood("gold", TOO_MUCH):
            time.sleep(2.0)
            begun, before = time.monotonic(), self._used("gold")
            pps = self._means(seconds)["gold"]
            return Alone(pps, (self._used("gold") - before) / (time.monotonic() - begun))

    def turn(self, number: int, way: str, settle: float, seconds: float) -> Turn:
        """Hold both routers one way next to the hog, which is already running."""
        assert self._hog is not None  # hogged() has begun it
        self._rig.reconfigure(configured(self._lab.routers.values(), WAYS[way]))
        time.sleep(settle)
        begun, before = time.monotonic(), cpu_seconds(self._hog.pid)
        means = self._means(seconds)
        hog = (cpu_seconds(self._hog.pid) - before) / (time.monotonic() - begun)
        return Turn(number, way, means, self._weights(), hog)

    def hold(self, setpoints: dict[str, float], running: ExitStack) -> None:
        """Begin to send to both routers, and hold them next to the hog."""
        for name, setpoint in setpoints.items():
            running.enter_context(self._flood(name, OFFERED * setpoint))
            self._rig.client.call(Activate(name, setpoint))
            running.callback(self._rig.client.call, Deactivate(name))
        self._hog = running.enter_context(self._started_hog())

    def _flood(self, name: str, rate: float) -> Source:
        source = self._lab.routers[name].flood(rate)
        os.setpriority(os.PRIO_PROCESS, source.pid, FOREMOST)
        return source

    def _used(self, name: str) -> float:
        """Return the CPU seconds of a router's forwarder."""
        group = self._lab.routers[name].cgroup
        assert group is not None  # a router in user space has one
        return sum(map(cpu_seconds, processes(group)))

    def _started_hog(self) -> Program:
        group = _top(self._lab) / "hog"
        group.mkdir()
        place = Place(self._lab.dom0_netns, str(group), default_cpus().forwarder)
        return Program("programs.hog", ["1.0"], place)

    def _means(self, seconds: float) -> dict[str, float]:
        before = {name: len(self._rig.recording.of(name)) for name in SHARES}
        self._rig.wait_for_ticks(round(seconds))
        return {
            name: statistics.fmean(
                report.throughput_pps or 0.0
                for _, report in self._rig.recording.of(name)[before[name] :]
            )
            for name in SHARES
        }

    def _weights(self) -> dict[str, int]:
        groups = {name: router.cgroup for name, router in self._lab.routers.items()}
        groups["hog"] = _top(self._lab) / "hog"
        return {name: _weight(group) for name, group in groups.items() if group is not None}


def configured(routers: Iterable[Router], weight: str) -> dict[str, str]:
    """Return the configuration of all routers with one rule for their weights."""
    return {router.name: f'{lab_router(router)}\nweight = "{weight}"' for router in routers}


def _top(lab: Lab) -> Path:
    group = lab.routers["gold"].cgroup
    assert group is not None  # a router in user space has one
    return group.parent


def _weight(group: Path) -> int:
    scale = scale_of(group)
    return 0 if scale is None else int((group / scale.parameter).read_text())


def _prefer(group: Path) -> None:
    """Give the lab's group the largest weight."""
    scale = scale_of(group)
    if scale is not None:
        (group / scale.parameter).write_text(f"{scale.most}\n")


def run(rounds: int, settle: float, seconds: float) -> tuple[Alone, list[Turn]]:
    """Return one router's throughput alone, and all turns."""
    with Lab(PREFIX) as lab:
        for name in SHARES:
            lab.add_router(name, "user-space").set_packet_cost(0, COMPARISONS)
        _prefer(_top(lab))
        with Rig(configured(lab.routers.values(), "keep"), lab) as rig, ExitStack() as running:
            bench = Bench(lab, rig)
            alone = bench.alone(min(5.0, seconds))
            bench.hold(setpoints_of(alone.pps), running)
            turns = [
                bench.turn(number, way, settle, seconds) for number in range(rounds) for way in WAYS
            ]
        return alone, turns


def setpoints_of(alone: float) -> dict[str, float]:
    """Return the setpoints for one router's throughput alone."""
    return {name: share * alone for name, share in SHARES.items()}


def show(alone: Alone, turns: list[Turn]) -> None:
    """Print the table."""
    console = Console()
    console.print(f"one router alone: {format_rate(alone.pps)} with {format_cap(alone.cpu)}")
    table = Table("way", "router", "setpoint", "forwarded", "error", "weight", "hog")
    for median in medians(turns, setpoints_of(alone.pps)):
        last = [turn for turn in turns if turn.way == median.way][-1]
        table.add_row(
            median.way,
            median.router,
            format_rate(median.setpoint_pps),
            format_rate(median.pps),
            f"{median.error:+.1%}",
            str(last.weights[median.router]),
            format_cap(last.hog_cpu),
        )
    console.print(table)


def main() -> None:
    """Measure and print, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=whole_number(1), default=3)
    parser.add_argument("--settle", type=float, default=15.0, help="seconds before each turn")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each turn")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if missing := lab_missing():
        parser.exit(1, "\n".join(missing) + "\n")
    alone, turns = run(options.rounds, options.settle, options.seconds)
    if options.json:
        found = medians(turns, setpoints_of(alone.pps))
        rows = [asdict(one) | {"error": one.error, "reached": one.reached} for one in found]
        raw = [asdict(turn) for turn in turns]
        whole = {"cpus": os.cpu_count(), "alone": asdict(alone), "medians": rows, "turns": raw}
        json.dump(whole, sys.stdout)
    else:
        show(alone, turns)


if __name__ == "__main__":
    main()
