"""A disk that takes 200 ms for each fsync: delay of a host's ticks while routers are activated.

The daemon is the real one, in a separate process, on simulated routers; only `os.fsync` is made
slow. Routers are activated one after the other, each with a higher epoch, which the journal must
store first. The figure is each tick's delay against the grid of the period.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from xtc.daemon.client import Client
from xtc.errors import Unreachable
from xtc.wire import Activate, Status

PERIOD_S = 0.2
ROUTERS = 20
SLOW = """
import os, sys, time
fsync = os.fsync
os.fsync = lambda descriptor: (time.sleep({seconds}), fsync(descriptor))[1]
from xtc.cli.main import main
sys.argv[0] = "xtc"
main()
"""
_CONFIG = """
[daemon]
period_s = {period}
meter_period_s = 0.05
state_dir = "{folder}/state"
runtime_dir = "{folder}/run"
"""
_ROUTER = """
[router.r{number}]
actuator = {{ kind = "simulated", plant = "r{number}" }}
interfaces = ["r{number}.0"]
model = "paper"
"""


@dataclass(frozen=True)
class Delays:
    """Effect of a slow disk on ticks, and on answers."""

    fsync_s: float
    ticks: int
    tick_p50_ms: float
    tick_p99_ms: float
    """Delay of a tick."""
    tick_max_ms: float
    answer_p50_ms: float
    answer_max_ms: float
    capped_after_max_ms: float
    """From an answer to the first cap in a report; a period of waiting for the report included."""


def measured(fsync_s: float) -> Delays:
    """Activate routers one by one on a disk of this speed."""
    with tempfile.TemporaryDirectory(prefix="xtc-slow-disk-") as folder:
        config = Path(folder) / "xtc.toml"
        tables = "".join(_ROUTER.format(number=number) for number in range(ROUTERS))
        config.write_text(_CONFIG.format(period=PERIOD_S, folder=folder) + tables)
        command = [sys.executable, "-c", SLOW.format(seconds=fsync_s)]
        daemon = subprocess.Popen(
            [*command, "run", "--config", str(config)], stderr=subprocess.DEVNULL
        )
        try:
            return _observed(Path(folder) / "run", fsync_s)
        finally:
            daemon.terminate()
            daemon.wait(60)


def _observed(run: Path, fsync_s: float) -> Delays:
    ticks: list[tuple[float, frozenset[str]]] = []
    answered: dict[str, float] = {}
    took = []
    with Client(run) as client:
        _await_answer(client)
        threading.Thread(target=_listen, args=(run, ticks), daemon=True).start()
        while len(ticks) < 10:
            time.sleep(PERIOD_S)
        begin = len(ticks)
        for number in range(ROUTERS):
            asked = time.monotonic()
            client.call(Activate(f"r{number}", 20e3, epoch=number + 1))
            answered[f"r{number}"] = time.monotonic()
            took.append(answered[f"r{number}"] - asked)
            time.sleep(PERIOD_S / 3)
        time.sleep(5 * PERIOD_S + 4 * fsync_s)
    return _told(ticks[begin:], took, answered, fsync_s)


def _told(
    ticks: list[tuple[float, frozenset[str]]],
    took: list[float],
    answered: dict[str, float],
    fsync_s: float,
) -> Delays:
    origin = ticks[0][0]
    periods = [(at - origin) / PERIOD_S for at, _ in ticks]
    late = [1e3 * PERIOD_S * abs(each - round(each)) for each in periods]
    missed = [1e3 * (b[0] - a[0] - PERIOD_S) for a, b in pairwise(ticks)]
    late = sorted(max(pair) for pair in zip(late[1:], missed, strict=True))
    first = {
        name: min(at for at, capped in ticks if name in capped) - then
        for name, then in answered.items()
    }
    return Delays(
        fsync_s=fsync_s,
        ticks=len(ticks),
        tick_p50_ms=late[len(late) // 2],
        tick_p99_ms=late[int(0.99 * (len(late) - 1))],
        tick_max_ms=late[-1],
        answer_p50_ms=1e3 * sorted(took)[len(took) // 2],
        answer_max_ms=1e3 * max(took),
        capped_after_max_ms=1e3 * max(first.values()),
    )


def _listen(run: Path, ticks: list[tuple[float, frozenset[str]]]) -> None:
    with Client(run) as client:
        try:
            for tick in client.telemetry():
                capped = frozenset(r.vr for r in tick.routers if r.cap is not None)
                ticks.append((tick.at, capped))
        except Unreachable:
            return  # the daemon has ended


def _await_answer(client: Client) -> None:
    for _ in range(20):
        try:
            client.call(Status())
        except Unreachable:
            time.sleep(0.5)
        else:
            return
    sys.exit("the daemon did not start")


def main() -> None:
    """Measure a quick disk and a slow one, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fsync", type=float, action="append", help="seconds of each fsync")
    options = parser.parse_args()
    found = [measured(seconds) for seconds in options.fsync or (0.0, 0.2)]
    if options.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    for one in found:
        print(
            f"fsync {one.fsync_s * 1e3:.0f} ms: ticks late by {one.tick_p50_ms:.1f} ms (median), "
            f"{one.tick_p99_ms:.1f} (p99), {one.tick_max_ms:.1f} (most) of {one.ticks}; answers "
            f"after {one.answer_p50_ms:.0f} ms (median), {one.answer_max_ms:.0f} (most); capped "
            f"{one.capped_after_max_ms:.0f} ms after the answer (most)"
        )


if __name__ == "__main__":
    main()
