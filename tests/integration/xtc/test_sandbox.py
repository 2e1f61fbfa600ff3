"""xtc sandbox run as a process of its own: real daemons on simulated hosts, and their end."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from xtc.daemon.client import Client
from xtc.errors import Unreachable
from xtc.wire import Activate, Report, Status

PATIENCE_S = 60.0
GONE_S = 1.0
"""Who does not answer for so long where no daemon should be left is gone."""
XTC = (sys.executable, "-m", "xtc", "sandbox")


def until(holds: Callable[[], object], words: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, words
        time.sleep(0.1)


class Sandbox:
    """A sandbox of one host that runs, in a directory with a short path."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            [*XTC, "run", "--hosts", "1", "--directory", str(directory)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = [self.process.stdout.readline() for _ in range(3)]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `xtc sandbox` on it."""
        command = [*XTC, *words, "--directory", str(self.directory)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def reports(self, timeout: float = PATIENCE_S) -> dict[str, Report]:
        """Return how its routers stand; none where no daemon answers."""
        try:
            with Client(self.directory / "sim1", timeout=timeout) as client:
                return {report.vr: report for report in client.call(Status())}
        except Unreachable:
            return {}

    def forwards(self, vr: str, low: float, high: float) -> bool:
        """Whether a router forwards between two rates."""
        report = self.reports()[vr]
        return low <= (report.throughput_pps or 0.0) <= high


@contextmanager
def running() -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory(prefix="xtc-sandbox-") as directory:
        made = Sandbox(Path(directory))
        try:
            yield made
        finally:
            made.process.kill()
            made.process.communicate()
            until(lambda: not made.reports(GONE_S), "a daemon outlived its owner")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running() as made:
        yield made


@pytest.fixture
def ending() -> Iterator[Sandbox]:
    """A sandbox that a test may end."""
    with running() as made:
        yield made


def shown(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_flood_harms_others_and_a_setpoint_ends_that(sandbox: Sandbox) -> None:
    assert sandbox.said[0].startswith("SIMULATED: no packet is real")
    assert (
        f"policer host add sim1 --capacity 180kpps --requests ipc://{sandbox.directory}"
        in (sandbox.said[2])
    )
    assert set(shown(sandbox.call("show", "--json"))["sim1"]) == {"gold", "silver", "bronze"}
    until(lambda: sandbox.forwards("gold", 55e3, 65e3), "gold has its load")
    loaded = shown(sandbox.call("load", "bronze", "10x", "--json"))
    assert loaded == {"sim1": {"bronze": {"usual_pps": 30e3, "offered_pps": 300e3}}}
    until(lambda: sandbox.forwards("gold", 0.0, 45e3), "the flood harms gold")
    with Client(sandbox.directory / "sim1", timeout=PATIENCE_S) as client:
        client.call(Activate("bronze", 40e3))
    until(lambda: sandbox.forwards("bronze", 38e3, 42e3), "bronze is held")
    until(lambda: sandbox.forwards("gold", 55e3, 65e3), "gold has its load again")
    assert sandbox.reports()["bronze"].shield_problem == ""


def test_telemetry_says_that_it_is_simulated(sandbox: Sandbox) -> None:
    with Client(sandbox.directory / "sim1", timeout=PATIENCE_S) as client:
        assert next(client.telemetry()).simulated
    assert "no router of this daemon is real" in (sandbox.directory / "sim1" / "log").read_text()


def test_an_unknown_router_is_refused_and_the_known_ones_are_named(sandbox: Sandbox) -> None:
    done = sandbox.call("load", "copper", "2x")
    assert done.returncode == 2
    assert done.stderr == "xtc: VR: no simulated router copper (one of gold, silver, bronze)\n"


def test_a_second_sandbox_is_kept_from_the_same_directory(sandbox: Sandbox) -> None:
    done = sandbox.call("run")
    assert done.returncode == 2
    assert f"a sandbox runs in {sandbox.directory}" in done.stderr
    assert sandbox.reports()


def test_a_sandbox_ends_on_request_and_its_daemons_with_it(ending: Sandbox) -> None:
    ending.process.send_signal(signal.SIGTERM)
    code, log = ending.process.wait(PATIENCE_S), (ending.directory / "sim1" / "log").read_text()
    assert code == 0, (ending.said, log)
    assert "stopped" in log.splitlines()[-1], log
    assert ending.reports(GONE_S) == {}


def test_a_daemon_that_ends_by_itself_ends_the_sandbox(ending: Sandbox) -> None:
    children = Path(f"/proc/{ending.process.pid}/task/{ending.process.pid}/children")
    (daemon,) = children.read_text().split()
    os.kill(int(daemon), signal.SIGKILL)
    assert ending.process.wait(PATIENCE_S) == 1


def test_a_directory_of_another_user_is_refused() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        done = subprocess.run(
            [*XTC, "run", "--directory", directory], capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"xtc: --directory: {directory}/sim1: other users may write")
