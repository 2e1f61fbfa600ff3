"""Reads the active spanning tree from the switches: Linux bridges, and managed ones by SNMP."""

import re
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from xco.errors import ConfigError, TreeError
from xco.topology.bridge_output import parse_lldp, parse_ports, parse_shapers, parse_speeds
from xco.topology.file import BridgeSource, SnmpSource, Source, TopologyFile, load_file
from xco.topology.graph import Topology
from xco.topology.snmp_output import TABLES, neighbours, parse_walk, port_speeds, port_states
from xco.topology.switch_state import SwitchView, with_tree

TIMEOUT_S: Final = 5.0
"""Time limit of one command: a hung switch must not delay the others for long."""
AT_ONCE: Final = 16
"""Number of switches read concurrently."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:@+-]{1,15}")
"""Interface names that need no quoting in a remote shell."""

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command until it exits and capture its output.

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
        TreeError: a switch cannot be read, or its state does not fit the file.
    """
    return read_tree(load_file(path), str(path), run)


def read_tree(loaded: TopologyFile, file: str, run: Run = run) -> Topology:
    """Return the topology with the tree of the switches that the file says how to read.

    Raises:
        TreeError: a switch cannot be read, or its state does not fit the file.
    """
    if not loaded.sources:
        return loaded.topology
    with ThreadPoolExecutor(AT_ONCE) as pool:
        views = list(pool.map(lambda source: read_switch(source, file, run), loaded.sources))
    return with_tree(loaded.topology, views, file)


def read_switch(source: Source, file: str = "topology", run: Run = run) -> SwitchView:
    """Return the present state of a switch's ports.

    Raises:
        TreeError: it cannot be read, or has no port.
    """
    key = f"switch.{source.switch}"
    try:
        if isinstance(source, SnmpSource):
            return _managed(source, run)
        return _bridge(source, _Commands(source, run))
    except (OSError, subprocess.TimeoutExpired, ConfigError) as error:
        needs = "net-snmp's snmpbulkwalk" if isinstance(source, SnmpSource) else "iproute2"
        fix = f"see that {needs} is there, and that this user may run it"
        raise TreeError(file, key, f"cannot be read: {error}", fix) from error


def _bridge(source: BridgeSource, commands: "_Commands") -> SwitchView:
    states = parse_ports(commands.must(["bridge", "-j", "link"]), source.bridge)
    if not states:
        fix = "name its bridge, and see that it has ports"
        raise ConfigError(f"bridge {source.bridge}", "", "has no port, or does not exist", fix)
    files = [f"/sys/class/net/{port}/speed" for port in states if _PLAIN.fullmatch(port)]
    speeds = parse_speeds(commands.may(["grep", "-Hs", ".", *files]))
    for port, rate in parse_shapers(commands.must(["tc", "-j", "qdisc"])).items():
        speeds[port] = min(rate, speeds.get(port, rate))
    heard = {} if source.netns else parse_lldp(commands.may(["lldpctl", "-f", "json"]) or "{}")
    return _view(source, states, speeds, heard)


def _managed(source: SnmpSource, run: Run) -> SwitchView:
    walks = {table: parse_walk(_walk(source, table, run), table) for table in TABLES}
    states = port_states(walks)
    if not states:
        fix = "check that its agent shows BRIDGE-MIB and IF-MIB to this machine"
        raise ConfigError(f"agent {source.agent}", "", "reports no port of a bridge", fix)
    return _view(source, states, port_speeds(walks), neighbours(walks))


def _walk(source: SnmpSource, table: str, run: Run) -> str:
    """Read a table; version and credentials come from net-snmp's own configuration."""
    done = run(["snmpbulkwalk", "-m", "", "-Oneq", "-Cr50", "-t2", "-r1", source.agent, table])
    if done.returncode != 0:
        fix = "check that it is reachable, and that /etc/snmp/snmp.conf has its credentials"
        raise ConfigError(f"agent {source.agent}", "", done.stderr.strip() or "fails", fix)
    return done.stdout


def _view(
    source: Source,
    states: dict[str, str],
    speeds: dict[str, int],
    heard: dict[str, tuple[str, str]],
) -> SwitchView:
    known = {port: neighbour for port, neighbour in heard.items() if port in states}
    carried = {port: speed for port, speed in speeds.items() if port in states}
    return SwitchView(source.switch, states, carried, known)


class _Commands:
    """Runs commands on a switch."""

    def __init__(self, source: BridgeSource, run: Run) -> None:
        self._run = run
        self._prefix: tuple[str, ...] = ()
        if source.netns:
            self._prefix = ("ip", "netns", "exec", source.netns)
        elif source.ssh:
            self._prefix = ("ssh", "-o", "BatchMode=yes", "--", source.ssh)

    def must(self, command: Sequence[str]) -> str:
        """Return a command's output.

        Raises:
            ConfigError: it fails.
        """
        done = self._run([*self._prefix, *command])
        if done.returncode != 0:
            raise ConfigError(" ".join(done.args), "", done.stderr.strip() or "fails")
        return done.stdout

    def may(self, command: Sequence[str]) -> str:
        """Return a command's output, even if it fails; empty without such a program."""
        try:
            return self._run([*self._prefix, *command]).stdout
        except FileNotFoundError:
            return ""
