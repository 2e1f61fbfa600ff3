"""Switches to measure, each on one CPU: ours, lossless and lossy, OVS-DPDK, testpmd, a bridge."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.zovn.kernel_bridge import KernelBridge
from benchmarks.zovn.ovs import OVS, Ovs
from benchmarks.zovn.traffic import (
    PATIENCE_S,
    Counted,
    Device,
    Generators,
    Traffic,
    first_cpu,
    guest,
    last_cpu,
)
from zovn.core_files import program
from zovn.errors import SwitchAway
from zovn.switch import control
from zovn.switch.config import checked, plain

LOSSY_FRAMES: Final = 256
"""The queue of the lossy class, in frames of the size that is sent; the receiver's ring follows."""
STALL: Final = "1min"
"""No sink stops; one that has no CPU for a while must not be taken for stalled."""
_CYCLES: Final = re.compile(r"CPU cycles/packet=([0-9.]+)")


class Switch(Protocol):
    """A running switch."""

    @property
    def devices(self) -> Sequence[Device]:
        """Devices of its guests, in the order of its ports."""

    @property
    def inside(self) -> Sequence[str]:
        """A command that starts others where the devices are."""

    @property
    def pid(self) -> int | None:
        """Its process."""

    def begin(self) -> None:
        """Begin to count its work."""

    def cycles(self, counted: Counted) -> float | None:
        """Return its cycles for each frame since `begin`; None if it does not say."""


class Ours:
    """zovn-switch, without the command that writes its configuration."""

    inside: Sequence[str] = ()

    def __init__(self, folder: Path, ports: int, limit_bytes: int) -> None:
        sockets = [str(folder / f"{number}.sock") for number in range(ports)]
        self.devices = [guest(path) for path in sockets]
        table = {
            "control": str(folder / "control"),
            "stall": STALL,
            "classes": {"0": {"limit_bytes": limit_bytes}},
            "port": [{"name": f"p{number}", "socket": path} for number, path in enumerate(sockets)],
        }
        self.config = checked(table)
        (folder / "configuration").write_text(plain(self.config))
        self._log = folder / "log"
        with self._log.open("w") as log:
            command = [str(program()), str(folder / "configuration")]
            self.process = subprocess.Popen(pinned(command, first_cpu()), stderr=log)
        self._before = 0

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    def wait(self) -> None:
        """Wait until it answers."""
        until(self._answers, self._log)

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"zovn-switch did not start: {self._log.read_text()[-500:]}")
        try:
            return len(control.ports(self.config.control)) == len(self.devices)
        except SwitchAway:
            return False

    def begin(self) -> None:
        """Begin to count its CPU time."""
        self._before = cpu_ns(self.process.pid)

    def cycles(self, counted: Counted) -> float | None:
        """Return all cycles of the process for each frame that came: an upper bound.

        It spins for a while when it finds nothing, and that counts, too.
        """
        took = cpu_ns(self.process.pid) - self._before
        return took / 1e9 * counted.hz / max(1, counted.total("received"))


class Testpmd:
    """DPDK's testpmd: it forwards from each of two ports to the other, and looks nothing up."""

    inside: Sequence[str] = ()

    def __init__(self, folder: Path, ports: int) -> None:
        if ports != 2:
            raise ValueError("testpmd forwards between two ports")
        sockets = [str(folder / f"{number}.sock") for number in range(2)]
        self.devices = [guest(path) for path in sockets]
        devices = [f"--vdev=net_vhost{at},iface={path}" for at, path in enumerate(sockets)]
        cpus = f"{first_cpu()},{last_cpu()}"
        eal = ["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--no-shconf", "-l", cpus]
        eal += ["--main-lcore", str(last_cpu()), "--log-level=error", *devices, "--"]
        own = ["-a", "--total-num-mbufs=16384", "--record-core-cycles", "--nb-cores=1"]
        own += ["--rxd=1024", "--txd=1024", "--disable-link-check"]
        self.log = folder / "log"
        self.log.touch()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["stdbuf", "-oL", "dpdk-testpmd", *eal, *own],  # noqa: S607  any one
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    def wait(self) -> None:
        """Wait until it forwards: it says how to stop it."""
        until(lambda: "Press enter" in self.log.read_text(), self.log)

    def begin(self) -> None:
        """Count from its start on: it does not count while nothing comes."""

    def cycles(self, counted: Counted) -> float | None:
        """End it; return its own figure."""
        del counted
        self.process.communicate(b"\n", timeout=PATIENCE_S)
        found = _CYCLES.findall(self.log.read_text())
        return float(found[-1]) if found else None


def until(condition: Callable[[], bool], log: Path) -> None:
    """Wait for a condition.

    Raises:
        RuntimeError: it does not come true in time.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"it did not start in {PATIENCE_S:.0f} s: {log.read_text()[-500:]}")
        time.sleep(0.02)


def pinned(command: Sequence[str], cpu: int) -> list[str]:
    """Return a command that runs on one CPU."""
    return ["taskset", "-c", str(cpu), *command]


def cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process (/proc/PID/task/*/schedstat)."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files)


@contextmanager
def _ours(folder: Path, ports: int, limit_bytes: int = 0) -> Iterator[Switch]:
    switch = Ours(folder, ports, limit_bytes)
    try:
        switch.wait()
        yield switch
    finally:
        switch.process.kill()
        switch.process.wait()


@contextmanager
def _testpmd(folder: Path, ports: int) -> Iterator[Switch]:
    switch = Testpmd(folder, ports)
    try:
        switch.wait()
        yield switch
    finally:
        switch.process.kill()
        switch.process.communicate()


@contextmanager
def _ovs(folder: Path, ports: int) -> Iterator[Switch]:
    switch = Ovs(folder)
    try:
        switch.start(ports)
        yield switch
    finally:
        switch.end()


@contextmanager
def _bridge(ports: int) -> Iterator[Switch]:
    switch = KernelBridge()
    try:
        switch.start(ports)
        yield switch
    finally:
        switch.end()


@dataclass(frozen=True)
class Way:
    """A kind of switch, and what it needs."""

    start: Callable[[Path, int, int], AbstractContextManager[Switch]]
    """Given a folder, the number of ports, and the size of the frames that will be sent."""
    missing: Callable[[], bool] = lambda: False
    pair_only: bool = False
    """Whether it can only connect two ports."""


WAYS: Final[Mapping[str, Way]] = {
    "zovn": Way(lambda folder, ports, _: _ours(folder, ports)),
    "lossy": Way(lambda folder, ports, length: _ours(folder, ports, LOSSY_FRAMES * length)),
    "ovs": Way(lambda folder, ports, _: _ovs(folder, ports), lambda: not OVS.exists()),
    "testpmd": Way(
        lambda folder, ports, _: _testpmd(folder, ports),
        lambda: shutil.which("dpdk-testpmd") is None,
        pair_only=True,
    ),
    "bridge": Way(lambda _folder, ports, _: _bridge(ports), lambda: os.geteuid() != 0),
}


@dataclass(frozen=True)
class Measured:
    """What came of traffic through a switch, and what the switch spent on it."""

    counted: Counted
    cycles: float | None


@contextmanager
def running(way: str, ports: int, length: int) -> Iterator[Switch]:
    """Run a switch for frames of a length, in a folder of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="zovn-bench-") as folder,
        WAYS[way].start(Path(folder), ports, length) as switch,
    ):
        yield switch


def measure(way: str, ports: int, traffic: Traffic) -> Measured:
    """Start a switch, send traffic through it, and end it."""
    with (
        running(way, ports, traffic.bytes) as switch,
        Generators(traffic, switch.devices, switch.inside) as generators,
    ):
        switch.begin()
        counted = generators.run()
        if not counted.total("received"):
            raise RuntimeError(f"{way}: no frame came through")
        return Measured(counted, switch.cycles(counted))
