"""Runs in dom0: has the real daemon hold two routers, does to them what happens to routers, and
writes down what was seen. It judges nothing: that is for the tests on the host.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import libvirt
from daemon import URI, Daemon, command, program
from guests import Guest
from report import OUT, Findings, Report
from samples import Sample, Samples, released, settled_after, window

PERIOD_S: Final = 2.0
"""Of the daemon: an emulated dom0 on a busy host is late at 1 s, and Xen's slices are 30 ms."""
SETTLING, WATCHED, FREE, LATEST = 8, 10, 4, 20
"""Samples: to settle, to be watched held and not held, and to notice a foreign cap in."""
HIGH, LOW = 0.4, 0.16
"""Setpoints, as parts of what a guest forwards uncapped: dom0 takes host CPU from both later."""
WEIGHTY: Final = 0.65
"""A part that takes more than an equal share of the CPU, on a fast machine too."""
ORIGINAL_CAP: Final = 95
"""What somebody gave the second guest before xtc came: a release must put that back."""
ORIGINAL_WEIGHT: Final = 300
"""And its weight, where Xen's own is 256."""
FOREIGN_CAP: Final = 77
MEMORY: Final = 60
"""Samples in which xtc yields to the third foreign cap that it sees before it overwrites it."""
CAP_CHANGES: Final = 50


def capped(sample: Sample) -> bool:
    """Whether a router's loop is closed, with a cap in force."""
    return sample["mode"] == "closed_loop" and sample["cap"] is not None


class Exercise:
    """Two guests, one daemon, and an aspect of their life at a time."""

    def __init__(self) -> None:
        connection = libvirt.open(URI)
        self.gold, self.silver = (Guest(connection, n, i) for i, n in ((1, "gold"), (2, "silver")))
        self.guests = [self.gold, self.silver]
        self.names = [guest.name for guest in self.guests]
        self.samples = Samples(OUT)
        self.daemon = Daemon(self.names, PERIOD_S, self.samples)
        self.high = self.low = 0.0
        self.free = 0.0
        """What gold forwards uncapped, once it is warm: in the first flood it is not."""

    def discover(self) -> Findings:
        """Start both guests, ask xtc what it would control, and start the daemon."""
        tries = {guest.name: guest.start() for guest in self.guests}
        self.silver.set_cap(ORIGINAL_CAP)
        self.silver.set_weight(ORIGINAL_WEIGHT)
        lives = {guest.name: [guest.domid, guest.uuid] for guest in self.guests}
        found = program("discover", "--uri", URI)
        checked, ready = command("config", "check"), self.daemon.start(OUT / "daemon.log")
        found = {"guests": lives, "hosts": found, "check": checked, "tries": tries}
        return found | {"ready_after_s": ready}

    def flood(self) -> Findings:
        """Flood both, and see what they forward while xtc does not hold them."""
        for guest in self.guests:
            guest.flood()
        seen = self._watched(self.names, FREE)
        least = min(one["throughput_pps"] for one in seen.values())
        self.high, self.low = round(HIGH * least), round(LOW * least)
        return {"seen": seen, "high_pps": self.high, "low_pps": self.low}

    def latency(self) -> Findings:
        """Change the cap often, under load, while the daemon leaves it alone."""
        took = sorted(self.gold.set_cap(20 + i) * 1e3 for i in range(CAP_CHANGES))
        self.gold.set_cap(0)
        deciles = statistics.quantiles(took, n=10)
        return {"median_ms": statistics.median(took), "p90_ms": deciles[-1], "max_ms": took[-1]}

    def hold(self) -> Findings:
        """Hold both at different setpoints."""
        before = {"caps_before": self._caps(), "weights_before": self._weights()}
        held = self._held("activate", self.high, self.low)
        return {**before, **held, "weights": self._weights()}

    def retune(self) -> Findings:
        """Swap the setpoints."""
        return self._held("retune", self.low, self.high)

    def _held(self, order: str, gold_pps: float, silver_pps: float) -> Findings:
        setpoints = {"gold": gold_pps, "silver": silver_pps}
        begun = {}
        for name, pps in setpoints.items():
            begun[name] = time.monotonic()
            command(order, name, "--setpoint", f"{pps:.0f}")
        return {"setpoints": setpoints, **self._judgeable(begun)}

    def _judgeable(self, begun: dict[str, float]) -> Findings:
        """Give loops their samples to settle, then watch both routers."""
        self.samples.wait(list(begun), SETTLING, max(begun.values()))
        seen = self._watched(self.names, WATCHED)
        settled = {n: settled_after(self.samples.of(n, at)) for n, at in begun.items()}
        return {"seen": seen, "settled_samples": settled}

    def _watched(self, names: list[str], count: int) -> Findings:
        """Return what routers do from here on, with the cap that libvirt tells."""
        seen = self.samples.watch(names, count)
        for guest in self.guests:
            if guest.name in seen:
                seen[guest.name]["cap_percent"] = guest.cap
        return seen

    def pause(self) -> Findings:
        """Pause a router and give it another setpoint; then resume it."""
        command("pause", "gold")
        self.samples.wait(["gold"], 2)
        before = self.gold.cap
        report = command("retune", "gold", "--setpoint", f"{self.high:.0f}")[0]
        caps, begun = [], time.monotonic()
        for _ in range(5):
            self.samples.wait(["gold"], 1)
            caps.append(self.gold.cap)
        paused = window(self.samples.of("gold", begun))
        command("resume", "gold")
        self.samples.wait(["gold"], SETTLING)
        seen = self._watched(["gold"], WATCHED)
        found = {
            "cap_before": before,
            "caps": caps,
            "report": report,
            "resumed": seen,
            "paused": paused,
        }
        return found | {"low_pps": self.low, "high_pps": self.high}

    def release(self) -> Findings:
        """Release one router alone."""
        self._hold("gold")
        answer = self._release(command, "gold")
        cap = self.gold.cap
        seen = self._watched(["gold"], FREE)
        self.free = seen["gold"]["throughput_pps"]
        return {"answer": answer, "cap": cap, "seen": seen, "setpoint_pps": self.high}

    def _hold(self, *names: str) -> None:
        for name in names:
            command("activate", name, "--setpoint", f"{self.high:.0f}")
        self.samples.wait(names, SETTLING)

    def _release(self, run: Callable[..., Any], which: str) -> str:
        """Release, and wait until it is done: a slow hypervisor outlasts xtc's patience."""
        begun, answer = time.monotonic(), "done"
        try:
            run("release", which)
        except RuntimeError as error:
            answer = str(error)
        for name in (guest.name for guest in self.guests if which in {"--all", guest.name}):
            self.samples.wait_for(name, released, begun)
        return answer

    def foreign(self) -> Findings:
        """Change the cap behind xtc's back until it yields, and have it resume."""
        self._hold("gold")
        corrected: list[float] = []
        begun = time.monotonic()
        while not self._yielded("gold", begun):
            if len(self.samples.of("gold", begun)) > MEMORY:
                raise RuntimeError(f"xtc corrects without end: {corrected}")
            corrected.append(self._change_behind_its_back())
            self.samples.wait(["gold"], 1)  # a cap that is under way would hide the next change
        self.samples.wait(["gold"], 3)
        report, cap = command("status", "gold")[0], self.gold.cap
        command("resume", "gold")
        self.samples.wait(["gold"], SETTLING)
        found = {"corrected_s": corrected, "report": report, "cap": cap}
        return found | {"resumed": command("status", "gold")[0], "resumed_cap": self.gold.cap}

    def _change_behind_its_back(self) -> float:
        """Return after how many seconds the cap was another, or xtc yielded."""
        change = ["virsh", "-c", URI, "schedinfo", "gold", "--set", f"cap={FOREIGN_CAP}"]
        subprocess.run(change, check=True, capture_output=True)
        begun = time.monotonic()
        while self.gold.cap == FOREIGN_CAP and not self._yielded("gold", begun):
            if len(self.samples.of("gold", begun)) > LATEST:
                raise TimeoutError("xtc does not notice a foreign cap")
            time.sleep(0.2)
        return round(time.monotonic() - begun, 1)

    def _yielded(self, name: str, since: float) -> bool:
        return any(one["finding"] == "foreign" for one in self.samples.of(name, since))

    def restart(self) -> Findings:
        """Destroy a guest and start it again: another domid, other interfaces."""
        self._hold("gold", "silver")
        before, begun = self._life(self.gold), time.monotonic()
        self.gold.destroy()
        gone = self.samples.wait_for("gold", lambda sample: sample["finding"] == "gone", begun)
        tries, begun = self.gold.start(), time.monotonic()
        again = self.samples.wait_for("gold", capped, begun)
        found: Findings = {"gone_after_s": gone, "tries": tries, "capped_after_s": again}
        found |= self._judgeable({"gold": begun + again})
        found |= {"before": before, "after": self._life(self.gold)}
        return found | {"setpoints": dict.fromkeys(("gold", "silver"), self.high)}

    def _life(self, guest: Guest) -> Findings:
        interfaces = command("status", guest.name)[0]["interfaces"]
        return {"domid": guest.domid, "interfaces": interfaces}

    def crash(self) -> Findings:
        """Kill the daemon, start another, and release everything.

        Gold needs more than an equal share of the host: its weight is raised when the daemon is
        killed.
        """
        self._held("retune", WEIGHTY * self.free, self.low)
        self.daemon.kill()
        time.sleep(0.5)  # for what libvirtd was doing
        found: Findings = {"left_behind": self._caps(), "weights": self._weights()}
        time.sleep(3.0)
        found["unattended"] = self._caps()
        self.daemon.start(OUT / "daemon.log")
        found["adopted"] = self._caps()
        self.samples.wait(self.names, SETTLING)
        found["seen"] = self._watched(self.names, FREE)
        found["answer"] = self._release(program, "--all")
        found["released"] = self._caps()
        found["free"] = self._watched(self.names, FREE)
        found |= {"exit_code": self.daemon.stop(), "left": self._caps()}
        return found | {"left_weights": self._weights()}

    def _caps(self) -> list[int]:
        return [guest.cap for guest in self.guests]

    def _weights(self) -> list[int]:
        return [guest.weight for guest in self.guests]


def main() -> None:
    """Go through the aspects named on the command line."""
    exercise = Exercise()
    report = Report(exercise.samples)
    for name in sys.argv[1:]:
        report.add(name, getattr(exercise, name))


if __name__ == "__main__":
    main()
