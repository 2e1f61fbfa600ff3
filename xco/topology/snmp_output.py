"""Parses what snmpbulkwalk prints of a managed switch's ports.

Its bridge gives the spanning tree (BRIDGE-MIB, RFC 4188), its interfaces their names and speeds
(IF-MIB, RFC 2863), and LLDP its neighbours (LLDP-MIB, IEEE 802.1AB-2005).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from xco.topology.bridge_output import FORWARDING

PORT_STATE: Final = "1.3.6.1.2.1.17.2.15.1.3"
PORT_INTERFACE: Final = "1.3.6.1.2.1.17.1.4.1.2"
NAME: Final = "1.3.6.1.2.1.31.1.1.1.1"
SPEED: Final = "1.3.6.1.2.1.31.1.1.1.15"
OPERATES: Final = "1.3.6.1.2.1.2.2.1.8"
LLDP_HERE: Final = "1.0.8802.1.1.2.1.3.7.1"
LLDP_THERE: Final = "1.0.8802.1.1.2.1.4.1.1"

TABLES: Final = (PORT_STATE, PORT_INTERFACE, NAME, SPEED, OPERATES, LLDP_HERE, LLDP_THERE)
"""Tables read from a switch."""

Walks = Mapping[str, Mapping[str, str]]
"""By table, by index: the value."""

_STATES: Final = {"2": "blocking", "3": "listening", "4": "learning", "5": FORWARDING}
"""dot1dStpPortState; 1 is disabled and 6 broken."""
_DISABLED: Final = "disabled"
_UP: Final = "1"
_INTERFACE_NAME: Final = "5"
"""Of LldpPortIdSubtype."""
_ID_KIND_HERE, _ID_HERE, _DESCRIPTION_HERE = "2", "3", "4"
_ID_KIND_THERE, _ID_THERE, _DESCRIPTION_THERE, _SYSTEM_THERE = "6", "7", "8", "9"


def parse_walk(text: str, table: str) -> dict[str, str]:
    """Return by index the output of ``snmpbulkwalk -Oneq`` for a table; "" if empty."""
    start = f".{table}."
    pairs = (line.partition(" ") for line in text.splitlines() if line.startswith(start))
    return {place.removeprefix(start): value.strip().strip('"') for place, _, value in pairs}


def port_states(walks: Walks) -> dict[str, str]:
    """Return by name the state of each port of the bridge, in the words of Linux.

    Where no spanning tree protocol runs, each port that operates forwards.
    """
    names, operates, tree = walks[NAME], walks[OPERATES], walks[PORT_STATE]
    states = {}
    for port, interface in walks[PORT_INTERFACE].items():
        is_up = operates.get(interface) == _UP
        told = _STATES.get(tree[port], _DISABLED) if port in tree else FORWARDING
        if interface in names:
            states[names[interface]] = told if is_up else _DISABLED
    return states


def port_speeds(walks: Walks) -> dict[str, int]:
    """Return by name the speed in bits/s of each port that knows it."""
    names = walks[NAME]
    return {
        names[interface]: int(mbps) * 10**6
        for interface, mbps in walks[SPEED].items()
        if interface in names and mbps.isdecimal() and int(mbps) > 0
    }


def neighbours(walks: Walks) -> dict[str, tuple[str, str]]:
    """Return by port the system and the port at its other end.

    A neighbour that does not give its name is omitted; a port with several neighbours has none.
    """
    here = _local_ports(walks)
    heard: dict[str, list[tuple[str, str]]] = {}
    for column, index, system in _cells(walks[LLDP_THERE]):
        port = here.get(index.split(".")[1] if "." in index else "")
        if column == _SYSTEM_THERE and system and port is not None:
            heard.setdefault(port, []).append((system, _port_there(walks[LLDP_THERE], index)))
    return {port: systems[0] for port, systems in heard.items() if len(systems) == 1}


def _local_ports(walks: Walks) -> dict[str, str]:
    """Return the names of LLDP's ports: their numbers may differ from those of the interfaces."""
    known = frozenset(walks[NAME].values())
    ports = {}
    for column, number, name in _cells(walks[LLDP_HERE]):
        is_name = walks[LLDP_HERE].get(f"{_ID_KIND_HERE}.{number}") == _INTERFACE_NAME
        if name in known and (column == _DESCRIPTION_HERE or (column == _ID_HERE and is_name)):
            ports[number] = name
    for number, name in walks[NAME].items():
        if f"{_ID_HERE}.{number}" in walks[LLDP_HERE]:
            ports.setdefault(number, name)
    return ports


def _port_there(table: Mapping[str, str], index: str) -> str:
    """Return the neighbour's port by its interface name, or else by its description."""
    if table.get(f"{_ID_KIND_THERE}.{index}") == _INTERFACE_NAME:
        return table.get(f"{_ID_THERE}.{index}", "")
    return table.get(f"{_DESCRIPTION_THERE}.{index}", "")


def _cells(table: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield column, index and value of each cell."""
    for place, value in table.items():
        column, _, index = place.partition(".")
        yield column, index, value
