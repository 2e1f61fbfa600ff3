"""The settings of the port agent: the table [port-agent] of xco.toml, checked.

Quantities are texts with their units: "50ms".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from xco.errors import ConfigError, UnitError
from xco.ports.port_tables import FORM, TABLES, PortTable
from xco.tables import converted, read_tables
from xco.topology.file import load_file
from xco.topology.graph import Topology
from xco.units import parse_duration

DEFAULT_PATH: Final = Path("/etc/xtc/xco.toml")
TABLE: Final = "port-agent"
RUN_DIR: Final = "/run/xco"
PORTS_MAX: Final = 4096
SHORTEST_NS: Final = 1_000_000
LONGEST_NS: Final = 1_000_000_000
"""The controller takes a port that it has not heard of for 3 s as one without counters."""


class AgentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table ``[port-agent]``."""

    topology: str
    controllers: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=4)]
    """Addresses and ports of the controller and its standbys."""
    key_file: str
    port: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1, max_length=PORTS_MAX)]
    """Tables of their own, by reader (xco/ports/port_tables.py)."""
    interval: str = "50ms"
    """Time between two looks at the ports."""
    runtime_dir: str = RUN_DIR
    """Directory of the published state."""
    metrics: str | None = None
    """Address and port of the Prometheus metrics; none by default."""


@dataclass(frozen=True, slots=True)
class AgentPort:
    """A port that the agent reads: that of `source` towards `target`."""

    link: tuple[str, str]
    source: int
    """Number of the node (`Topology.node_indices`)."""
    target: int
    capacity_bps: int
    table: PortTable

    def __str__(self) -> str:
        """Return it as messages name it."""
        return " -> ".join(self.link)


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Checked settings."""

    file: str
    controllers: tuple[tuple[str, int], ...]
    key_file: Path
    digest: bytes
    """Of the names of all nodes."""
    interval_ns: int
    runtime_dir: Path
    metrics: tuple[str, int] | None
    ports: tuple[AgentPort, ...]

    @property
    def state_file(self) -> Path:
        """File where the agent publishes."""
        return self.runtime_dir / "port-agent.json"


def load_agent_config(path: Path = DEFAULT_PATH) -> AgentConfig:
    """Read the settings of a file, and the topology that it names.

    Raises:
        ConfigError: names the file, the key, what is wrong and how to fix it.
        TopologyError: the topology is wrong.
    """
    tables = read_tables(path, FORM)
    if TABLE not in tables:
        raise ConfigError(str(path), TABLE, "missing", f"write {FORM.forms[TABLE]}")
    return checked(tables[TABLE], path)


def checked(raw: Any, path: Path) -> AgentConfig:
    """Return the settings of one table, with its topology loaded.

    Raises:
        ConfigError, TopologyError: as `load_agent_config`.
    """
    file = str(path)
    table = converted(raw, AgentTable, file, TABLE, FORM)
    topology = load_file(path.parent / table.topology).topology
    return AgentConfig(
        file=file,
        controllers=tuple(_endpoint(text, "controllers", file) for text in table.controllers),
        key_file=path.parent / table.key_file,
        digest=topology.nodes_digest(),
        interval_ns=_interval_ns(table.interval, file),
        runtime_dir=Path(table.runtime_dir),
        metrics=_endpoint(table.metrics, "metrics", file) if table.metrics else None,
        ports=tuple(_ports(table.port, topology, file)),
    )


def _interval_ns(text: str, file: str) -> int:
    fix = 'write a duration from "1ms" to "1s", such as "50ms"'
    try:
        interval_ns = parse_duration(text, field="interval")
    except UnitError as error:
        raise ConfigError(file, f"{TABLE}.interval", str(error), fix) from error
    if not SHORTEST_NS <= interval_ns <= LONGEST_NS:
        raise ConfigError(file, f"{TABLE}.interval", f"{text!r} is out of range", fix)
    return interval_ns


def _endpoint(text: str, key: str, file: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    try:
        plain = str(ip_address(address.removeprefix("[").removesuffix("]")))
        number = int(port)
    except ValueError:
        plain, number = "", 0
    if not plain or not 0 < number < 2**16 or (":" in plain) != address.startswith("["):
        raise ConfigError(file, f"{TABLE}.{key}", f"{text!r}", f"write {FORM.forms[key]}")
    return plain, number


def _ports(rows: tuple[dict[str, Any], ...], topology: Topology, file: str) -> Iterator[AgentPort]:
    seen: dict[tuple[str, str], str] = {}
    for index, row in enumerate(rows):
        key = f"{TABLE}.port[{index}]"
        made = _port(row, topology, file, key)
        if made.link in seen:
            problem = f"{made} is also {seen[made.link]}"
            raise ConfigError(file, f"{key}.link", problem, "remove one of them")
        seen[made.link] = key
        yield made


def _port(row: dict[str, Any], topology: Topology, file: str, key: str) -> AgentPort:
    kind = row.get("reader")
    if kind not in TABLES:
        problem = "missing" if kind is None else f"{kind!r} is no reader"
        raise ConfigError(file, f"{key}.reader", problem, f"write {FORM.forms['reader']}")
    table = converted(row, TABLES[kind], file, key, FORM)
    nodes = topology.node_indices
    for name in table.link:
        if name not in nodes:
            fix = "name a host or a switch of the topology"
            raise ConfigError(file, f"{key}.link", f"no node {name!r} in the topology", fix)
    capacity_bps, interface = _adjacent(topology, table.link, file, key)
    source, target = (nodes[name] for name in table.link)
    return AgentPort(
        table.link, source, target, capacity_bps, table.completed(interface, file, key)
    )


def _adjacent(topology: Topology, ends: tuple[str, str], file: str, key: str) -> tuple[int, str]:
    """Return the capacity of the link between two nodes, and the port's name in the topology."""
    source, target = ends
    for link in topology.links:
        if (link.a, link.b) in {(source, target), (target, source)}:
            return link.capacity_bps, link.ports[0 if link.a == source else 1]
    fix = "name the two ends of one link, the port's own node first"
    raise ConfigError(file, f"{key}.link", f"no link between {source!r} and {target!r}", fix)
