"""Runs in dom0: measures a guest's throughput by cap, then holds it in one way after the other.

`task.json` has the runs and their constants; benchmarks.evaluation.xtc.xen on the host writes it.
Each run begins with an uncapped guest that the flood reaches, whatever was before.
"""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import libvirt
from capmap import CapMap
from daemon import URI, Daemon, command
from guests import Guest
from report import OUT, Findings, Report
from samples import Sample, Samples, released

TASK: Final = Path("/job/task.json")
GOLD: Final = "gold"
WARM: Final = 0.3
"""Of the offered load: the setpoint of a first hold, which no run repeats."""
NO_ANSWER: Final = "no daemon answers"
"""In xtc's words where the answer comes too late: a shield in emulation may take seconds."""
DRAIN_S: Final = 0.5
"""For what a small cap has left in the guest's queue."""


class Laws:
    """A guest, its daemon, and the way in which it is held."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task
        connection, offered_pps = libvirt.open(URI), task["offered_pps"]
        self._gold = Guest(connection, GOLD, 1, offered_pps=offered_pps, words=["thief"])
        self.samples = Samples(OUT)
        self._daemon = Daemon([GOLD], task["period_s"], self.samples)
        self._map = CapMap()
        self._table = ""
        """The lines of the router's table that the daemon has loaded."""
        self._held = False

    def prepare(self) -> Findings:
        """Start guest, daemon and flood, and hold the guest once: what is slow is slow now."""
        tries = self._gold.start()
        ready = self._daemon.start(OUT / "daemon.log")
        self._gold.flood()
        self._activate(WARM * self._task["offered_pps"])
        self.samples.wait([GOLD], self._task["settle"])
        self._release()
        return {"tries": tries, "ready_after_s": ready}

    def caps(self) -> Findings:
        """Measure the throughput at each cap, in samples."""
        steps = []
        for percent in self._task["caps_percent"]:
            self._gold.set_cap(percent)
            self.samples.wait([GOLD], 1)  # it has two caps
            begun = time.monotonic()
            self.samples.wait([GOLD], self._task["samples_a_cap"], begun)
            steps.append((percent, _rates(self.samples.of(GOLD, begun))))
        self._gold.set_cap(0)
        self._map = CapMap(steps)
        return {"steps": steps}

    def run(self, order: Findings) -> Findings:
        """Hold the guest in one way, and watch it once it had its samples to settle."""
        setpoint_pps, begin_percent = order["setpoint_pps"], order["begin_percent"]
        fixed = self._map.percent_for(setpoint_pps or 0.0)
        self._begin_again(order["theft"] * fixed / 100)
        self._gold.set_cap(max(1, round(fixed)) if begin_percent is None else begin_percent)
        self._load(order["law"], order["table"])
        self.samples.wait([GOLD], 1)  # the daemon has to see the cap before it takes over
        if order["law"]:
            self._activate(setpoint_pps)
        self.samples.wait([GOLD], self._task["settle"])
        seen = self.samples.watch([GOLD], self._task["counted"] - 1)
        return {"seen": seen, "fixed_percent": round(fixed, 2), "cap_percent": self._gold.cap}

    def _begin_again(self, theft: float) -> None:
        """Undo the run before, and have the thief take a share of a CPU."""
        if self._held:
            self._release()
        self._gold.set_cap(0)
        time.sleep(DRAIN_S)
        self._gold.steal(theft)

    def _load(self, law: str, table: str) -> None:
        """Have the daemon load a law, unless it has it or does not need it."""
        if not law or table == self._table:
            return
        begun = time.monotonic()
        self._daemon.reload(table)
        self.samples.wait_for(GOLD, lambda sample: bool(sample["law"] == law), begun)
        self._table = table

    def _activate(self, setpoint_pps: float) -> None:
        """Hold the guest, even if the daemon takes longer than xtc waits for its answer."""
        begun, asked = time.monotonic(), round(setpoint_pps)
        self._held = True
        try:
            command("activate", GOLD, "--setpoint", str(asked))
        except RuntimeError as error:
            if NO_ANSWER not in str(error):
                raise
            self.samples.wait_for(GOLD, lambda one: bool(one["setpoint_pps"] == asked), begun)

    def _release(self) -> None:
        """Release, and wait until it is done: a slow hypervisor outlasts xtc's patience."""
        begun = time.monotonic()
        try:
            command("release", GOLD)
        except RuntimeError:
            self.samples.wait_for(GOLD, released, begun)
        self._held = False


def _rates(samples: list[Sample]) -> list[float]:
    return [one["throughput_pps"] for one in samples if one["throughput_pps"] is not None]


def main() -> None:
    """Do the task; a run that fails stops no other."""
    task = json.loads(TASK.read_text())
    laws = Laws(task)
    report = Report(laws.samples)
    if report.add("prepare", laws.prepare) and report.add("caps", laws.caps):
        for order in task["runs"]:
            report.add(order["name"], partial(laws.run, order))


if __name__ == "__main__":
    main()
