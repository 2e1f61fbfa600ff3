"""The daemon of dom0 and its command line, as an operator has them."""

import json
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from samples import Samples
from typer.testing import CliRunner

from xtc.cli.main import app
from xtc.daemon.client import Client

URI: Final = "xen:///system"
CONFIG: Final = Path("/etc/xtc/xtc.toml")
RUNTIME: Final = Path("/run/xtc")
READY_S: Final = 240.0
"""For a program to start and do its work: ten seconds on a quiet host, minutes on a busy one."""
LISTENING_S: Final = 7200.0
"""Longer than any job."""
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

    def __init__(self, names: list[str], period_s: float, samples: Samples) -> None:
        self._names, self._period_s, self._samples = names, period_s, samples
        self._process: subprocess.Popen[bytes] | None = None
        CONFIG.parent.mkdir(parents=True, exist_ok=True)
        self._configure("")
        threading.Thread(target=self._listen, daemon=True).start()

    def _configure(self, lines: str) -> None:
        """Write the configuration, with more lines in the table of each router."""
        tables = "".join(TABLE.format(name=name, uri=URI) + lines for name in self._names)
        CONFIG.write_text(f"[daemon]\nperiod_s = {self._period_s}\n{tables}")

    def _listen(self) -> None:
        """Have every tick noted, of one daemon after the other."""
        for tick in Client(RUNTIME, timeout=LISTENING_S).telemetry():
            self._samples.add(msgspec.to_builtins(tick))

    def start(self, log: Path) -> float:
        """Start it and return after how many seconds it ticked."""
        begun = time.monotonic()
        with log.open("ab") as words:
            self._process = subprocess.Popen(["xtc", "run"], stderr=words)
        return self._samples.wait_for(self._names[0], lambda _: True, begun)

    def reload(self, lines: str) -> None:
        """Have it load its configuration again, with more lines in the table of each router."""
        assert self._process is not None
        self._configure(lines)
        self._process.send_signal(signal.SIGHUP)

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
