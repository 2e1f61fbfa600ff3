"""A rig: routers of the lab or of the simulated plant, the real daemon, and its telemetry."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.system import requirements
from xtc.daemon.client import Client
from xtc.errors import Unreachable
from xtc.wire import HostDrops, Report, Status, Telemetry


@dataclass
class Recording:
    """Every tick that the daemon streamed during the recording."""

    ticks: list[Telemetry] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tick: Telemetry) -> None:
        """Record a tick."""
        with self.lock:
            self.ticks.append(tick)

    def of(self, vr: str) -> list[tuple[float, Report]]:
        """Return one router's reports with their instants."""
        with self.lock:
            return [(tick.at, r) for tick in self.ticks for r in tick.routers if r.vr == vr]

    def drops(self) -> dict[float, HostDrops]:
        """Return what the host dropped before any router, by instant."""
        with self.lock:
            return {tick.at: tick.drops for tick in self.ticks if tick.drops is not None}

    def throughput(self, vr: str) -> list[tuple[float, float]]:
        """Return one router's throughput with its instants; blind ticks are left out."""
        return [(at, r.throughput_pps) for at, r in self.of(vr) if r.throughput_pps is not None]


class Rig:
    """A running daemon; `client` talks to it, `recording` fills as it ticks."""

    def __init__(
        self, routers: dict[str, str], lab: Lab | None, *, daemon: str = "", shield: bool = True
    ) -> None:
        """Start a daemon on routers given as name and the TOML of their table.

        Args:
            routers: by name.
            lab: the lab in which the daemon runs; None for this machine's own namespace.
            daemon: more lines of its own table.
            shield: whether routers are shielded.
        """
        self.recording = Recording()
        self._lab = lab
        self._folder = tempfile.TemporaryDirectory(prefix="xtc-rig-")
        self.folder = Path(self._folder.name)
        self.config = self.folder / "xtc.toml"
        self._routers, self._own, self._shielded = routers, daemon, shield
        self._write_config()
        self._daemon = self._start()
        self.client = Client(self.folder / "run")
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._await_answer()
        self._listener.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._daemon.send_signal(signal.SIGTERM)
        self._daemon.wait(10)  # the listener ends by itself, after some seconds without a tick
        self.client.close()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return self._daemon.pid

    def shield(self, *, on: bool) -> None:
        """Turn the daemon's shielding of held routers on (the default) or off."""
        self._shielded = on
        self._write_config()
        self._daemon.send_signal(signal.SIGHUP)

    def reconfigure(self, routers: dict[str, str]) -> None:
        """Make the daemon load other tables of the same routers."""
        self._routers = routers
        self._write_config()
        self._daemon.send_signal(signal.SIGHUP)

    def _write_config(self) -> None:
        text = _config(self.folder, self._routers, self._own, shield=self._shielded)
        self.config.write_text(text)

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "xtc", "run", "--config", str(self.config)]
        with (self.folder / "log").open("wb") as log:
            if self._lab is None:
                return subprocess.Popen(command, stderr=log)
            return self._lab.run_in_dom0(command, stderr=log)

    def _await_answer(self) -> None:
        for _ in range(10):
            try:
                self.client.call(Status())
            except Unreachable:
                if self._daemon.poll() is not None:
                    break
            else:
                return
        raise RuntimeError(f"the daemon did not start:\n{(self.folder / 'log').read_text()}")

    def _listen(self) -> None:
        with Client(self.folder / "run") as client:
            try:
                for tick in client.telemetry():
                    self.recording.add(tick)
            except Unreachable:
                return  # the daemon has ended

    def wait_for_ticks(self, count: int) -> None:
        """Wait for a number of further ticks."""
        goal = len(self.recording.ticks) + count
        while len(self.recording.ticks) < goal:
            time.sleep(0.05)


def lab_missing() -> list[str]:
    """Return what this machine lacks for real packets."""
    return requirements.missing()


def lab_router(router: Router, *, model: str | None = None) -> str:
    """Return the configuration of a router of the lab."""
    lines = [f'interfaces = ["vif{router.index}.*"]']
    if router.kind == "kernel":
        inner = ", ".join(f'"{name}"' for name in router.inner_interfaces)
        lines.append(
            f'actuator = {{ kind = "deadline", netns = "{router.netns}", interfaces = [{inner}] }}'
        )
    else:
        lines.append(f'actuator = {{ kind = "cgroup", path = "{router.cgroup}" }}')
    if model is not None:
        lines.append(f'model = "{model}"')
    return "\n".join(lines)


def _config(folder: Path, routers: dict[str, str], own: str, *, shield: bool) -> str:
    daemon = f'[daemon]\nstate_dir = "{folder}/state"\nruntime_dir = "{folder}/run"\n{own}'
    daemon += "" if shield else "[limiter]\nshield = false\n"
    tables = [f"[router.{name}]\n{body}\n" for name, body in routers.items()]
    return daemon + "\n".join(tables)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used (proc(5), /proc/PID/stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
