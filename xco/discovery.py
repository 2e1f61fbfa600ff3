"""Reads the active spanning tree from Linux bridges: here, in a network namespace, or by ssh."""

import re
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from xco.bridge_output import parse_lldp, parse_ports, parse_shapers, parse_speeds
from xco.errors import ConfigError, TreeError
from xco.observed import SwitchView, with_tree
from xco.topology import Topology
from xco.topology_file import BridgeSource, TopologyFile, load_file

TIMEOUT_S: Final = 5.0
"""For one command: a switch that hangs must not hold up the others for long."""
AT_ONCE: Final = 16
"""Switches that are read at the same time."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:@+-]{1,15}")
"""Interface names that a remote shell leaves alone."""

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end and keep what it says.

    Raises:
        OSError: there is no such program.
        subprocess.TimeoutExpired: it takes more than 5 s.
    """
    return subprocess.run(  # noqa: S603  the words are this module's and checked names
        command,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )


def discover(path: Path, run: Run = run) -> Topology:
    """Read a topology from its file, and the spanning tree from the switches that can be read.

    Raises:
        TopologyError: the file is wrong.
        TreeError: a switch cannot be read, or what it says does not fit.
    """
    return read_tree(load_file(path), str(path), run)


def read_tree(loaded: TopologyFile, file: str, run: Run = run) -> Topology:
    """Return the topology with the tree of the switches that say where they can be read.

    Raises:
        TreeError: a switch cannot be read, or what it says does not fit.
    """
    if not loaded.sources:
        return loaded.topology
    with ThreadPoolExecutor(AT_ONCE) as pool:
        views = list(pool.map(lambda source: read_switch(source, file, run), loaded.sources))
    return with_tree(loaded.topology, views, file)


def read_switch(source: BridgeSource, file: str = "topology", run: Run = run) -> SwitchView:
    """Return what a bridge says of its ports now.

    Raises:
        TreeError: it cannot be read, or has no port.
    """
    key = f"switch.{source.switch}"
    try:
        return _view(source, _Commands(source, run))
    except (OSError, subprocess.TimeoutExpired, ConfigError) as error:
        fix = "see that iproute2 is there, and that this user may run it"
        raise TreeError(file, key, f"cannot be read: {error}", fix) from error


def _view(source: BridgeSource, commands: "_Commands") -> SwitchView:
    states = parse_ports(commands.must(["bridge", "-j", "link"]), source.bridge)
    if not states:
        fix = "name its bridge, and see that it has ports"
        raise ConfigError(f"bridge {source.bridge}", "", "has no port, or does not exist", fix)
    files = [f"/sys/class/net/{port}/speed" for port in states if _PLAIN.fullmatch(port)]
    speeds = parse_speeds(commands.may(["grep", "-Hs", ".", *files]))
    for port, rate in parse_shapers(commands.must(["tc", "-j", "qdisc"])).items():
        speeds[port] = min(rate, speeds.get(port, rate))
    heard = {} if source.netns else parse_lldp(commands.may(["lldpctl", "-f", "json"]) or "{}")
    known = {port: neighbour for port, neighbour in heard.items() if port in states}
    return SwitchView(source.switch, states, speeds, known)


class _Commands:
    """Runs commands where a switch is."""

    def __init__(self, source: BridgeSource, run: Run) -> None:
        self._run = run
        self._prefix: tuple[str, ...] = ()
        if source.netns:
            self._prefix = ("ip", "netns", "exec", source.netns)
        elif source.ssh:
            self._prefix = ("ssh", "-o", "BatchMode=yes", "--", source.ssh)

    def must(self, command: Sequence[str]) -> str:
        """Return what a command says.

        Raises:
            ConfigError: it fails.
        """
        done = self._run([*self._prefix, *command])
        if done.returncode != 0:
            raise ConfigError(" ".join(done.args), "", done.stderr.strip() or "fails")
        return done.stdout

    def may(self, command: Sequence[str]) -> str:
        """Return what a command says where there is such a program, or what it knows of it."""
        try:
            return self._run([*self._prefix, *command]).stdout
        except FileNotFoundError:
            return ""
