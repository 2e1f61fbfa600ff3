"""A fabric under XCo: the real controller, and a real coordinator on every host.

The way can be changed while the fabric runs: only each card's own line rate (the way
`uncoordinated`), coordinators that a controller directs by one of its strategies, or coordinators
without a controller (`hygenicc`).
"""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

import msgspec

from lab.fabric.fabric import Fabric
from lab.fabric.plan import CONTROLLER_ADDRESS, DATA_INTERFACE, FabricHost
from xco.controller.config import ControllerConfig, ControllerTable
from xco.controller.config import checked as controller_checked
from xco.controller.loopfile import write_loop_file
from xco.controller.supervise import command
from xco.coordinator.config import CoordinatorConfig, plain
from xco.coordinator.config import checked as coordinator_checked
from xco.coordinator.status import MODES
from xco.core_files import program
from xco.errors import ControllerError
from xco.protocol.keys import derive, host_file, new_master
from xco.protocol.stats import Snapshot, read_statistics
from xco.topology.file import load_topology

Way = Literal["uncoordinated", "rate", "timeslice", "hybrid", "gcc", "hygenicc"]
WAYS: Final[tuple[Way, ...]] = ("uncoordinated", "rate", "timeslice", "hybrid")
"""Those of the paper's own experiments: every host is coordinated."""
PORT: Final = 7400
PATIENCE_S: Final = 40.0
"""Timeout of all waits: a busy machine is slow."""
PUBLISHED_S: Final = 0.25
"""Statistics are published ten times a second."""


@dataclass(frozen=True)
class Settings:
    """Configuration of a run of XCo, beyond names and paths: keys of its tables."""

    controller: Mapping[str, Any] = field(default_factory=dict)
    coordinator: Mapping[str, Any] = field(default_factory=dict)


LAB: Final = Settings(
    # This machine wakes a real-time thread 60 us late, and one in a hundred 200 us and more; each
    # change of senders costs that. At 100 Mb/s, a slice also loses a part of a packet, of 120 us.
    controller={"slice": "8ms"},
    coordinator={
        # Between slices the port's queue empties, so a slice may send almost at the link's rate.
        "pace": 0.99,
        "guard": "20us",
        # All hosts share this machine's CPUs, so each polls less often than on its own machine.
        "poll_closed": "500us",
        "hysteresis": "20us",
        "poll_open": "20us",
    },
)


class XcoRig:
    """XCo on a running fabric; `rig` makes one and removes it."""

    def __init__(
        self,
        fabric: Fabric,
        folder: Path,
        settings: Settings | None = None,
        foreign: Sequence[FabricHost] = (),
        tables: str = "",
    ) -> None:
        """Write key and topology, with more tables if given; nothing runs yet.

        Foreign hosts are in no topology.
        """
        self.hosts = tuple(host for host in fabric.plan.hosts if host not in foreign)
        self.fabric, self._folder = fabric, folder
        self.settings = settings or LAB
        self._master = new_master()
        (folder / "key").write_bytes(self._master)
        without = frozenset(host.name for host in foreign)
        text = topology_text(fabric.describe(), without)
        (folder / "topology.toml").write_text(text + tables)
        self._way: Way = "uncoordinated"
        self._controller: subprocess.Popen[bytes] | None = None
        self._coordinators: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def log(self) -> Path:
        """Output of controller and coordinators."""
        return self._folder / "log"

    def go(self, way: Way) -> Self:
        """Put a way in force on all hosts; return when it is.

        Raises:
            CoreError: the programs are not built.
            ControllerError: they do not start, or the hosts do not join.
        """
        self.stop()
        self._way = way
        if way == "uncoordinated":
            self.fabric.pace()
            return self
        if way != "hygenicc":
            self.start_controller(way)
        for host in self.hosts:
            self.fabric.unpace([host])
            self.start_coordinator(host)
        if way == "hygenicc":
            self.wait_until(self.alone, "all hosts live without a controller")
        else:
            self.wait_until(self.joined, "all hosts have joined")
        return self

    def start_controller(self, way: Way = "timeslice") -> None:
        """Start the controller's loop in the controller's namespace, in a new epoch."""
        config = self.controller_config(way)
        topology = load_topology(config.topology)
        config.stats_file.unlink(missing_ok=True)
        write_loop_file(config, topology, time.time_ns() // 1_000_000)
        self._controller = self._run(None, "xco-controller", config.loop_file)

    def start_coordinator(self, host: FabricHost) -> None:
        """Start the coordinator of one host on its interface."""
        config = self.coordinator_config(host)
        config.statistics.unlink(missing_ok=True)
        config.plain_file.write_text(plain(config))
        self._coordinators[host.name] = self._run(host, "xco-coordinator", config.plain_file)

    def stop(self) -> None:
        """End all programs; coordinators leave their hosts unshaped."""
        for process in self._coordinators.values():
            process.terminate()
        while self._coordinators:
            self._end(self._coordinators.popitem()[1])
        self.stop_controller()

    def stop_controller(self) -> None:
        """Stop the controller, if any, as an operator would."""
        if self._controller is not None:
            self._end(self._controller)
        self._controller = None

    def kill_controller(self) -> None:
        """Kill the controller immediately."""
        assert self._controller is not None  # the caller has started it
        self._controller.kill()
        self._controller.wait()
        self._controller = None

    def coordinator(self, host: FabricHost) -> "subprocess.Popen[bytes]":
        """Return a host's coordinator: the guard, the parent of the loop."""
        return self._coordinators[host.name]

    def switch(self, way: Way) -> None:
        """Change the strategy of the running controller."""
        command(self.controller_config(way).command_socket, f"strategy {way}")

    def joined(self) -> bool:
        """Whether all hosts are under the controller."""
        with suppress(ControllerError):
            return self.controller_counters()["hosts_joined"] == len(self.hosts) and (
                all(self._mode(host) not in {"fallback", "hygenicc"} for host in self.hosts)
            )
        return False

    def alone(self) -> bool:
        """Whether all hosts live by what they offer each other."""
        with suppress(ControllerError):
            return all(self._mode(host) == "hygenicc" for host in self.hosts)
        return False

    def _mode(self, host: FabricHost) -> str:
        return MODES[self.host_counters(host)["mode"]]

    def wait_until(self, condition: Callable[[], bool], words: str) -> None:
        """Wait until a condition holds.

        Raises:
            ControllerError: it does not hold in time; the error has the programs' output.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                said = self.log.read_text(errors="replace")[-1000:]
                raise ControllerError(str(self.log), f"it is not so that {words}: {said}")
            time.sleep(0.02)

    def controller_counters(self) -> dict[str, int]:
        """Return the controller's counters, as published."""
        return self._read(self.controller_config().stats_file).values

    def host_counters(self, host: FabricHost) -> dict[str, int]:
        """Return the counters of a host's coordinator, as published."""
        return self._read(self.coordinator_config(host).statistics).values

    def controller_config(self, way: Way | None = None) -> ControllerConfig:
        """Return the controller's settings, by default those of the way in force."""
        chosen = way or self._way
        raw = {
            "topology": "topology.toml",
            "key": "key",
            "listen": f"{CONTROLLER_ADDRESS}:{PORT}",
            "run_dir": str(self._folder),
            "strategy": "timeslice" if chosen in {"uncoordinated", "hygenicc"} else chosen,
        } | dict(self.settings.controller)
        table = msgspec.convert(raw, ControllerTable)
        return controller_checked(table, {}, self._folder / "xco.toml")

    def coordinator_config(self, host: FabricHost) -> CoordinatorConfig:
        """Return the settings of a host's coordinator."""
        folder = self._folder / host.name
        folder.mkdir(exist_ok=True)
        raw: dict[str, Any] = {
            "host": host.name,
            "interface": DATA_INTERFACE,
            "topology": str(self._folder / "topology.toml"),
            "key_file": str(folder / "key"),
            "controllers": [f"{CONTROLLER_ADDRESS}:{PORT}"],
            "state_dir": str(folder),
            "runtime_dir": str(folder),
        }
        if self._way == "hygenicc":
            raw |= {"controllers": [], "fallback": "hygenicc"}
        config = coordinator_checked(
            raw | dict(self.settings.coordinator), str(folder / "xco.toml")
        )
        if not (folder / "key").exists():  # a coordinator may be reading it
            keys = derive(self._master, config.host, len(config.topology.hosts))
            (folder / "key").write_bytes(host_file(keys))
        return config

    def _run(self, host: FabricHost | None, name: str, file: Path) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            argv = [str(program(name)), str(file)]
            return self.fabric.run(host, argv, stderr=log, start_new_session=True)

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @staticmethod
    def _read(path: Path) -> Snapshot:
        return read_statistics(path)


def topology_text(described: Mapping[str, Any], without: frozenset[str] = frozenset()) -> str:
    """Return the topology file for `Fabric.describe`, without some hosts."""
    lines = [f"[switch.{name}]" for name in described["switches"]]
    for host in (host for host in described["hosts"] if host["name"] not in without):
        addresses = ", ".join(f'"{address}"' for address in host["addresses"])
        lines += [f"[host.{host['name']}]", f"addresses = [{addresses}]"]
    for link in described["links"]:
        a, b = link["between"]
        if without & {a, b}:
            continue
        lines += ["[[link]]", f'between = ["{a}", "{b}"]', f'capacity = "{link["capacity_bps"]}"']
    return "\n".join(lines) + "\n"


@contextmanager
def rig(
    fabric: Fabric,
    settings: Settings | None = None,
    foreign: Sequence[FabricHost] = (),
    tables: str = "",
) -> Iterator[XcoRig]:
    """Yield XCo on a running fabric, on all but foreign hosts, and end all of it."""
    with tempfile.TemporaryDirectory(prefix="xco-rig-") as folder:
        made = XcoRig(fabric, Path(folder), settings, foreign, tables)
        try:
            yield made
        finally:
            made.stop()
