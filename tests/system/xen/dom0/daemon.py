"""The daemon of dom0 and its command line, as an operator has them."""

import json
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from typer.testing import CliRunner

from xtc.cli import app
from xtc.client import Client

URI: Final = "xen:///system"
CONFIG: Final = Path("/etc/xtc/xtc.toml")
RUNTIME: Final = Path("/run/xtc")
PATIENCE_S: Final = 600.0
WINDOW: Final = 4
READY_S: Final = 240.0
"""For a program to start and do its work: ten seconds on a quiet host, minutes on a busy one."""
TABLE: Final = """
[router.{name}]
actuator = {{ kind = "libvirt", domain = "{name}", uri = "{uri}" }}
"""


def program(*arguments: str) -> Any:
    """Run xtc as a program of its own, with --json, and return what it printed.

    Raises:
        RuntimeError: it failed; with its words.
    """
    command = ["xtc", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=READY_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def command(*arguments: str) -> Any:
    """Run a command of xtc in this process: emulated, a Python of its own takes ten seconds.

    Raises:
        RuntimeError: it failed; with its words.
    """
    done = CliRunner().invoke(app, [*arguments, "--json"])
    if done.exit_code:
        raise RuntimeError(f"{arguments}: exit {done.exit_code}\n{done.output}{done.exception}")
    return json.loads(done.stdout)


class Daemon:
    """`xtc run`, and the ticks that it streams."""

    def __init__(self, names: list[str], period_s: float, out: Path) -> None:
        self._names, self._out = names, out
        self._process: subprocess.Popen[bytes] | None = None
        self._ticks: list[dict[str, Any]] = []
        tables = "".join(TABLE.format(name=name, uri=URI) for name in names)
        CONFIG.parent.mkdir(parents=True, exist_ok=True)
        CONFIG.write_text(f"[daemon]\nperiod_s = {period_s}\n{tables}")
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        """Keep every tick, of one daemon after the other."""
        with (self._out / "ticks.jsonl").open("wb") as file:
            for tick in Client(RUNTIME, timeout=PATIENCE_S).telemetry():
                self._ticks.append(msgspec.to_builtins(tick))
                file.write(msgspec.json.encode(tick) + b"\n")

    def start(self) -> float:
        """Start it and return after how many seconds it ticked."""
        with (self._out / "daemon.log").open("ab") as log:
            self._process = subprocess.Popen(["xtc", "run"], stderr=log)
        return self.wait_for(self._names[0], lambda _report: True, READY_S)

    def kill(self) -> None:
        """End it as the kernel ends a process when memory runs out."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> int:
        """Ask it to end and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(30)

    def ticks(self, name: str, since: float) -> list[tuple[float, dict[str, Any]]]:
        """Return the instants and reports of one router that were streamed since an instant."""
        return [
            (tick["at"], report)
            for tick in list(self._ticks)
            for report in tick["routers"]
            if report["vr"] == name and tick["at"] >= since
        ]

    def wait_for(
        self,
        name: str,
        holds: Callable[[dict[str, Any]], bool],
        seconds: float,
        since: float | None = None,
    ) -> float:
        """Wait until something holds of a router's report and return how long that took, in s.

        Raises:
            TimeoutError: with the last report.
        """
        begun = time.monotonic() if since is None else since
        while True:
            reports = self.ticks(name, begun)
            for at, report in reports:
                if holds(report):
                    return at - begun
            if time.monotonic() - begun > seconds:
                raise TimeoutError(f"{name} after {seconds} s: {reports[-1:]}")
            time.sleep(0.3)


def settled_after(ticks: list[tuple[float, dict[str, Any]]], begun: float) -> float | None:
    """Return after how many seconds the mean of four samples was the setpoint, to 20 %.

    The mean, since Xen's credit scheduler gives out CPU in slices of 30 ms: a tenth of a CPU is
    three or four of them a second.
    """
    for window in (ticks[i : i + WINDOW] for i in range(len(ticks) - WINDOW + 1)):
        rates = [report["throughput_pps"] for _, report in window]
        at, last = window[-1]
        if None in rates or not last["setpoint_pps"] or last["mode"] != "closed_loop":
            continue
        if abs(statistics.mean(rates) / last["setpoint_pps"] - 1) < 0.2:
            return round(at - begun, 1)
    return None
