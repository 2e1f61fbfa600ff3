"""A daemon as a process of its own on a simulated host, heard through the socket of sd_notify."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

CONFIG = """
[daemon]
period_s = 0.2
meter_period_s = 0.05
state_dir = "{state}"
runtime_dir = "{run}"
{daemon}
[log]
format = "json"
[router.a]
actuator = {{ kind = "simulated", plant = "a" }}
interfaces = ["a.0"]
model = "paper"
{router}
"""
PATIENCE_S = 60.0


class RunningDaemon:
    """`python -m xtc run`, with its directories below one."""

    def __init__(self, directory: Path) -> None:
        self.state, self.run = directory / "state", directory / "run"
        self.path = directory / "xtc.toml"
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(str(directory / "notify"))
        self._notices.settimeout(PATIENCE_S)
        self._address = str(directory / "notify")
        self.log = directory / "log"
        self.configure()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._notices.close()

    def configure(self, *, daemon: str = "", router: str = "") -> None:
        """Write the configuration, with more lines where they are given."""
        text = CONFIG.format(state=self.state, run=self.run, daemon=daemon, router=router)
        self.path.write_text(text)

    def start(self) -> None:
        """Start, and wait until it says that it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "xtc", "run", "--config", str(self.path)],
                env=os.environ | {"NOTIFY_SOCKET": self._address},
                stderr=log,
            )
        self.heard("READY=1")

    def heard(self, line: str) -> str:
        """Wait for a notice with this line and return it."""
        while True:
            notice = self._notices.recv(4096).decode()
            if line in notice.splitlines():
                return notice

    def hang_up(self) -> None:
        """Listen no more, as a service manager that went away."""
        self._notices.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait for the end and return the exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)
