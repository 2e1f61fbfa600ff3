"""The samples of a boot as the host reads them: with what the emulator was given meanwhile."""

import bisect
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

Sample = dict[str, Any]
REPORTED: Final = (
    *("aspect", "tick", "at", "vr", "domid", "mode", "finding", "setpoint_pps"),
    *("throughput_pps", "offered_pps", "cap", "used", "binding"),
)
COUNTED: Final = ("counted_at", "cpu_s", "forwarded", "offered", "dom0_steal_s")
DERIVED: Final = (
    *("span_s", "counted_cpu", "counted_pps", "packets_per_cpu_s"),
    *("guests_waited", "dom0_waited"),
)
IDLE: Final = {"ran_s": 0.0, "waited_s": 0.0}


class Host:
    """How long the emulated CPUs had to wait for a real one, as `xen.share` noted it."""

    def __init__(self, notes: Sequence[Sample]) -> None:
        self._notes = notes
        self._walls = [note["wall"] for note in notes]

    def waited(self, who: str, start: float, end: float) -> float | None:
        """Return which part of the time that it wanted to run it waited; None if unknown."""
        first = max(bisect.bisect_right(self._walls, start) - 1, 0)
        last = min(bisect.bisect_left(self._walls, end), len(self._walls) - 1)
        if first >= last:
            return None
        old, new = (self._notes[place].get(who, IDLE) for place in (first, last))
        ran, waited = (new[key] - old[key] for key in IDLE)
        return float(waited / (ran + waited)) if ran + waited > 0 else 0.0


def read(folder: Path) -> list[Sample]:
    """Return the samples of a boot, each with what happened since its router's sample before."""
    host = Host(_lines(folder / "host.jsonl"))
    before: dict[str, Sample] = {}
    samples = _lines(folder / "samples.jsonl")
    for sample in samples:
        sample.update(_derived(before.get(sample["vr"], {}), sample, host))
        before[sample["vr"]] = sample
    return samples


def _lines(path: Path) -> list[Sample]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def _derived(old: Sample, new: Sample, host: Host) -> Sample:
    """Return what lies between two samples of one life; nothing between two lives."""
    if "domid" not in new or old.get("domid") != new["domid"]:
        return {}
    span, cpu = new["counted_at"] - old["counted_at"], new["cpu_s"] - old["cpu_s"]
    packets = new["forwarded"] - old["forwarded"]
    return {
        "span_s": span,
        "counted_cpu": cpu / span,
        "counted_pps": packets / span,
        "packets_per_cpu_s": packets / cpu if cpu > 0 else None,
        "guests_waited": host.waited("guests", old["wall"], new["wall"]),
        "dom0_waited": host.waited("dom0", old["wall"], new["wall"]),
    }


def write_csv(samples: Sequence[Sample], to: Path) -> None:
    """Write one line for each router and tick."""
    with to.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*REPORTED, *COUNTED, *DERIVED))
        for sample in samples:
            writer.writerow(_cell(sample.get(key)) for key in (*REPORTED, *COUNTED, *DERIVED))


def _cell(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value
