"""A rig for real packets: a lab, the real daemon in its Dom0, and the telemetry it streams."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.router import Router
from lab.topology import Lab
from xtc.client import Client
from xtc.errors import Unreachable
from xtc.wire import Report, Telemetry

SIMULATED_OFFERED = "the model's"


@dataclass
class Recording:
    """Every tick that the daemon streamed while it was listened to."""

    ticks: list[Telemetry] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tick: Telemetry) -> None:
        """Keep a tick."""
        with self.lock:
            self.ticks.append(tick)

    def of(self, vr: str, since: float = 0.0) -> list[tuple[float, Report]]:
        """Return one router's reports with their instants."""
        with self.lock:
            return [(t.at, r) for t in self.ticks for r in t.routers if t.at > since and r.vr == vr]


class Rig:
    """A running daemon; `client` talks to it, `recording` fills as it ticks."""

    def __init__(self, routers: dict[str, dict[str, object]], lab: Lab | None) -> None:
        self.recording = Recording()
        self._lab = lab
        self._folder = tempfile.TemporaryDirectory(prefix="xtc-rig-")
        self.folder = Path(self._folder.name)
        self.config = self.folder / "xtc.toml"
        self.config.write_text(_config(self.folder, routers))
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
        self._daemon.wait(10)
        self._listener.join(5)
        self.client.close()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return self._daemon.pid

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "xtc", "run", "--config", str(self.config)]
        log = (self.folder / "log").open("wb")
        if self._lab is None:
            return subprocess.Popen(command, stderr=log)
        return self._lab.run_in_dom0(command, stderr=log)

    def _await_answer(self) -> None:
        from xtc.wire import Status  # noqa: PLC0415

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
                return  # the daemon ended

    def wait(self, seconds: float, *, look: Callable[[], None] | None = None) -> None:
        """Let real time pass, looking on every half second."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(0.5, left))
            if look is not None:
                look()
