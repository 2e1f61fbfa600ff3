"""A host of the lab with real daemons on it, and the state of its routers read from the kernel."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from support.holding import PATIENCE_S, SILENCE_S, check_held, wait_until_near, watch
from support.paced import Paced
from support.rates import Reading, between, read
from support.stalls import Stalls
from support.weights import make_punctual, prefer

from benchmarks.rig import lab_router
from lab import cgroups, requirements
from lab.router import Router
from lab.topology import Lab
from xtc.actuator.factory import probe
from xtc.daemon.client import Client
from xtc.errors import Unreachable
from xtc.kernel import forwarding
from xtc.kernel.namespaces import in_namespace
from xtc.kernel.scheduling import SCHED_DEADLINE, get_policy
from xtc.measure.meter import Counters, parse
from xtc.spec import InterfaceOriginal
from xtc.wire import Activate, Report, Request, Status

PREFIX: Final = f"t{os.getpid()}"
"""Its own for each process: runs at once do not meet."""
V1_PARTS: Final = ("quota", "period")


class Forwarding(Protocol):
    """A router of whichever kind."""

    @property
    def host_interfaces(self) -> Sequence[str]:
        """The host's ends of its links."""


class Daemon:
    """One running daemon."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.process, self._log = process, folder / "log"
        self.runtime = folder / "run"
        self.client = Client(self.runtime, timeout=SILENCE_S)

    def wait_until_ready(self) -> None:
        for _ in range(20):
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

    def wait_for(
        self, vr: str, holds: Callable[[Report], bool], seconds: float = PATIENCE_S
    ) -> Report:
        """Return the first report of a router of which something holds."""
        deadline = time.monotonic() + seconds
        while not holds(report := self.report(vr)):
            if time.monotonic() > deadline:
                pytest.fail(f"after {seconds:g} s still {report}\n{self.log}")
            time.sleep(0.05)
        return report

    def wait_until_held(self, *vrs: str, without_problem: bool = False) -> None:
        """Wait until the last ticks' mean throughput of routers is near their setpoints."""
        wait_until_near(self.runtime, *vrs, without_problem=without_problem)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) == 0, self.log

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


class Host:
    """A lab, its configuration, and everything started on it."""

    def __init__(self, lab: Lab, folder: Path, stack: ExitStack) -> None:
        self.lab, self.folder, self._stack = lab, folder, stack
        self.state = folder / "state"
        self._config = folder / "xtc.toml"

    def router(self, name: str, kind: Any, flood: float) -> Router:
        """Add a router under a flood; other work takes little of their CPU."""
        router = self.lab.add_router(name, kind)
        make_punctual(router.flood(flood).pid)
        return router

    def paced_router(self, name: str, rate: float) -> tuple[Router, Paced]:
        """Add a user-space router with a sender of single packets.

        The lab's own source joins packets, which a limit counts as one.
        """
        router = self.lab.add_router(name, "user-space")
        near, far = router.ports
        sender = Paced(self.folder / f"sender-{name}")
        self.run(*sender.command((near.host_address, far.nowhere_address), rate))
        return router, sender

    def configure(self, period_s: float = 1.0, own: str = "", **tables: str) -> None:
        """Write the configuration: each router's table, by default the one that suits it.

        Args:
            period_s: of the daemon's loop.
            own: other keys of the daemon's table.
            tables: by router.
        """
        tables = {name: lab_router(r) for name, r in self.lab.routers.items()} | tables
        lines = [f'[daemon]\nstate_dir = "{self.state}"\nruntime_dir = "{self.folder}/run"']
        lines += [f"period_s = {period_s}", own]
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
        out, error = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def check_held(
        self,
        daemon: Daemon,
        ticks: int,
        most: float,
        setpoints: Mapping[str, float],
        routers: Mapping[str, Forwarding] | None = None,
        *,
        in_bits: bool = False,
    ) -> None:
        """Check that routers (by default the lab's) are held for so many of the daemon's ticks."""
        known = self.lab.routers if routers is None else routers
        held = {vr: known[vr].host_interfaces for vr in setpoints}
        count = received_bits if in_bits else received
        first = self._forwarded(held, count)
        seen = watch(daemon.runtime, ticks)
        second = self._forwarded(held, count)
        rates = {vr: between(first[vr], second[vr]) for vr in setpoints}
        check_held(seen, rates, most, **setpoints)

    def _forwarded(
        self, held: Mapping[str, Sequence[str]], count: Callable[..., int]
    ) -> dict[str, Reading]:
        dom0 = self.lab.dom0_netns
        return {vr: read(partial(count, dom0, *names)) for vr, names in held.items()}


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(PATIENCE_S)


def received(netns: str, *interfaces: str) -> int:
    """Return the packets that interfaces of a namespace have received."""
    counters = counted(netns)
    return sum(counters[name].rx_packets for name in interfaces)


def received_bits(netns: str, *interfaces: str) -> int:
    """Return the bits that interfaces of a namespace have received."""
    counters = counted(netns)
    return sum(8 * counters[name].rx_bytes for name in interfaces)


def counted(netns: str) -> Mapping[str, Counters]:
    """Return what the kernel counted on the interfaces of a namespace."""
    return parse(in_namespace(netns, Path("/proc/thread-self/net/dev").read_bytes))


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


@pytest.fixture(autouse=True)
def _recorded_stalls(stalls: Stalls) -> None:
    """Every test here keeps the longest stall of the machine with its report."""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A lab without routers, in which daemons can be started."""
    missing = requirements.missing() if os.geteuid() == 0 else ["needs root"]
    if missing:
        pytest.skip("; ".join(missing))
    with Lab(PREFIX) as lab, ExitStack() as stack:
        root = cgroups.find_root()
        assert root is not None
        prefer(cgroups.create_top(root, PREFIX))  # now: routers start beside another lab's
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
