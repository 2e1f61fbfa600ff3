"""Reads a topology from its TOML file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from xco.errors import TopologyError, UnitError
from xco.tables import Format, check_keys, converted, parse_tables, read_tables
from xco.topology.check import link_key
from xco.topology.elements import Host, Link, Switch
from xco.topology.graph import Topology
from xco.topology.vms import FORMS as VM_FORMS
from xco.topology.vms import Vm, VmTable, vms_of
from xco.units import parse_rate, parse_size

FORM: Final = Format(
    TopologyError,
    {
        "switch": "a table for each switch: [switch.NAME]",
        "host": "a table for each host: [host.NAME]",
        "link": "a table for each link: [[link]]",
        "addresses": 'a list of addresses, such as ["10.0.0.1"]',
        "between": 'two names, such as ["host1", "switch1"]',
        "capacity": 'a rate, such as "10Gbps"',
        "buffer": 'a size, such as "32KB"',
        "tree": "true or false",
        "ports": 'two names of interfaces, such as ["eth0", "swp1"], "" for one not known',
        "bridge": 'the name of its bridge, such as "br0"',
        "netns": 'the name of its network namespace, such as "switch1"',
        "ssh": 'where its bridge is reached, such as "admin@switch1"',
        "snmp": 'where its SNMP agent is reached, such as "switch1.example.net"',
        **VM_FORMS,
    },
)

_Interface = Annotated[str, msgspec.Meta(pattern=r"^[^\s/-][^\s/]{0,14}\Z")]
_Port = Annotated[str, msgspec.Meta(pattern=r"^([^\s/-]\S{0,63})?\Z")]
_Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}\Z")]


class _SwitchTable(msgspec.Struct, forbid_unknown_fields=True):
    bridge: _Interface | None = None
    netns: _Word | None = None
    ssh: _Word | None = None
    snmp: _Word | None = None


class _HostTable(msgspec.Struct, forbid_unknown_fields=True):
    addresses: tuple[str, ...] = ()


class _LinkTable(msgspec.Struct, forbid_unknown_fields=True):
    between: tuple[str, str]
    capacity: str
    buffer: str | None = None
    tree: bool | None = None
    ports: tuple[_Port, _Port] = ("", "")


@dataclass(frozen=True, slots=True)
class BridgeSource:
    """How to read a switch's state: a Linux bridge here, in a namespace, or over ssh."""

    switch: str
    bridge: str
    netns: str | None = None
    ssh: str | None = None


@dataclass(frozen=True, slots=True)
class SnmpSource:
    """How to read a managed switch's state: its SNMP agent."""

    switch: str
    agent: str


Source = BridgeSource | SnmpSource


@dataclass(frozen=True, slots=True)
class TopologyFile:
    """Content of the file: the topology, how to read its switches, and VMs with shares.

    The VMs are no part of the topology: hosts may have different ones during a change.
    """

    topology: Topology
    sources: tuple[Source, ...] = ()
    vms: tuple[Vm, ...] = ()


def load_topology(path: Path) -> Topology:
    """Read and check a topology from a complete file.

    Raises:
        TopologyError: names the file, the table and the key, what is wrong, and what to do.
    """
    return _whole(read_tables(path, FORM), str(path))


def parse_topology(text: str, file: str = "topology") -> Topology:
    """Read and check the text of a topology.

    Raises:
        TopologyError: as `load_topology`.
    """
    return _whole(parse_tables(text, file, FORM), file)


def load_file(path: Path) -> TopologyFile:
    """Read a topology that may get its tree from its switches: then loops are allowed.

    Raises:
        TopologyError: as `load_topology`.
    """
    loaded = _converted(read_tables(path, FORM), str(path))
    _check(loaded.topology, str(path), tree_to_come=bool(loaded.sources))
    return loaded


def _whole(tables: dict[str, Any], file: str) -> Topology:
    topology = _converted(tables, file).topology
    _check(topology, file, tree_to_come=False)
    return topology


def _converted(tables: dict[str, Any], file: str) -> TopologyFile:
    check_keys(tables, {"switch": dict, "host": dict, "link": list, "vm": dict}, file, FORM)
    switches = {
        name: converted(raw, _SwitchTable, file, f"switch.{name}", FORM)
        for name, raw in tables.get("switch", {}).items()
    }
    hosts = tuple(
        Host(name, converted(raw, _HostTable, file, f"host.{name}", FORM).addresses)
        for name, raw in tables.get("host", {}).items()
    )
    rows = [
        converted(raw, _LinkTable, file, link_key(index), FORM)
        for index, raw in enumerate(tables.get("link", []))
    ]
    links = tuple(_link(row, index, file) for index, row in enumerate(rows))
    topology = Topology(tuple(map(Switch, switches)), hosts, links, _tree(rows))
    return TopologyFile(topology, tuple(_sources(switches, file)), _vms(tables, file))


def _vms(tables: dict[str, Any], file: str) -> tuple[Vm, ...]:
    for name, raw in tables.get("vm", {}).items():
        if not isinstance(raw, dict):
            raise TopologyError(file, f"vm.{name}", "no table", f"write {VM_FORMS['vm']}")
    rows = {
        name: converted(raw, VmTable, file, f"vm.{name}", FORM)
        for name, raw in tables.get("vm", {}).items()
    }
    return vms_of(rows, file)


def _check(topology: Topology, file: str, *, tree_to_come: bool) -> None:
    try:
        topology.check(tree_to_come=tree_to_come)
    except TopologyError as error:
        raise TopologyError(file, error.key, error.problem, error.fix) from None


def _link(row: _LinkTable, index: int, file: str) -> Link:
    try:
        capacity = parse_rate(row.capacity, field="capacity")
        buffer = None if row.buffer is None else parse_size(row.buffer, field="buffer")
    except UnitError as error:
        problem = f"{error.got!r} is not {error.expected}"
        fix = f"write {FORM.forms[error.field]}; the link is {' - '.join(row.between)}"
        raise TopologyError(file, link_key(index, error.field), problem, fix) from None
    return Link(*row.between, capacity, buffer, row.ports)


def _tree(rows: list[_LinkTable]) -> frozenset[int] | None:
    """Return the links that carry traffic: all not marked otherwise; None if none is marked."""
    if all(row.tree is None for row in rows):
        return None
    return frozenset(index for index, row in enumerate(rows) if row.tree is not False)


def _sources(switches: dict[str, _SwitchTable], file: str) -> Iterator[Source]:
    for name, table in switches.items():
        _check_source(table, name, file)
        if table.bridge:
            yield BridgeSource(name, table.bridge, table.netns, table.ssh)
        elif table.snmp:
            yield SnmpSource(name, table.snmp)


def _check_source(table: _SwitchTable, name: str, file: str) -> None:
    fix = "leave out one of them"
    if table.netns and table.ssh:
        raise TopologyError(file, f"switch.{name}", "has both netns and ssh", fix)
    if table.snmp and (table.bridge or table.netns or table.ssh):
        raise TopologyError(file, f"switch.{name}", "has both snmp and a bridge", fix)
    if not table.bridge and (table.netns or table.ssh):
        fix = f"write {FORM.forms['bridge']}"
        raise TopologyError(file, f"switch.{name}.bridge", "missing", fix)
