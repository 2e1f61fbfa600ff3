"""The configuration of the switch: what it means, and the errors for mistakes in it."""

import grp
import os
from pathlib import Path
from typing import Any

import pytest

from common.errors import ConfigError
from zovn.switch.config import checked, interfaces_of, load_config, plain

GROUP = grp.getgrgid(os.getgid()).gr_name
WHOLE = f"""
[switch]
control = "/run/zovn/c"
control_group = "{GROUP}"
stall = "500ms"
ageing = "1min"
addresses = 100
parked = 32
threads = 2
priorities = {{ 5 = 3 }}
dscp = {{ 46 = 5 }}

[switch.classes.3]
limit_bytes = 64000
mark_bytes = 30000
weight = 0

[[switch.port]]
name = "vm1"
group = "{GROUP}"
addresses = ["02:00:00:00:00:01", "52:54:00:ab:CD:ef"]
class = 2
trust = "dscp"

[[switch.port]]
name = "vm2"
socket = "/tmp/vm2"
vlan = 0
tagged = ["10", "20-29"]
offloads = true
rate = "1.5 Gbit/s"

[[switch.port]]
name = "web"
kind = "veth"
interface = "p1"

[xtc]
another = "program's"
"""


def test_a_whole_file_becomes_plain_lines(tmp_path: Path) -> None:
    path = tmp_path / "zovn.toml"
    path.write_text(WHOLE)
    assert plain(load_config(path)).splitlines() == [
        "control /run/zovn/c",
        f"control_group {os.getgid()}",
        "stall_ns 500000000",
        "age_ns 60000000000",
        "addresses 100",
        "parked 32",
        "threads 2",
        "class 3 64000 30000 0",
        "priority 5 3",
        "dscp 46 5",
        (
            "port name=vm1 kind=vhost path=/run/zovn/vm1.sock vlan=1 class=2 trust=dscp offloads=0 "
            f"address=02:00:00:00:00:01 address=52:54:00:ab:CD:ef group={os.getgid()}"
        ),
        (
            "port name=vm2 kind=vhost path=/tmp/vm2 vlan=0 class=0 trust=nothing offloads=1 "
            "rate=1500000000 tagged=10,20-29"
        ),
        "port name=web kind=veth interface=p1 vlan=1 class=0 trust=nothing offloads=0",
    ]


def test_only_veths_have_settings_that_the_switch_restores() -> None:
    tap = {"name": "h", "kind": "tap", "interface": "t0"}
    assert interfaces_of(checked({"port": [PORT, VETH | {"name": "b"}, tap]})) == ["p1"]


def test_an_empty_table_is_a_switch_without_ports() -> None:
    assert plain(checked({})).splitlines() == [
        "control /run/zovn/control.sock",
        "stall_ns 1000000000",
        "age_ns 300000000000",
        "addresses 64",
        "parked 16",
        "threads 1",
    ]


PORT = {"name": "a"}
OWN = {
    "local": "10.0.0.1",
    "vni": 42,
    "locations": "/etc/xtc/zovn.locations",
    "line_rate": "10Gbit/s",
}
WIRE = PORT | {"kind": "wire", "interface": "eth1", "wire": OWN}
VETH = PORT | {"kind": "veth", "interface": "p1"}
STATIC = PORT | {"addresses": ["02:00:00:00:00:0a"]}
OTHER = "02:00:00:00:00:0b"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"stal": "1s"}, "switch.stal: no such key (did you mean stall?)"),
        ({"port": [{"nam": "a"}]}, "switch.port[0].nam: no such key (did you mean name?)"),
        ({"port": [{}]}, "switch.port[0].name: missing (write 1 to 32 letters"),
        ({"port": [{"name": "a b"}]}, "switch.port[0].name: 'a b' is malformed (write 1 to 32"),
        ({"port": [PORT | {"kind": "x"}]}, "switch.port[0].kind: invalid enum value 'x'"),
        (
            {"port": [PORT | {"kind": "veth"}]},
            "switch.port[0].interface: a port of kind veth needs one (write the name of an",
        ),
        (
            {"port": [PORT | {"interface": "p1"}]},
            'port[0].interface: a port of kind vhost has none (remove it, or write kind = "veth")',
        ),
        ({"port": [PORT | {"interface": "eth1", "wire": OWN}]}, 'or write kind = "wire")'),
        (
            {"port": [VETH | {"socket": "/x"}]},
            "switch.port[0].socket: a port of kind veth has none (remove it, or the kind)",
        ),
        ({"port": [VETH | {"offloads": True}]}, "switch.port[0].offloads: a port of kind veth has"),
        ({"port": [VETH | {"group": "root"}]}, "switch.port[0].group: a port of kind veth has"),
        ({"port": [VETH | {"interface": "a/b"}]}, "switch.port[0].interface: 'a/b' is malformed"),
        ({"port": [VETH | {"interface": "."}]}, "switch.port[0].interface: '.' is malformed"),
        (
            {"port": [VETH, VETH | {"name": "b"}]},
            "switch.port[1].interface: 'p1' is that of port 0 (change one)",
        ),
        (
            {"port": [PORT | {"kind": "wire", "interface": "eth1"}]},
            "switch.port[0].wire: a port of kind wire needs one (write a table: [switch",
        ),
        (
            {"port": [VETH | {"wire": OWN}]},
            'switch.port[0].wire: a port of kind veth has none (remove it, or write kind = "wire")',
        ),
        (
            {"port": [PORT | {"wire": OWN}]},
            'port[0].wire: a port of kind vhost has none (remove it, or write kind = "wire")',
        ),
        ({"port": [WIRE | {"wire": {}}]}, "switch.port[0].wire.local: missing (write an IPv4"),
        (
            {"port": [WIRE | {"wire": OWN | {"local": "::1"}}]},
            "switch.port[0].wire.local: '::1' cannot be used (write an IPv4 address",
        ),
        (
            {"port": [WIRE | {"wire": OWN | {"line_rate": "1kb/s"}}]},
            "switch.port[0].wire.line_rate: '1kb/s' cannot be used (write a rate",
        ),
        (
            {"port": [WIRE | {"wire": OWN | {"delay": "2s"}}]},
            "switch.port[0].wire.delay: '2s' cannot be used (write a duration of at most 1s",
        ),
        ({"port": [WIRE | {"wire": OWN | {"pfc": [8]}}]}, "switch.port[0].wire.pfc"),
        ({"port": [WIRE | {"wire": OWN | {"vni": -1}}]}, "switch.port[0].wire.vni: expected"),
        ({"port": [WIRE | {"wire": OWN | {"buffer": 1}}]}, "switch.port[0].wire.buffer: expected"),
        ({"port": [PORT | {"rate": "fast"}]}, "switch.port[0].rate: 'fast' is no such rate (write"),
        ({"port": [PORT | {"rate": "1kb/s"}]}, "switch.port[0].rate: '1kb/s' is no such rate"),
        ({"port": [PORT | {"rate": "2000Gb/s"}]}, "switch.port[0].rate: '2000Gb/s' is no such"),
        ({"port": [PORT | {"socket": "a"}]}, "switch.port[0].socket: 'a' is malformed (write a"),
        ({"port": [PORT | {"vlan": 4095}]}, "switch.port[0].vlan: expected `int` <= 4094"),
        ({"port": [PORT | {"vlan": 0}]}, "a port that is no trunk needs one (write a VLAN"),
        ({"port": [PORT | {"tagged": ["9-3"]}]}, "switch.port[0].tagged: '9-3' are no VLANs"),
        ({"port": [PORT | {"tagged": ["5000"]}]}, "switch.port[0].tagged: '5000' are no VLANs"),
        (
            {"port": [PORT | {"vlan": 0, "tagged": ["9"], "addresses": ["02:00:00:00:00:01"]}]},
            "switch.port[0].addresses: the trunk has no such VLAN",
        ),
        ({"port": [PORT | {"addresses": ["01:00:00:00:00:00"]}]}, "addresses"),
        (
            {"port": [STATIC, STATIC | {"name": "b", "addresses": ["02:00:00:00:00:0A"]}]},
            "switch.port[1].addresses: '02:00:00:00:00:0A' in VLAN 1 is a static address of port 0",
        ),
        (
            {"addresses": 1, "port": [STATIC | {"addresses": [OTHER, "02:00:00:00:00:0a"]}]},
            "for each port (write addresses = 2 or more in [switch], or remove some here)",
        ),
        ({"port": [PORT | {"class": 8}]}, "switch.port[0].class: expected `int` <= 7"),
        ({"port": [PORT, PORT]}, "switch.port[1].name: 'a' is that of port 0 (change one)"),
        (
            {"port": [PORT | {"socket": "/x"}, {"name": "b", "socket": "/x"}]},
            "switch.port[1].socket: '/x' is that of port 0",
        ),
        (
            {"port": [PORT, {"name": "b", "group": "no such"}]},
            "switch.port[1].group: there is no group 'no such' (remove it, or name a group of this",
        ),
        ({"control_group": "no such"}, "switch.control_group: there is no group 'no such' (remove"),
        ({"classes": {"8": {}}}, "switch.classes.8: '8' is malformed (write tables by class"),
        ({"classes": {"1": {"weight": 1001}}}, "switch.classes.1.weight: expected `int` <= 1000"),
        ({"dscp": {"64": 1}}, "switch.dscp.64: '64' is malformed (write classes by DSCP"),
        ({"stall": "soon"}, "switch.stall: 'soon' is no duration (write a duration such as"),
        ({"stall": "0s"}, "switch.stall: must be above 0"),
    ],
)
def test_a_mistake_is_named_with_its_fix(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(table, "zovn.toml")
    assert str(caught.value).startswith("zovn.toml: switch")
    assert said in str(caught.value)


def test_a_static_address_may_be_in_several_vlans_and_twice_in_a_list() -> None:
    twice = STATIC | {"addresses": ["02:00:00:00:00:0a", "02:00:00:00:00:0A"]}
    assert len(checked({"port": [twice, STATIC | {"name": "b", "vlan": 7}]}).table.port) == 2


def test_a_wire_has_words_of_its_own() -> None:
    (line,) = plain(checked({"port": [WIRE]})).splitlines()[6:]
    assert line == (
        "port name=a kind=wire interface=eth1 vlan=1 class=0 trust=nothing offloads=0 "
        "local=10.0.0.1 vni=42 locations=/etc/xtc/zovn.locations line_rate=10000000000 "
        "delay=1000 response=100000 ring=0 buffer=344064 pfc=255"
    )


def test_all_mistakes_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        checked({"stal": 1, "port": [{"nam": 2}]})
    assert len(str(caught.value).splitlines()) == 2


def test_a_file_without_the_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zovn.toml"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"switch: missing \(write a table: \[switch\]\)"):
        load_config(path)
