"""The whole way: from the command line through the policer to a daemon's setpoint, and back."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from running_daemon import RunningDaemon
from support.holding import SILENCE_S, stream
from support.stalls import Stalls
from support.waiting import free_port

from policer.daemon.connections import allow_files
from xtc.daemon.client import Client
from xtc.wire import Mode, Status

PATIENCE_S = 60.0
TTL_S = 6
LET_GO_S = 0.5
"""Within this after its lease's end a router is released, by the daemon's clock."""
pytestmark = pytest.mark.timeout(600)


class Policer:
    """A policer as a process, and the command line that asks it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._settings, self._log = folder / "policer.toml", folder / "policer.log"
        self._settings.write_text(
            f'[server]\nlisten = "127.0.0.1:{port}"\n'
            f'[store]\nurl = "sqlite:///{folder}/policer.db"\n[lease]\nttl_s = {TTL_S}\n'
        )
        self._places = {
            "POLICER_CONFIG": str(self._settings),
            "POLICER_URL": f"http://127.0.0.1:{port}",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        with self._log.open("ab") as log:
            # Before it serves: two programs that make the tables at once wait for each other.
            if "POLICER_TOKEN" not in self._places:
                made = self("token", "add", "test", "--scope", "admin", json_wanted=False)
                self._places["POLICER_TOKEN"] = made.strip()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "policer", "serve"],
                env=os.environ | self._places,
                stderr=log,
            )
        self.until(lambda: self.says("host", "list") is not None)

    def end(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGKILL)

    def __call__(self, *words: str, json_wanted: bool = True) -> Any:
        """Run a command that must succeed; return its JSON, or what it said."""
        said = self._run(*words, *(["--json"] if json_wanted else []))
        assert said.returncode == 0, said.stderr + self._log.read_text()
        return json.loads(said.stdout) if json_wanted else said.stdout

    def says(self, *words: str) -> Any:
        """Return a command's JSON; None where it failed."""
        said = self._run(*words, "--json")
        return json.loads(said.stdout) if said.returncode == 0 else None

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "policer", *words],
            env=os.environ | self._places,
            capture_output=True,
            text=True,
            check=False,
        )

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end, self._log.read_text()
            time.sleep(0.1)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon with one simulated router that is offered more than it is promised."""
    (tmp_path / "d").mkdir()
    with RunningDaemon(tmp_path / "d") as daemon:
        daemon.configure()
        daemon.start()
        daemon.hang_up()
        yield daemon


@pytest.fixture
def policer(tmp_path: Path) -> Iterator[Policer]:
    policer = Policer(tmp_path, free_port())
    yield policer
    policer.close()


CROWD = 1_100


def test_a_crowd_that_asks_nothing_keeps_nobody_out(policer: Policer) -> None:
    """More connections than the policer takes, from several addresses, for as long as they like."""
    policer.start()
    allow_files()
    address = ("127.0.0.1", policer.port)
    with ExitStack() as stack:
        crowd = []
        for number in range(CROWD):
            source = (f"127.0.1.{1 + number % 20}", 0)
            one = stack.enter_context(socket.create_connection(address, PATIENCE_S, source))
            one.sendall(b"GET /livez HTT" if number % 2 else b"")
            crowd.append(one)
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{policer.port}/livez") as answer:
                assert answer.status == 200
        assert policer("host", "list") is not None
        for one in crowd:  # and each of them is disconnected, in the end
            with suppress(ConnectionError):
                assert one.recv(1) == b""


def setpoint(daemon: RunningDaemon) -> float | None:
    """Return what the daemon holds its router at, by its own word; None where it is let go."""
    with Client(daemon.run, timeout=SILENCE_S) as client:
        (report,) = client.call(Status("a"))
    return None if report.mode is Mode.RELEASED else report.setpoint_pps


def released_at(daemon: RunningDaemon) -> float:
    """Wait until the daemon lets its router go; return when, by its own clock."""
    return next(
        tick.at
        for tick in stream(daemon.run)
        if [report.mode for report in tick.routers] == [Mode.RELEASED]
    )


def test_a_contract_becomes_a_setpoint_and_ends_with_its_policer(
    policer: Policer, daemon: RunningDaemon, stalls: Stalls
) -> None:
    policer.start()
    ways = (
        *("--requests", f"ipc://{daemon.run}/manager.sock"),
        *("--telemetry", f"ipc://{daemon.run}/telemetry.sock"),
    )
    policer("host", "add", "h", *ways, "--capacity", "200kpps")
    policer.until(lambda: policer("host", "status", "h")["reachable"])
    assert setpoint(daemon) is None  # nothing is contended
    policer("contract", "set", "h", "a", "--guarantee", "10kpps", "--ceiling", "30kpps")
    policer.until(lambda: setpoint(daemon) == 30e3)
    (router,) = policer("router", "list")
    assert router["order"]["setpoint_pps"] == 30e3

    assert policer.end(signal.SIGKILL) != 0
    stalls.check_within(time.monotonic(), released_at(daemon), TTL_S + LET_GO_S)
    assert setpoint(daemon) is None

    policer.start()
    policer.until(lambda: setpoint(daemon) == 30e3)
    assert policer.end(signal.SIGTERM) == 0
