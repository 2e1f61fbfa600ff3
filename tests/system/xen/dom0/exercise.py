"""Runs in dom0: has the real daemon hold two routers, does to them what happens to routers, and
writes down what was seen. It judges nothing: that is for the tests on the host.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import libvirt
from daemon import URI, Daemon, command, program, settled_after
from guests import Guest, measure

OUT: Final = Path("/job/out")
PERIOD_S: Final = 2.0
"""Of the daemon: an emulated dom0 on a busy host is late at 1 s, and Xen's slices are 30 ms."""
SETTLING_S, LATEST_S, WATCHED_S = 5 * PERIOD_S, 20 * PERIOD_S, 10 * PERIOD_S
HIGH, LOW = 0.4, 0.16
"""Setpoints, as parts of what a guest forwards uncapped: dom0 takes host CPU from both later."""
ORIGINAL_CAP: Final = 95
"""What somebody gave the second guest before xtc came: a release must put that back."""
FOREIGN_CAP: Final = 77
CAP_CHANGES: Final = 50
FAILURES: Final = (
    libvirt.libvirtError,
    subprocess.SubprocessError,
    OSError,
    LookupError,
    RuntimeError,
    ValueError,
)
Findings = dict[str, Any]


def say(words: str) -> None:
    """Tell whoever waits on the host; the mark is machine.py's."""
    sys.stdout.write(f"[xtc] {words}\n")
    sys.stdout.flush()


def capped(report: Findings) -> bool:
    """Whether a router's loop is closed, with a cap in force."""
    return report["mode"] == "closed_loop" and report["cap"] is not None


class Exercise:
    """Two guests, one daemon, and an aspect of their life at a time."""

    def __init__(self) -> None:
        connection = libvirt.open(URI)
        self.gold, self.silver = (Guest(connection, n, i) for i, n in ((1, "gold"), (2, "silver")))
        self.guests = [self.gold, self.silver]
        self.daemon = Daemon([guest.name for guest in self.guests], PERIOD_S, OUT)
        self.high = self.low = 0.0

    def discover(self) -> Findings:
        """Start both guests, ask xtc what it would control, and start the daemon."""
        for guest in self.guests:
            guest.start()
        self.silver.set_cap(ORIGINAL_CAP)
        lives = {guest.name: [guest.domid, guest.uuid] for guest in self.guests}
        found = program("discover", "--uri", URI)
        checked, ready = command("config", "check"), self.daemon.start()
        return {"guests": lives, "hosts": found, "check": checked, "ready_after_s": ready}

    def flood(self) -> Findings:
        """Flood both, and see what they forward while xtc does not hold them."""
        for guest in self.guests:
            guest.flood()
        seen = measure(self.guests, 8)
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
        before = self._caps()
        return {"caps_before": before, **self._held("activate", self.high, self.low)}

    def retune(self) -> Findings:
        """Swap the setpoints."""
        return self._held("retune", self.low, self.high)

    def _held(self, order: str, gold_pps: float, silver_pps: float) -> Findings:
        setpoints = {"gold": gold_pps, "silver": silver_pps}
        begun = {}
        for name, pps in setpoints.items():
            begun[name] = time.monotonic()
            command(order, name, "--setpoint", f"{pps:.0f}")
        time.sleep(SETTLING_S)
        while (
            None in self._settled(**begun).values() and time.monotonic() < begun["gold"] + LATEST_S
        ):
            time.sleep(PERIOD_S)
        seen = measure(self.guests, WATCHED_S)
        return {"setpoints": setpoints, "seen": seen, "settled_s": self._settled(**begun)}

    def _settled(self, **begun: float) -> dict[str, float | None]:
        return {n: settled_after(self.daemon.ticks(n, at), at) for n, at in begun.items()}

    def pause(self) -> Findings:
        """Pause a router and give it another setpoint; then resume it."""
        command("pause", "gold")
        time.sleep(2 * PERIOD_S)
        before = self.gold.cap
        report = command("retune", "gold", "--setpoint", f"{self.high:.0f}")[0]
        caps = []
        for _ in range(10):
            time.sleep(0.5 * PERIOD_S)
            caps.append(self.gold.cap)
        command("resume", "gold")
        time.sleep(SETTLING_S)
        seen = measure([self.gold], WATCHED_S)
        found = {"cap_before": before, "caps": caps, "report": report, "resumed": seen}
        return found | {"low_pps": self.low, "high_pps": self.high}

    def release(self) -> Findings:
        """Release one router alone."""
        self._hold("gold")
        answer = self._release(command, "gold")
        cap = self.gold.cap
        time.sleep(2.0)
        seen = measure([self.gold], 6)
        return {"answer": answer, "cap": cap, "seen": seen, "setpoint_pps": self.high}

    def _hold(self, *names: str) -> None:
        for name in names:
            command("activate", name, "--setpoint", f"{self.high:.0f}")
        time.sleep(SETTLING_S)

    def _release(self, run: Callable[..., Any], which: str) -> str:
        """Release, and wait until it is done: a slow hypervisor outlasts xtc's patience."""
        begun, answer = time.monotonic(), "done"
        try:
            run("release", which)
        except RuntimeError as error:
            answer = str(error)
        for name in (guest.name for guest in self.guests if which in {"--all", guest.name}):
            self.daemon.wait_for(name, lambda report: not report["active"], 20, since=begun)
        return answer

    def foreign(self) -> Findings:
        """Change the cap behind xtc's back until it yields, and have it resume."""
        self._hold("gold")
        corrected: list[float] = []
        begun = time.monotonic()
        while not self._yielded("gold", begun):
            if len(corrected) >= 8:
                raise RuntimeError(f"xtc corrects without end: {corrected}")
            corrected.append(self._change_behind_its_back())
        time.sleep(3 * PERIOD_S)
        report, cap = command("status", "gold")[0], self.gold.cap
        command("resume", "gold")
        time.sleep(SETTLING_S)
        found = {"corrected_s": corrected, "report": report, "cap": cap}
        return found | {"resumed": command("status", "gold")[0], "resumed_cap": self.gold.cap}

    def _change_behind_its_back(self) -> float:
        """Return after how many seconds the cap was another, or xtc yielded."""
        change = ["virsh", "-c", URI, "schedinfo", "gold", "--set", f"cap={FOREIGN_CAP}"]
        subprocess.run(change, check=True, capture_output=True)
        begun = time.monotonic()
        while self.gold.cap == FOREIGN_CAP and not self._yielded("gold", begun):
            if time.monotonic() - begun > 20 * PERIOD_S:
                raise TimeoutError("xtc does not notice a foreign cap")
            time.sleep(0.2)
        return round(time.monotonic() - begun, 1)

    def _yielded(self, name: str, since: float) -> bool:
        return any(report["finding"] == "foreign" for _, report in self.daemon.ticks(name, since))

    def restart(self) -> Findings:
        """Destroy a guest and start it again: another domid, other interfaces."""
        self._hold("gold", "silver")
        before, begun = self._life(self.gold), time.monotonic()
        self.gold.destroy()
        gone = self.daemon.wait_for("gold", lambda report: report["finding"] == "gone", 30, begun)
        self.gold.start()
        begun = time.monotonic()
        again = self.daemon.wait_for("gold", capped, 60)
        found: Findings = {"gone_after_s": gone, "capped_after_s": again}
        time.sleep(SETTLING_S)
        found |= {"seen": measure(self.guests, WATCHED_S), "settled_s": self._settled(gold=begun)}
        found |= {"before": before, "after": self._life(self.gold)}
        return found | {"setpoints": dict.fromkeys(("gold", "silver"), self.high)}

    def _life(self, guest: Guest) -> Findings:
        interfaces = command("status", guest.name)[0]["interfaces"]
        return {"domid": guest.domid, "interfaces": interfaces}

    def crash(self) -> Findings:
        """Kill the daemon, start another, and release everything."""
        self.daemon.kill()
        time.sleep(0.5)  # for what libvirtd was doing
        found: Findings = {"left_behind": self._caps()}
        time.sleep(3.0)
        found["unattended"] = self._caps()
        self.daemon.start()
        found["adopted"] = self._caps()
        time.sleep(SETTLING_S)
        found["seen"] = measure(self.guests, 10)
        found["answer"] = self._release(program, "--all")
        found["released"] = self._caps()
        time.sleep(2.0)
        found["free"] = measure(self.guests, 6)
        return found | {"exit_code": self.daemon.stop(), "left": self._caps()}

    def _caps(self) -> list[int]:
        return [guest.cap for guest in self.guests]


def main() -> None:
    """Go through the aspects named on the command line; what fails is written down as such."""
    exercise, report = Exercise(), dict[str, Findings]()
    for name in sys.argv[1:]:
        aspect: Callable[[], Findings] = getattr(exercise, name)
        begun = time.monotonic()
        try:
            report[name] = aspect()
        except FAILURES:
            report[name] = {"failed": traceback.format_exc()}
        report[name]["took_s"] = round(time.monotonic() - begun, 1)
        state = "failed" if "failed" in report[name] else "done"
        say(f"{name}: {state} in {report[name]['took_s']} s")
        (OUT / "report.json").write_text(json.dumps(report, indent=1))
        # Each time: the host gives up on a dom0 that hangs, and then wants what there is.
        subprocess.run(["tar", "-C", OUT, "-cf", "/dev/vdc", "."], check=True)
        os.sync()


if __name__ == "__main__":
    main()
