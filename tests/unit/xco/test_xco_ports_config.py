"""The settings of the port agent: what they say, and how mistakes are reported."""

from pathlib import Path
from typing import Any

import pytest

from xco.errors import ConfigError
from xco.ports.config import AgentConfig, load_agent_config
from xco.ports.factory import sources
from xco.ports.port_tables import GnmiPortTable, LinuxPort, OpenFlowPort

TOPOLOGY = """
[switch.tor]
[switch.spine]
[host.h1]
[host.store]
[[link]]
between = ["h1", "tor"]
capacity = "1Gbps"
[[link]]
between = ["store", "tor"]
capacity = "10Gbps"
ports = ["eth0", "swp2"]
[[link]]
between = ["tor", "spine"]
capacity = "40Gbps"
"""
HEAD = """
[port-agent]
topology = "topology.toml"
controllers = ["10.0.0.7:7400", "[fd00::7]:7400"]
key_file = "agent.key"
"""
LINUX = 'link = ["tor", "store"]\nreader = "linux"\n'
OPENFLOW = 'link = ["tor", "h1"]\nreader = "openflow"\nswitch = "tcp:127.0.0.1:6653"\nnumber = 3\n'
GNMI = 'link = ["spine", "tor"]\nreader = "gnmi"\ntarget = "spine:9339"\ninterface = "Eth1"\n'


def loaded(tmp_path: Path, *ports: str, head: str = HEAD) -> AgentConfig:
    (tmp_path / "topology.toml").write_text(TOPOLOGY)
    file = tmp_path / "xco.toml"
    file.write_text(head + "".join(f"\n[[port-agent.port]]\n{port}" for port in ports))
    return load_agent_config(file)


def test_ports_are_those_of_the_topology(tmp_path: Path) -> None:
    config = loaded(tmp_path, LINUX, OPENFLOW)
    assert [(port.source, port.target) for port in config.ports] == [(2, 1), (2, 0)]
    assert [port.capacity_bps for port in config.ports] == [10**10, 10**9]
    assert str(config.ports[0]) == "tor -> store"
    assert config.controllers == (("10.0.0.7", 7400), ("fd00::7", 7400))
    assert config.interval_ns == 50_000_000
    assert config.key_file == tmp_path / "agent.key"


def test_the_topology_names_the_interface_unless_the_port_does(tmp_path: Path) -> None:
    port = loaded(tmp_path, LINUX).ports[0].table
    assert isinstance(port, LinuxPort)
    assert port.interface == "swp2"
    port = loaded(tmp_path, LINUX + 'interface = "eth7"').ports[0].table
    assert isinstance(port, LinuxPort)
    assert port.interface == "eth7"


def test_ports_of_one_switch_are_read_together(tmp_path: Path) -> None:
    other = OPENFLOW.replace('"h1"', '"spine"').replace("= 3", "= 4")
    found = sources(loaded(tmp_path, OPENFLOW, LINUX, other).ports)
    assert [(one.name, one.ports) for one in found] == [
        ("tcp:127.0.0.1:6653", (0, 2)),
        ("this machine", (1,)),
    ]


def test_ports_with_another_interval_are_another_stream(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pygnmi is not installed")
    first = GNMI + "insecure = true\n"
    back = first.replace('["spine", "tor"]', '["tor", "spine"]')
    (both,) = sources(loaded(tmp_path, first, back).ports)
    assert both.ports == (0, 1)
    fast = back + 'sample_interval = "100ms"'
    assert len(sources(loaded(tmp_path, first, fast).ports)) == 2


def test_a_queue_is_part_of_the_port(tmp_path: Path) -> None:
    table = loaded(tmp_path, OPENFLOW + "queue = 0").ports[0].table
    assert isinstance(table, OpenFlowPort)
    assert (table.number, table.queue) == (3, 0)


def test_gnmi_is_encrypted_and_checked_unless_told_otherwise(tmp_path: Path) -> None:
    table = loaded(tmp_path, GNMI).ports[0].table
    assert isinstance(table, GnmiPortTable)
    assert (table.insecure, table.ca_file) == (False, "")


def test_files_of_gnmi_are_named_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    table = loaded(tmp_path, GNMI + 'ca_file = "ca.pem"').ports[0].table
    assert isinstance(table, GnmiPortTable)
    assert table.ca_file == str(tmp_path / "ca.pem")


PORTS = "port-agent.port[0]"
MISTAKES: dict[str, tuple[Any, str, str]] = {
    "no reader": ('link = ["tor", "store"]', f"{PORTS}.reader", "missing"),
    "another reader": (LINUX.replace("linux", "snmp"), f"{PORTS}.reader", "'snmp' is no reader"),
    "an unknown node": (LINUX.replace("store", "stoer"), f"{PORTS}.link", "no node 'stoer'"),
    "nodes without a link": (
        LINUX.replace('"tor"', '"h1"'),
        f"{PORTS}.link",
        "no link between 'h1' and 'store'",
    ),
    "an unknown key": (LINUX + "number = 3", f"{PORTS}.number", "no such key"),
    "no interface": (LINUX.replace("store", "h1"), f"{PORTS}.interface", "missing"),
    "a long interface": (LINUX + 'interface = "a-name-that-is-long"', f"{PORTS}.interface", ""),
    "no number": (OPENFLOW.replace("number = 3\n", ""), f"{PORTS}.number", "missing"),
    "a number that OpenFlow reserves": (
        OPENFLOW.replace("= 3", "= 4294967294"),
        f"{PORTS}.number",
        "",
    ),
    "a switch without a scheme": (
        OPENFLOW.replace("tcp:", ""),
        f"{PORTS}.switch",
        "'127.0.0.1:6653' is malformed",
    ),
    "a switch with a port too large": (
        OPENFLOW.replace("6653", "66536"),
        f"{PORTS}.switch",
        "is malformed",
    ),
    "gNMI both ways": (
        GNMI + 'insecure = true\nca_file = "ca.pem"',
        f"{PORTS}.ca_file",
        "`insecure`",
    ),
    "a certificate without its key": (
        GNMI + 'ca_file = "ca.pem"\ncert_file = "c.pem"',
        f"{PORTS}.cert_file",
        "cert_key_file",
    ),
    "a certificate in the clear": (
        GNMI + 'insecure = true\ncert_file = "c.pem"\ncert_key_file = "k.pem"',
        f"{PORTS}.cert_file",
        "`insecure`",
    ),
    "samples without a unit": (GNMI + 'sample_interval = "1"', f"{PORTS}.sample_interval", "'1'"),
    "samples too rare": (
        GNMI + 'sample_interval = "2s"',
        f"{PORTS}.sample_interval",
        "out of range",
    ),
    "another mode": (GNMI + 'mode = "on_change"', f"{PORTS}.mode", ""),
    "a password without its user": (
        GNMI + 'password_file = "p"',
        f"{PORTS}.username",
        "missing",
    ),
    "a user that gRPC cannot carry": (
        GNMI + 'username = "jürgen"',
        f"{PORTS}.username",
        "gRPC cannot carry",
    ),
    "a user with a line break": (GNMI + 'username = "x\\ny"', f"{PORTS}.username", "carry"),
    "a password in the settings": (GNMI + 'password = "p"', f"{PORTS}.password", "no such key"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_a_port_names_key_and_fix(tmp_path: Path, name: str) -> None:
    text, key, problem = MISTAKES[name]
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path}/xco.toml: {key}: ")
    assert problem in raised.value.problem
    assert raised.value.fix


HEADS = {
    "no table": ("[controller]\n", "port-agent", "missing"),
    "no ports": (HEAD, "port-agent.port", "missing"),
    "no controller": (HEAD.replace('"10.0.0.7:7400", "[fd00::7]:7400"', ""), "controllers", ""),
    "a name as controller": (HEAD.replace("10.0.0.7", "ctl"), "controllers", "'ctl:7400'"),
    "an interval without a unit": (HEAD + 'interval = "50"', "interval", "'50'"),
    "an interval too short": (HEAD + 'interval = "10us"', "interval", "out of range"),
    "an interval too long": (HEAD + 'interval = "1001ms"', "interval", "out of range"),
    "an unknown key": (HEAD + "intervall = 1", "intervall", "no such key"),
    "metrics without a port": (HEAD + 'metrics = "127.0.0.1"', "metrics", "'127.0.0.1'"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_mistake_of_the_table_names_key_and_fix(tmp_path: Path, name: str) -> None:
    head, key, problem = HEADS[name]
    ports = [] if name in {"no ports", "no table"} else [LINUX]
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, *ports, head=head)
    assert raised.value.key.endswith(key)
    assert problem in raised.value.problem
    assert raised.value.fix


def test_a_port_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"port\[1\]\.link: tor -> store is also .*port\[0\]"):
        loaded(tmp_path, LINUX, LINUX + 'interface = "eth7"')


def test_both_directions_of_a_link_are_two_ports(tmp_path: Path) -> None:
    back = 'link = ["store", "tor"]\nreader = "linux"\n'
    config = loaded(tmp_path, LINUX, back)
    assert [port.link for port in config.ports] == [("tor", "store"), ("store", "tor")]
    assert [getattr(port.table, "interface", "") for port in config.ports] == ["swp2", "eth0"]
