"""What snmpbulkwalk prints, as ports, speeds and neighbours; every way in which agents differ."""

import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.errors import TreeError
from xco.topology.discovery import read_switch
from xco.topology.file import SnmpSource
from xco.topology.snmp_output import (
    LLDP_HERE,
    LLDP_THERE,
    NAME,
    OPERATES,
    PORT_INTERFACE,
    PORT_STATE,
    SPEED,
    TABLES,
    neighbours,
    parse_walk,
    port_speeds,
    port_states,
)

SWITCH = {
    PORT_STATE: {"1": "5", "2": "2", "3": "1", "4": "6", "5": "3", "6": "4"},
    PORT_INTERFACE: {str(port): str(100 + port) for port in range(1, 7)},
    NAME: {str(100 + port): f"Gi1/0/{port}" for port in range(1, 7)} | {"7": "Vlan1"},
    SPEED: {"101": "1000", "102": "0", "103": "10000", "7": "1000"},
    OPERATES: {str(100 + port): "1" for port in range(1, 7)} | {"7": "1"},
    LLDP_HERE: {"2.1": "5", "3.1": "Gi1/0/1", "4.1": "to the core", "3.102": "x", "2.102": "7"},
    LLDP_THERE: {
        "6.0.1.9": "5",
        "7.0.1.9": "xe-0/0/1",
        "8.0.1.9": "rack 4",
        "9.0.1.9": "core",
        "6.120.102.3": "3",
        "7.120.102.3": "02 00 00 00 00 07 ",
        "8.120.102.3": "eno1",
        "9.120.102.3": "h7",
    },
}
"""Of its ports LLDP calls the first by its name, and the second by its interface's number."""


def test_states_are_in_the_words_of_linux() -> None:
    assert port_states(SWITCH) == {
        "Gi1/0/1": "forwarding",
        "Gi1/0/2": "blocking",
        "Gi1/0/3": "disabled",
        "Gi1/0/4": "disabled",
        "Gi1/0/5": "listening",
        "Gi1/0/6": "learning",
    }


def test_a_port_that_does_not_operate_forwards_nothing() -> None:
    down = SWITCH | {OPERATES: SWITCH[OPERATES] | {"101": "2"}}
    assert port_states(down)["Gi1/0/1"] == "disabled"


def test_without_a_spanning_tree_protocol_each_port_that_operates_forwards() -> None:
    states = port_states(SWITCH | {PORT_STATE: {}, OPERATES: {"101": "1"}})
    assert states["Gi1/0/1"] == "forwarding"
    assert {states[port] for port in states if port != "Gi1/0/1"} == {"disabled"}


def test_a_speed_that_the_switch_does_not_know_is_left_out() -> None:
    assert port_speeds(SWITCH) == {"Gi1/0/1": 10**9, "Gi1/0/3": 10**10, "Vlan1": 10**9}


def test_neighbours_are_found_by_name_by_description_and_by_number() -> None:
    assert neighbours(SWITCH) == {"Gi1/0/1": ("core", "xe-0/0/1"), "Gi1/0/2": ("h7", "eno1")}


def test_of_several_neighbours_on_a_port_none_is_taken() -> None:
    more = SWITCH[LLDP_THERE] | {"9.0.1.10": "other"}
    assert neighbours(SWITCH | {LLDP_THERE: more}) == {"Gi1/0/2": ("h7", "eno1")}


@given(st.lists(st.text(), max_size=20))
def test_whatever_an_agent_says_is_read_or_left_out(lines: list[str]) -> None:
    texts = {table: "\n".join(f".{table}.{line}" for line in lines) for table in TABLES}
    walks = {table: parse_walk(text, table) for table, text in texts.items()}
    assert set(port_states(walks).values()) <= {
        "forwarding",
        "blocking",
        "disabled",
        "listening",
        "learning",
    }
    assert all(speed > 0 for speed in port_speeds(walks).values())
    assert set(neighbours(walks)) <= set(walks[NAME].values())


def agent(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Answer as snmpbulkwalk does."""
    table = command[-1]
    rows = "\n".join(f'.{table}.{index} "{value}"' for index, value in SWITCH[table].items())
    none = f".{table} No Such Object available on this agent at this OID"
    return subprocess.CompletedProcess(command, 0, rows or none, "")


def test_a_switch_is_read_with_what_concerns_its_ports() -> None:
    view = read_switch(SnmpSource("tor1", "tor1.example.net"), run=agent)
    assert view.states["Gi1/0/2"] == "blocking"
    assert view.speeds_bps == {"Gi1/0/1": 10**9, "Gi1/0/3": 10**10}
    assert view.neighbours["Gi1/0/1"] == ("core", "xe-0/0/1")


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ((1, "", "Timeout: No Response from tor1"), "Timeout: No Response"),
        ((0, ".1.3.6.1.2.1.17.2.15.1.3 No Such Object", ""), "reports no port of a bridge"),
    ],
)
def test_an_agent_that_tells_nothing_is_named_with_what_to_do(
    done: tuple[int, str, str], said: str
) -> None:
    def silent(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess(command, *done)

    with pytest.raises(TreeError, match=said) as caught:
        read_switch(SnmpSource("tor1", "tor1.example.net"), "network.toml", silent)
    assert caught.value.key == "switch.tor1"
