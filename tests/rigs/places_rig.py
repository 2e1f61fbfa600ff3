"""Three hosts with bridges behind one switch, coordinators and a controller, and VMs that move."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from support.waiting import eventually
from xco_controller_rig import MASTER
from xco_controller_scenes import EPOCH, loop_file

from benchmarks.rig import cpu_seconds
from lab.system import launch, namespaces
from xco.coordinator.config import CoordinatorConfig, checked, plain
from xco.coordinator.locations_file import LocationsFile
from xco.core_files import program
from xco.errors import ControllerError
from xco.protocol.keys import derive, host_file
from xco.protocol.stats import read_statistics
from xco.topology.file import load_topology

RARP = bytes.fromhex("80350001080006040003")
PAUSES_S = (0.05, 0.15, 0.25, 0.35, 0.0)
"""Between five of them, as QEMU does by default."""
"""EtherType, and the head of a request (RFC 903)."""
HOSTS = ("h1", "h2", "h3")
CONTROLLER = "10.78.0.250"
TOPOLOGY = "\n".join(
    [
        "[switch.s]",
        *(f'[host.{name}]\naddresses = ["10.78.0.{n + 1}"]' for n, name in enumerate(HOSTS)),
        '[host.ctl]\naddresses = ["10.78.0.250"]',
        *(f'[[link]]\nbetween = ["{name}", "s"]\ncapacity = "200Mbps"' for name in (*HOSTS, "ctl")),
    ]
)


class Site:
    """The namespaces and what runs in them; leaving it removes all."""

    def __init__(self, prefix: str, folder: Path) -> None:
        self.prefix, self.folder = prefix, folder
        self._stack = ExitStack()
        self._configs: dict[str, CoordinatorConfig] = {}
        self._running: dict[str, ExitStack] = {}
        self._epoch = EPOCH

    def __enter__(self) -> Self:
        for name in ("s", "ctl", *HOSTS):
            self.space(name)
        self.inside("s", "link add br0 type bridge forward_delay 0", "link set br0 up")
        for number, name in enumerate(HOSTS):
            self._build_host(name, number + 1)
        self.cable("ctl", "e0", "s", "ctl", "s")
        self.inside("ctl", f"address add {CONTROLLER}/24 dev e0", "link set e0 up")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def space(self, name: str) -> None:
        """Make a namespace."""
        namespaces.remove(self.named(name))
        namespaces.create(self.named(name))
        self._stack.callback(namespaces.remove, self.named(name))
        self.inside(name, "link set lo up")

    def named(self, name: str) -> str:
        """Return the name of a namespace on this machine."""
        return f"{self.prefix}-{name}"

    def inside(self, name: str, *lines: str) -> None:
        """Carry out commands of ip(8) in one batch."""
        command = ["ip", "-n", self.named(name), "-batch", "-"]
        subprocess.run(command, input="\n".join(lines), text=True, check=True, capture_output=True)

    def cable(self, a: str, port_a: str, b: str, port_b: str, bridge: str = "") -> None:
        """Join two namespaces; the second end becomes a port of that one's bridge."""
        peer = f"peer name {port_b} netns {self.named(b)}"
        self.inside(a, f"link add {port_a} type veth {peer}")
        if bridge:
            self.inside(b, f"link set {port_b} master br0", f"link set {port_b} up")

    def vm(self, name: str, mac: str, address: str, *hosts: str) -> None:
        """Make a VM that can be at these hosts, and start it at the first."""
        self.space(name)
        for host in hosts:
            self.cable(name, f"at-{host}", host, name, "host")
            self.inside(name, f"link set at-{host} address {mac}")
        self.inside(
            name, f"link set at-{hosts[0]} up", f"address add {address}/24 dev at-{hosts[0]}"
        )

    def move(self, name: str, address: str, here: str, there: str) -> None:
        """Move a VM as a hypervisor does: stop it here, start it there, have it announced."""
        self.inside(
            name,
            f"address delete {address}/24 dev at-{here}",
            f"link set at-{here} down",
            f"link set at-{there} up",
            f"address add {address}/24 dev at-{there}",
        )
        self.announce(name, there)

    def announce(self, name: str, host: str) -> None:
        """Send what a hypervisor sends for a VM that has come: RARP requests (QEMU's announce).

        The first may be lost, since a bridge takes a moment to see that a link is up.
        """

        def send() -> None:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
                out.bind((f"at-{host}", 0))
                mac = out.getsockname()[4]
                for pause_s in PAUSES_S:
                    out.send(b"\xff" * 6 + mac + RARP + (mac + bytes(4)) * 2 + bytes(18))
                    time.sleep(pause_s)

        namespaces.inside(self.named(name), send)

    def run(self, name: str, *command: str) -> "subprocess.Popen[bytes]":
        """Start a program in a namespace that ends with the site."""
        process = self._start(name, *command)
        self._stack.callback(_end, process)
        return process

    def _start(self, name: str, *command: str) -> "subprocess.Popen[bytes]":
        start = [sys.executable, launch.__file__, "--owner", str(os.getpid())]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*start, "--netns", namespaces.path(self.named(name)), "--", *command],
                stderr=log,
                stdin=subprocess.PIPE,
            )

    def control(self, **switches: str) -> None:
        """Start the controller and the hosts' coordinators; wait until all have joined."""
        (self.folder / "topology.toml").write_text(TOPOLOGY)
        for number, name in enumerate(HOSTS):
            self._configs[name] = self.config(number, name, switches.get(name))
        self.start("ctl", *HOSTS)
        eventually(lambda: self.counter("ctl", "hosts_joined") == len(HOSTS))

    def start(self, *names: str) -> None:
        """Start the controller ("ctl"), each time in a higher epoch, or coordinators."""
        for name in names:
            self._running[name] = self._stack.enter_context(ExitStack())
            if name == "ctl":
                command = str(program("xco-controller")), str(self._loop_file()), "--with-parent"
            else:
                file = self._configs[name].plain_file
                file.write_text(plain(self._configs[name]))
                self._running[name].enter_context(LocationsFile(self._configs[name]))
                command = str(program("xco-coordinator")), str(file)
            self._running[name].callback(_end, self._start(name, *command))

    def stop(self, *names: str) -> None:
        """End what was started; the controller's counters go, too."""
        for name in names:
            self._running.pop(name).close()
        if "ctl" in names:
            (self.folder / "controller.stats").unlink(missing_ok=True)

    def _loop_file(self) -> Path:
        self._epoch += 1
        topology = load_topology(self.folder / "topology.toml")
        times = {"silence": "20s", "drop": "60s"}
        return loop_file(self.folder, topology, self._epoch, listen="0.0.0.0:7400", **times)

    def config(self, number: int, name: str, switch: str | None = None) -> CoordinatorConfig:
        """Return a coordinator's configuration; `switch` is the control socket of one of zovn."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "key").write_bytes(host_file(derive(MASTER, number)))
        return checked(
            {
                "host": name,
                "interface": "e0",
                "topology": str(self.folder / "topology.toml"),
                "key_file": str(folder / "key"),
                "controllers": [f"{CONTROLLER}:7400"],
                "state_dir": str(folder),
                "runtime_dir": str(folder),
                "classifier": "bpf",
                "locations": str(folder / "locations"),
                "switch": switch,
            }
        )

    def counter(self, name: str, field: str) -> int:
        """Return what the controller ("ctl") or a coordinator has counted; 0: nothing yet."""
        file = self.folder / "controller.stats"
        if name != "ctl":
            file = next((self.folder / name).glob("*.statistics"), self.folder / "none")
        with contextlib.suppress(ControllerError):
            return read_statistics(file).values[field]
        return 0

    def locations(self, name: str) -> list[str]:
        """Return the lines of the file that a host writes for zovn's wires."""
        file = self.folder / name / "locations"
        return file.read_text().splitlines() if file.exists() else []

    def cpu_seconds(self, name: str) -> float:
        """Return the CPU time of a host's coordinator."""
        file = next((self.folder / name).glob("*.statistics"))
        return cpu_seconds(read_statistics(file).pid)

    def sent_to(self, name: str, host: str) -> int:
        """Return the bytes that a host has sent to another through its gate."""
        file = next((self.folder / name).glob("*.statistics"))
        rows = read_statistics(file).rows
        return sum(row["sent_bytes"] for row in rows if row["host"] == HOSTS.index(host))

    def _build_host(self, name: str, number: int) -> None:
        self.cable(name, "e0", "s", name, "s")
        self.inside(
            name,
            "link add br0 type bridge forward_delay 0",
            "link set br0 up",
            "link set e0 master br0",
            "link set e0 up",
            f"address add 10.78.0.{number}/24 dev br0",
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate(timeout=10)


@contextlib.contextmanager
def site(folder: Path, prefix: str = "xcopl", **switches: str) -> Iterator[Site]:
    """Yield a site with its controller and coordinators; hosts have switches of zovn by name.

    Tests that run at the same time have a prefix each.
    """
    with Site(prefix, folder) as made:
        made.control(**switches)
        yield made
