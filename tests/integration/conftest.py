"""A host of the lab with real daemons on it, and the state of its routers read from the kernel."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.rig import lab_router
from lab import requirements
from lab.router import Router
from lab.topology import Lab
from xtc.actuator.factory import probe
from xtc.actuator.spec import InterfaceOriginal
from xtc.client import Client
from xtc.errors import Unreachable
from xtc.kernel import forwarding
from xtc.kernel.namespaces import in_namespace
from xtc.kernel.scheduling import SCHED_DEADLINE, get_policy
from xtc.meter import parse
from xtc.wire import Activate, Report, Request, Status

PACED = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.bind((sys.argv[1], 0))
out.connect((sys.argv[2], 9))
start, sent = time.monotonic(), 0
while True:
    due = int((time.monotonic() - start) * 20_000)
    while sent < due:
        out.send(bytes(22))
        sent += 1
    time.sleep(0.001)
"""
"""Sends 20 kp/s one by one: the lab's own source joins packets, which the limit counts as one."""
PREFIX: Final = "xtcint"
V1_PARTS: Final = ("quota", "period")


class Daemon:
    """One running daemon."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.process, self._log = process, folder / "log"
        self.client = Client(folder / "run")

    def wait_until_ready(self) -> None:
        for _ in range(5):
            try:
                self.client.call(Status())
            except Unreachable:
                if self.process.poll() is not None:
                    break
            else:
                return
        pytest.fail(f"the daemon did not start:\n{self.log}")

    @property
    def log(self) -> str:
        return self._log.read_text()

    def ask(self, request: Request) -> Report:
        return self.client.call(request)[0]

    def report(self, vr: str) -> Report:
        return self.ask(Status(vr))

    def hold(self, **setpoints: float) -> None:
        for vr, setpoint in setpoints.items():
            self.ask(Activate(vr, setpoint))

    def wait_for(self, vr: str, holds: Callable[[Report], bool], seconds: float = 10.0) -> Report:
        """Return the first report of a router of which something holds."""
        deadline = time.monotonic() + seconds
        while not holds(report := self.report(vr)):
            if time.monotonic() > deadline:
                pytest.fail(f"after {seconds:g} s still {report}\n{self.log}")
            time.sleep(0.05)
        return report

    def wait_until_held(self, *vrs: str) -> None:
        for vr in vrs:
            self.wait_for(vr, near_setpoint)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(5) == 0, self.log

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(5)


class Host:
    """A lab, its configuration, and everything started on it."""

    def __init__(self, lab: Lab, folder: Path, stack: ExitStack) -> None:
        self.lab, self.folder, self._stack = lab, folder, stack
        self.state = folder / "state"
        self._config = folder / "xtc.toml"

    def router(self, name: str, kind: Any, flood: float) -> Router:
        router = self.lab.add_router(name, kind)
        router.flood(flood)
        return router

    def configure(self, period_s: float = 1.0, **tables: str) -> None:
        """Write the configuration: each router's table, by default the one that suits it."""
        tables = {name: lab_router(r) for name, r in self.lab.routers.items()} | tables
        lines = [f'[daemon]\nstate_dir = "{self.state}"\nruntime_dir = "{self.folder}/run"']
        lines += [f"period_s = {period_s}"]
        lines += [f"[router.{name}]\n{table}" for name, table in tables.items()]
        self._config.write_text("\n".join(lines))

    def launch(self, *before: str) -> "subprocess.Popen[bytes]":
        """Start a daemon in Dom0, through a program if one is given."""
        command = [*before, sys.executable, "-m", "xtc", "run", "--config", str(self._config)]
        with (self.folder / "log").open("wb") as log:
            return self.run(*command, stderr=log)

    def run(self, *command: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start a program in Dom0 that ends with the test."""
        process = self.lab.run_in_dom0(command, **options)
        self._stack.callback(_end, process)
        return process

    def start(self, *before: str) -> Daemon:
        """Start a daemon in Dom0 and wait until it answers."""
        daemon = Daemon(self.launch(*before), self.folder)
        self._stack.callback(daemon.client.close)
        daemon.wait_until_ready()
        return daemon

    def xtc(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the command line in Dom0."""
        places = {"XTC_RUNTIME_DIR": str(self.folder / "run"), "XTC_STATE_DIR": str(self.state)}
        process = self.lab.run_in_dom0(
            [sys.executable, "-m", "xtc", *arguments],
            env={**os.environ, **places},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        out, error = process.communicate(timeout=20)
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def check_means(self, seconds: float, most: float, *held: tuple[Router, float]) -> None:
        """Check that routers' mean throughput over at least so long is near their setpoints.

        A shared machine takes CPU away for seconds, so that the mean may take up to three times
        as long to come right; nothing that was counted is left out of it.
        """
        start, before = time.monotonic(), [self._forwarded(router) for router, _ in held]
        for _ in range(3):
            time.sleep(seconds)
            counts = [self._forwarded(router) for router, _ in held]
            elapsed = time.monotonic() - start
            errors = [
                (after - first) / elapsed / setpoint - 1
                for (_, setpoint), first, after in zip(held, before, counts, strict=True)
            ]
            if max(map(abs, errors)) <= most:
                return
        pytest.fail(f"after {elapsed:.0f} s mean throughput is off by {errors}")

    def _forwarded(self, router: Router) -> int:
        return received(self.lab.dom0_netns, *router.host_interfaces)


def near_setpoint(report: Report) -> bool:
    """Whether a router is capped, and its throughput within 30 % of its setpoint."""
    if report.cap is None or report.throughput_pps is None or report.setpoint_pps is None:
        return False
    return abs(report.throughput_pps / report.setpoint_pps - 1) < 0.3


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(5)


def received(netns: str, *interfaces: str) -> int:
    """Return the packets that interfaces of a namespace have received."""
    raw = in_namespace(netns, Path("/proc/thread-self/net/dev").read_bytes)
    counters = parse(raw)
    return sum(counters[name].rx_packets for name in interfaces)


def cap_of(router: Router) -> float | None:
    """Return the cap in force as the kernel tells it; None is uncapped."""
    if router.cgroup is not None:
        quota, period = quota_of(router.cgroup)
        return None if quota is None else quota / period
    policies = [get_policy(tid) for tid in napi_threads(router)]
    if not policies or any(policy.policy != SCHED_DEADLINE for policy in policies):
        return None
    return sum(policy.runtime_ns / policy.period_ns for policy in policies)


def quota_of(group: Path) -> tuple[int | None, int]:
    """Return quota (None where there is none) and period of a control group, in us."""
    if (group / "cpu.max").exists():
        quota, period = (group / "cpu.max").read_text().split()
    else:
        quota, period = ((group / f"cpu.cfs_{part}_us").read_text() for part in V1_PARTS)
    return None if quota in {"max", "-1\n"} else int(quota), int(period)


def give_quota(group: Path, quota_us: int, period_us: int) -> None:
    """Give a control group a quota, as somebody who knows nothing of xtc would."""
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{quota_us} {period_us}")
    else:
        for part, value in zip(V1_PARTS, (quota_us, period_us), strict=True):
            (group / f"cpu.cfs_{part}_us").write_text(str(value))


def napi_threads(router: Router) -> tuple[int, ...]:
    """Return the kernel threads that forward for a router."""
    found = in_namespace(router.netns, partial(forwarding.threads, router.inner_interfaces))
    return tuple(tid for tids in found.values() for tid in tids)


def switches_of(router: Router) -> tuple[InterfaceOriginal, ...]:
    """Return GRO, threaded NAPI, its threads' policy and the peer's TSO of each interface."""
    return in_namespace(router.netns, partial(forwarding.capture, router.inner_interfaces))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A lab without routers, in which daemons can be started."""
    missing = requirements.missing() if os.geteuid() == 0 else ["needs root"]
    if missing:
        pytest.skip("; ".join(missing))
    with Lab(PREFIX) as lab, ExitStack() as stack:
        yield Host(lab, tmp_path, stack)


@pytest.fixture
def deadline() -> None:
    """Skip where the kernel cannot cap what it forwards."""
    if (reason := probe().deadline) is not None:
        pytest.skip(reason)


@pytest.fixture
def training_lab_alone() -> Iterator[None]:
    """One at a time: xtc-train refuses a second lab of its own, and files of tests run at once."""
    with (Path(tempfile.gettempdir()) / "xtc-tests-training-lab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
