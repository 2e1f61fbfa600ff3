"""A running switch, and guests that DPDK's virtio-user plays."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import pytest
from support.waiting import PATIENCE_S, eventually
from zovn_rig import CORE, build

from lab.system import namespaces
from zovn.errors import SwitchAway
from zovn.switch import control
from zovn.switch.config import SwitchConfig, checked
from zovn.switch.control import PortReport, SwitchReport

GUEST: Final = CORE / "build" / "zovn-guest"
THREADS: Final = int(os.environ.get("ZOVN_TEST_THREADS", "1"))
"""How many threads forward, where a test does not say that itself."""


def build_guest() -> None:
    """Build switch and guest; where that cannot be done, the test is skipped."""
    if (
        not shutil.which("pkg-config")
        or subprocess.run(["pkg-config", "--exists", "libdpdk"], check=False).returncode
    ):
        pytest.skip("no libdpdk-dev: the sessions of zovn are not tested")
    build()
    build("guest")


def lawful(port: PortReport) -> bool:
    """Return whether all frames from a port are accounted for."""
    counted = port.counters
    ended = counted["delivered"] + counted["held"] + counted["parked"] + sum(port.drops.values())
    return counted["in"] + counted["copies"] == ended


class RunningSwitch:
    """A switch in a folder of its own, started by the command."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        names = settings.pop("names", "abc")
        each = settings.pop("each", [{}] * len(names))
        netns = settings.pop("netns", "")
        self.enter = ["nsenter", f"--net={namespaces.path(netns)}"] if netns else []
        ports = [
            {"name": name} | ({} if "interface" in more else {"socket": self.socket(name)}) | more
            for name, more in zip(names, each, strict=True)
        ]
        own = {"control": str(folder / "control.sock"), "port": ports, "threads": THREADS}
        self.table = own | settings
        self.config: SwitchConfig = checked(self.table)
        self.log = folder / "log"
        self.start()

    def socket(self, name: str) -> str:
        """Return the path of a port's socket."""
        return str(self.folder / f"{name}.sock")

    def start(self) -> None:
        """Start the program, and wait until it answers."""
        settings = self.folder / "zovn.toml"
        settings.write_text(_toml(self.table))
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "zovn", "switch", "run", str(settings)]
            self.process = subprocess.Popen([*self.enter, *command], stdout=log, stderr=log)
        eventually(self._answers, state=self.log.read_text)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return len(control.ports(self.config.control)) == len(self.config.table.port)
        except SwitchAway:
            return False

    def report(self) -> SwitchReport:
        """Return what it counted; the law of its counters holds at any time."""
        report = control.status(self.config.control)
        assert all(map(lawful, report.ports)), report
        return report

    def port(self, name: str) -> PortReport:
        """Return what it counted of a port."""
        return next(port for port in self.report().ports if port.name == name)

    def wait_for(self, sent: Mapping[str, int]) -> None:
        """Wait until so many frames came from ports, and none is on its way."""

        def arrived() -> bool:
            ports = {port.name: port.counters for port in self.report().ports}
            return all(
                ports[name]["in"] == count and not ports[name]["held"] and not ports[name]["parked"]
                for name, count in sent.items()
            )

        eventually(arrived, state=self._state)

    def _state(self) -> tuple[object, ...]:
        logs = [path.read_text()[-2000:] for path in (self.log, self.folder / "guests")]
        return (*logs, self.report())

    def end(self, number: int = signal.SIGTERM) -> int:
        """End the program; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def running_switch(**settings: Any) -> Iterator[RunningSwitch]:
    """Run a switch; its sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="zovn-") as folder:
        switch = RunningSwitch(Path(folder), **settings)
        try:
            yield switch
        finally:
            switch.process.kill()
            switch.process.wait()


class Guest:
    """A process with ports; each is a station that sends to another one."""

    def __init__(
        self, switch: RunningSwitch, *ports: str, size: int = 64, until: int = 0, queues: int = 1
    ) -> None:
        """Start it.

        Args:
            switch: where its front ends connect.
            ports: each `NAME=STATION[:TO:FRAMES[:RATE]]`; the rate is what it takes in 1 ms.
            size: bytes of the frames that it sends.
            until: it ends when so many frames came to it; 0: when its input ends.
            queues: of each port; each sends, from a station of its own to the next one.
        """
        parts = [port.partition("=") for port in ports]
        more = f",queues={queues},cq=1" if queues > 1 else ""
        devices = [
            f"--vdev=net_virtio_user{number},path={switch.socket(name)},queue_size=256{more}"
            for number, (name, _, _) in enumerate(parts)
        ]
        eal = ["--no-huge", "-m", "64", "--no-pci", "--no-telemetry", "--no-shconf"]
        cpu = ["-l", str(max(os.sched_getaffinity(0)))]
        stations = [one for _, _, text in parts for one in ("-p", text)]
        command = [str(GUEST), *eal, *cpu, "--log-level=error", *devices, "--"]
        command += ["-b", str(size), "-n", str(until), "-q", str(queues)]
        self._log = (switch.folder / "guests").open("ab")
        self.process = subprocess.Popen(
            [*command, *stations],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self._log.close()

    def ready(self) -> bool:
        """Wait until its stations are announced; return False if it ended instead."""
        assert self.process.stdout is not None
        return self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        """Have it send."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """End it; return what each of its stations sent and received."""
        said, _ = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0
        found: dict[str, Any] = json.loads(said)
        return found


def whole(tally: Mapping[str, int], frames: int) -> bool:
    """Return whether all frames came, once and in order."""
    counted = {"received": frames, "repeated": 0, "overtaken": 0, "gaps": 0, "moved": 0}
    return tally == counted | {"queue": tally["queue"]}


def _toml(table: Mapping[str, Any]) -> str:
    """Write the table [switch]; values are texts, numbers, and the tables that the tests use."""
    lines = ["[switch]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in table.items() if _plain(value)]
    for number, one in table.get("classes", {}).items():
        lines += [f"[switch.classes.{number}]", *(f"{key} = {one[key]}" for key in one)]
    for port in table["port"]:
        lines += ["[[switch.port]]", *_pairs(port)]
        for key, inner in port.items():
            lines += [f"[switch.port.{key}]", *_pairs(inner)] if isinstance(inner, dict) else []
    return "\n".join(lines) + "\n"


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {json.dumps(one)}" for key, one in table.items() if not isinstance(one, dict)]


def _plain(value: object) -> bool:
    return not isinstance(value, dict | list)
