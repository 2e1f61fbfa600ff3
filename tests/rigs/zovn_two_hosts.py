"""Two hosts as docs/howto/zovn-overlay.md sets them up: its settings and commands, as they stand.

Each host is a namespace, with a folder in the place of /etc/xtc, /run and /var/lib; a veth is the
line between them. Programs and commands are processes of their own.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from documents_rig import BLOCK
from rigs import zovn_wire_rig as wires
from rigs.zovn_switch_rig import lawful
from rigs.zovn_veth_rig import MAC, address, container, port
from support.waiting import PATIENCE_S, eventually

from lab.system import namespaces
from zovn.errors import SwitchAway
from zovn.switch import control
from zovn.switch.control import PortReport, SwitchReport

PAGE: Final = (Path(__file__).parents[2] / "docs" / "howto" / "zovn-overlay.md").read_text()
HOSTS: Final = {"h1": "10.9.0.1", "h2": "10.9.0.2"}
LINE: Final = "w0"
WIRE: Final = "fabric"
GATED: Final = "gates stand"
"""What a coordinator says when it has exchanged the line's queues for its own."""
FOLDERS: Final = ("etc/xtc", "run/xco", "run/zovn", "lib")


def block(first: str) -> str:
    """Return the block of the page that begins with these words."""
    (found,) = (body for _, body in BLOCK.findall(PAGE) if body.startswith(first))
    return found


def commands_for(number: int, text: str) -> str:
    """Return commands of the page for the container with this number, which exists."""
    text = re.sub(r"\b02(:00){4}:0\d\b", MAC.format(number), text)
    text = re.sub(r"\b10\.77\.0\.\d\b", address(number), text)
    text = re.sub(r"\bp\d\b", port(number), text)
    text = re.sub(r"\bc\d\b", container(number), text)
    return "".join(f"{line}\n" for line in text.splitlines() if "netns add" not in line)


class Host:
    """A host: its folder, its namespace, and the programs that run there."""

    def __init__(self, name: str, folder: Path, stack: ExitStack) -> None:
        self.folder, self.netns, self._stack = folder, wires.name(name), stack
        for inner in FOLDERS:
            (folder / inner).mkdir(parents=True)
        self.etc = folder / "etc/xtc"
        self.locations = folder / "run/xco/zovn.locations"
        self.control = folder / "run/zovn/control.sock"
        self.log = folder / "log"
        self.log.touch()
        self._enter = ("nsenter", f"--net={namespaces.path(self.netns)}")
        self._environment = os.environ | {
            "XCO_CONFIG": str(self.etc / "xco.toml"),
            "ZOVN_CONFIG": str(self.etc / "zovn.toml"),
            "ZOVN_CONTROL": str(self.control),
        }

    def write(self, **settings: str) -> None:
        """Write files of settings; what the page leaves to defaults is in the folder, too."""
        loop = {"runtime_dir": "run/xco", "state_dir": "lib"}
        controller = {"run_dir": "run/xco", "lease": "lib", "key": "etc/xtc/xco.key"}
        tables = {"controller": controller, "coordinator": loop}
        tables["switch"] = {"control": "run/zovn/control.sock"}
        for name, text in settings.items():
            for table, places in tables.items():
                own = [f'{key} = "/{place}"\n' for key, place in places.items()]
                text = text.replace(f"[{table}]\n", f"[{table}]\n{''.join(own)}")  # noqa: PLW2901
            (self.etc / f"{name}.toml").write_text(self._placed(text))

    def _placed(self, text: str) -> str:
        """Return a text with this host's folders and its interface to the line."""
        for inner in FOLDERS:
            text = re.sub(rf"(?<![\w/])/{inner}\b", f"{self.folder}/{inner}", text)
        return text.replace("eth1", LINE)

    def start(self, *words: str) -> "Program":
        """Start a program that ends with the site."""
        command = [*self._enter, sys.executable, "-m", *words]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )
        started = Program(process)
        self._stack.callback(started.end)
        return started

    def execute(self, commands: str) -> None:
        """Run commands of the page."""
        script = f"""set -e
            zovn() {{ {sys.executable} -m zovn "$@"; }}
            xco() {{ {sys.executable} -m xco "$@"; }}
            {self._placed(commands)}"""
        done = subprocess.run(
            [*self._enter, "sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE_S,
            env=self._environment,
            cwd=self.etc,
        )
        assert done.returncode == 0, done.stderr

    def answers(self) -> bool:
        """Return whether the switch does."""
        try:
            return bool(control.ports(self.control))
        except SwitchAway:
            return False

    def report(self) -> SwitchReport:
        """Return what the switch counted; the law of its counters holds at any time."""
        report = control.status(self.control)
        assert all(map(lawful, report.ports)), report
        return report

    def port(self, name: str) -> PortReport:
        """Return what it counted of a port."""
        return next(port for port in self.report().ports if port.name == name)

    def place(self, number: int) -> None:
        """Connect a container as the page says, and wait until its port is there."""
        self.execute(commands_for(number, block("ip netns add c1")))
        eventually(lambda: self.port(container(number)).state == "silent")

    def line(self) -> str:
        """Return what the kernel counted at the interface to the line."""
        looks = f"ip -s link show {LINE}; tc -s qdisc show dev {LINE}"
        done = subprocess.run(
            [*self._enter, "sh", "-c", looks], capture_output=True, text=True, check=False
        )
        return done.stdout

    def located(self) -> set[str]:
        """Return the lines of the map."""
        return set(self.locations.read_text().splitlines()) if self.locations.exists() else set()

    def gated(self, times: int) -> bool:
        """Return whether so many coordinators, one after the other, have had their queues here."""
        return self.log.read_text().count(GATED) == times


class Program:
    """A program in a session of its own, with all that it starts."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self._killed = process, False

    def kill(self) -> None:
        """Kill all of its processes (kill -9)."""
        if self._killed:
            return
        self._killed = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def end(self) -> None:
        """End it; kill what is left."""
        if self._killed:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_S)
        self.kill()


class Site:
    """Both hosts, with settings and keys."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.h1, self.h2 = self.hosts = [Host(name, folder / name, stack) for name in HOSTS]
        self.xco: list[Program] = []
        wires.connect("h1", LINE, "h2", LINE)
        for name, local in HOSTS.items():
            # By a NAPI frames keep their order, as from a network card; else each CPU has a queue.
            wires.run("ip", "netns", "exec", wires.name(name), "ethtool", "-K", LINE, "gro", "on")
            wires.ip(name, "link", "set", "lo", "up")
            wires.ip(name, "address", "add", f"{local}/24", "dev", LINE)
        self._write()
        self._make_keys()
        (self.h1.etc / "h2.key").rename(self.h2.etc / "xco-host.key")

    def _make_keys(self) -> None:
        master, *others = block("xco key make").splitlines()
        self.h1.execute(master)
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.h1.execute, others))

    def _write(self) -> None:
        names = ("topology", "xco", "zovn")
        topology, xco, zovn = (block(f"# /etc/xtc/{name}.toml") for name in names)
        # A busy machine is no reason to take a container for one that does not read.
        zovn = zovn.replace("[switch]\n", '[switch]\nstall = "1min"\n')
        self.h1.write(topology=topology, xco=xco, zovn=zovn)
        xco = xco[xco.index("[coordinator]") :].replace('host = "h1"', 'host = "h2"')
        zovn = zovn.replace('local = "10.9.0.1"', 'local = "10.9.0.2"')
        self.h2.write(topology=topology, xco=xco, zovn=zovn)

    def start_controller(self) -> None:
        """Start the controller."""
        self.xco.append(self.h1.start("xco", "controller", "run"))

    def start_coordinators(self, *hosts: Host) -> None:
        """Start a coordinator on each of these hosts, or of all."""
        some = hosts or self.hosts
        self.xco += [host.start("xco", "coordinator", "run") for host in some]

    def start_switches(self) -> None:
        """Start the switches when they have a map, and wait until they answer."""
        eventually(lambda: all(host.located() for host in self.hosts), state=self.logs)
        for host in self.hosts:
            host.start("zovn", "switch", "run")
        eventually(lambda: all(host.answers() for host in self.hosts), state=self.logs)
        eventually(lambda: all(host.port(WIRE).state == "runs" for host in self.hosts))

    def kill_xco(self) -> None:
        """Kill the controller and the coordinators, with all their processes."""
        while self.xco:
            self.xco.pop().kill()

    def logs(self) -> list[str]:
        """Return the end of what all programs said."""
        return [host.log.read_text()[-4000:] for host in self.hosts]


@contextmanager
def site(*containers: int) -> Iterator[Site]:
    """Make both hosts, and containers that are at neither; remove all at the end."""
    names = [container(number) for number in containers]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zovn-")))
        stack.enter_context(wires.hosts(*HOSTS))
        for name in names:
            namespaces.remove(name)
            namespaces.create(name)
            stack.callback(namespaces.remove, name)
        yield Site(folder, stack)
