"""Every sample of a run: at each tick what the daemon reported, and what Xen and dom0 counted.

Waits and windows of the exercise are counted in these samples. On a busy host an emulated dom0
ticks late, and seconds say nothing of how much a router and its loop have done meanwhile.
"""

import json
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from counters import Xen

Sample = dict[str, Any]
PATIENCE_S: Final = 240.0
"""For one more sample: a dom0 that is given next to no CPU is waited for."""
LONGEST: Final = 150
"""Samples in which all that is waited for has happened, the start of a guest among it."""
COUNTS: Final = ("forwarded", "cpu_s")
WINDOW: Final = 4
"""Samples whose mean tells that a loop has settled: Xen's credit scheduler gives out CPU in slices
of 30 ms, and a tenth of a CPU is three or four of them a second."""
SETTLED: Final = 0.2


class Samples:
    """All samples so far; the thread that listens to the daemon adds to them."""

    def __init__(self, out: Path) -> None:
        self._xen = Xen()
        self._file = (out / "samples.jsonl").open("w")
        self._all: list[Sample] = []
        self._grown = threading.Condition(threading.RLock())
        self.aspect = ""
        """What the exercise is at."""

    def add(self, tick: Sample) -> None:
        """Add a sample of every router of a tick, with what has been counted by now."""
        counts = self._xen.counts()
        dom0 = {"wall": round(time.time(), 3), "dom0_steal_s": _steal_s()}
        for report in tick["routers"]:
            sample = {"aspect": self.aspect, "tick": tick["tick"], "at": tick["at"], **report}
            sample |= dom0 | counts.get(report["vr"], {})
            self._file.write(json.dumps(sample) + "\n")
            with self._grown:
                self._all.append(sample)
                self._grown.notify_all()
        self._file.flush()

    def of(self, name: str, since: float) -> list[Sample]:
        """Return a router's samples of the ticks since an instant."""
        with self._grown:
            return [one for one in self._all if one["vr"] == name and one["at"] >= since]

    def wait_for(self, name: str, holds: Callable[[Sample], bool], since: float) -> float:
        """Wait until something holds of a sample; return how long after that instant it was, in s.

        Raises:
            TimeoutError: no more samples come, or it holds of none of very many.
        """
        checked = 0
        while True:
            found = self.of(name, since)
            for sample in found[checked:]:
                if holds(sample):
                    return round(float(sample["at"]) - since, 1)
            checked = len(found)
            if checked > LONGEST:
                raise TimeoutError(f"{name} in {checked} samples: {found[-1]}")
            self._wait_for_more(name, since, checked)

    def wait(self, names: Sequence[str], count: int, since: float | None = None) -> None:
        """Wait until each router was seen in so many samples since an instant.

        Raises:
            TimeoutError: no more samples come, or too many without a throughput.
        """
        begun = time.monotonic() if since is None else since
        for name in names:
            self.wait_for(name, _seen_times(count), begun)

    def _wait_for_more(self, name: str, since: float, known: int) -> None:
        with self._grown:
            if not self._grown.wait_for(lambda: len(self.of(name, since)) > known, PATIENCE_S):
                raise TimeoutError(f"no sample of {name} in {PATIENCE_S:.0f} s")

    def watch(self, names: Sequence[str], count: int) -> dict[str, Sample]:
        """Watch routers for so many samples and return what each forwarded and used."""
        begun = time.monotonic()
        self.wait(names, count + 1, begun)
        return {name: window(self.of(name, begun)) for name in names}


def released(sample: Sample) -> bool:
    """Whether what stood there before a router was held is in force again."""
    return not sample["active"] and not sample["problem"]


def _seen_times(count: int) -> Callable[[Sample], bool]:
    """Return what holds of the sample with which a router was seen so many times."""
    seen = 0

    def holds(sample: Sample) -> bool:
        nonlocal seen
        seen += sample["throughput_pps"] is not None
        return seen >= count

    return holds


def _steal_s() -> float:
    """Return how long Xen has kept dom0 waiting."""
    return int(Path("/proc/stat").read_text().split()[8]) / 100


def window(samples: Sequence[Sample]) -> Sample:
    """Return what a router forwarded and used from the first of some samples to the last.

    What was offered to it is the daemon's count: what a shield drops is not in dom0's.

    Raises:
        RuntimeError: it did not run all the time, or was started again.
    """
    counted = [one for one in samples if "domid" in one]
    if len({one["domid"] for one in counted}) != 1 or len(counted) < len(samples) / 2:
        raise RuntimeError(f"it did not run all the time: {samples}")
    first, last = counted[0], counted[-1]
    span = last["counted_at"] - first["counted_at"]
    forwarded, cpu = (last[key] - first[key] for key in COUNTS)
    offered = [one["offered_pps"] for one in counted[1:] if one["offered_pps"] is not None]
    return {
        "ticks": [first["tick"], last["tick"]],
        "throughput_pps": round(forwarded / span, 1),
        "offered_pps": round(statistics.fmean(offered), 1),
        "cpu_percent": round(cpu / span * 100, 2),
    }


def settled_after(samples: Sequence[Sample]) -> int | None:
    """Return after how many samples the mean of the last four was the setpoint, to 20 %."""
    seen = [one for one in samples if one["throughput_pps"] is not None]
    for end in range(WINDOW, len(seen) + 1):
        part = seen[end - WINDOW : end]
        if any(one["mode"] != "closed_loop" or not one["setpoint_pps"] for one in part):
            continue
        rate = statistics.mean(one["throughput_pps"] for one in part)
        if abs(rate / part[-1]["setpoint_pps"] - 1) < SETTLED:
            return end
    return None
