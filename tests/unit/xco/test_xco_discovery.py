"""The tree from what bridges, tc, sysfs and lldpctl say; every way in which it does not fit."""

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.errors import ConfigError, TopologyError, TreeError
from xco.topology.bridge_output import parse_lldp, parse_ports, parse_shapers, parse_speeds
from xco.topology.discovery import discover, read_switch
from xco.topology.file import BridgeSource
from xco.topology.graph import Host, Link, Switch, Topology
from xco.topology.switch_state import SwitchView, with_tree
from xco.topology.watch import TopologyWatch, renumbered

BRIDGE = json.dumps(
    [
        {"ifindex": 2, "ifname": "p1", "master": "br0", "state": "forwarding", "priority": 32},
        {"ifindex": 3, "ifname": "p2", "master": "br0", "state": "blocking", "cost": 2},
        {"ifindex": 4, "ifname": "q1", "master": "br1", "state": "forwarding"},
        {"ifindex": 5, "ifname": "vxlan0", "flags": ["UP"]},
    ]
)
LLDP_ONE = """{"lldp": {"interface": {"p1": {"via": "LLDP", "rid": "1", "age": "0 day, 00:00:04",
  "chassis": {"s2": {"id": {"type": "mac", "value": "2e:8a:66:bf:1c:7d"}, "descr": "test",
    "mgmt-ip": "fe80::2c8a:66ff:febf:1c7d", "mgmt-iface": "2",
    "capability": [{"type": "Bridge", "enabled": false}, {"type": "Router", "enabled": false},
      {"type": "Wlan", "enabled": false}, {"type": "Station", "enabled": true}]}},
  "port": {"id": {"type": "ifname", "value": "p7"}, "descr": "p7", "ttl": "4"}}}}}"""
"""What lldpd 1.0.16 says of a veth whose other end is in a second lldpd's namespace."""
LLDP_MANY = """{"lldp": {"interface": [
  {"p1": {"chassis": {"s2": {"id": {"type": "mac", "value": "a"}}},
          "port": {"id": {"type": "mac", "value": "02:00:00:00:00:07"}}}},
  {"p2": {"chassis": {"id": {"type": "mac", "value": "nameless"}}, "port": {}}},
  {"p3": {"chassis": {"s3": {"id": {"type": "mac", "value": "b"}}}}},
  {"p3": {"chassis": {"s4": {"id": {"type": "mac", "value": "c"}}}}}]}}"""


def ring() -> Topology:
    """Three switches in a ring; a host at each end; the ports are named."""
    links = (
        Link("s1", "s2", 10**9, ports=("p1", "p2")),
        Link("s2", "s3", 10**9, ports=("p1", "p2")),
        Link("s3", "s1", 10**9, ports=("p1", "p2")),
        Link("h1", "s1", 10**9, ports=("eth0", "p3")),
        Link("h2", "s2", 10**9, ports=("", "p3")),
    )
    names = ("s1", "s2", "s3")
    return Topology(tuple(map(Switch, names)), (Host("h1"), Host("h2")), links)


def view(switch: str, *blocked: str, state: str = "blocking") -> SwitchView:
    ports = ("p1", "p2", "p3")
    return SwitchView(switch, {p: state if p in blocked else "forwarding" for p in ports})


def test_a_port_that_blocks_takes_its_link_out_of_the_tree() -> None:
    found = with_tree(ring(), [view("s1"), view("s2"), view("s3", "p2")])
    assert found.tree == frozenset({0, 2, 3, 4})


def test_one_end_is_enough_and_what_nobody_read_is_as_before() -> None:
    assert with_tree(ring(), [view("s3", "p2")]).tree == frozenset({0, 2, 3, 4})
    given_before = Topology(ring().switches, ring().hosts, ring().links, frozenset({1, 2, 3, 4}))
    assert with_tree(given_before, [view("s3")]).tree == frozenset({1, 2, 3, 4})


@pytest.mark.parametrize(
    ("views", "key", "problem"),
    [
        ([view("s1"), view("s2"), view("s3")], "link[2].tree", "closes a loop within the tree"),
        ([view("s1"), view("s2", "p1"), view("s3", "p1")], "switch.s3", "not connected"),
        ([view("s1"), view("s2", "p3"), view("s3", "p1")], "host.h2", "not connected"),
        ([view("s1", "p1", state="listening")], "switch.s1", "p1 is listening"),
        ([view("s1", "p1", state="learning")], "switch.s1", "the spanning tree is changing"),
        ([SwitchView("s1", {"p1": "forwarding"})], "link[2].ports[1]", "s1 has no port 'p2'"),
    ],
)
def test_states_that_make_no_tree_are_refused(
    views: list[SwitchView], key: str, problem: str
) -> None:
    with pytest.raises(TreeError) as caught:
        with_tree(ring(), views, "network.toml")
    assert (caught.value.file, caught.value.key) == ("network.toml", key)
    assert problem in caught.value.problem
    assert caught.value.fix


def test_a_port_that_is_down_is_named_and_is_not_the_files_mistake() -> None:
    with pytest.raises(TreeError) as caught:
        with_tree(ring(), [view("s1", "p3", state="disabled"), view("s3", "p2")], "network.toml")
    assert str(caught.value) == (
        "network.toml: host.h1: not connected, as port p3 of switch s1 is down "
        "(plug it in, or take h1 out of the file)"
    )


def test_of_a_part_that_is_cut_off_the_ports_at_its_edge_are_named() -> None:
    views = [view("s1", "p1", "p2", state="disabled"), view("s2"), view("s3")]
    with pytest.raises(TreeError) as caught:
        with_tree(ring(), views)
    assert caught.value.key == "switch.s2"
    assert "port p1 of switch s1 is down, port p2 of switch s1 is down" in caught.value.problem
    assert "plug one of them in, or take s2 out" in caught.value.fix


def test_a_link_that_claims_more_than_its_port_carries_is_refused() -> None:
    slow = SwitchView("s3", view("s3", "p2").states, {"p1": 500_000_000})
    with pytest.raises(TopologyError) as caught:
        with_tree(ring(), [slow], "network.toml")
    assert caught.value.key == "link[2].capacity"
    assert caught.value.problem == "s3 - s1 claims 1Gbps, but p1 of s3 carries 500Mbps"
    assert caught.value.fix == 'write "500Mbps"'


def unnamed() -> Topology:
    links = (Link("h1", "s1", 10**9), Link("s1", "s2", 10**9), Link("s1", "s2", 10**9))
    return Topology((Switch("s1"), Switch("s2")), (Host("h1"),), links)


def test_lldp_finds_the_ports_that_nobody_named() -> None:
    states = {"p1": "forwarding", "p2": "forwarding"}
    heard = {"p1": ("h1", "eth0"), "p2": ("s2", "p9")}
    topology = Topology(unnamed().switches, unnamed().hosts, unnamed().links[:2])
    found = with_tree(topology, [SwitchView("s1", states, neighbours=heard)])
    assert found.tree == frozenset({0, 1})


def test_lldp_tells_parallel_links_apart_by_the_port_at_the_other_end() -> None:
    links = (
        Link("h1", "s1", 10**9),
        Link("s1", "s2", 10**9, ports=("", "p8")),
        Link("s1", "s2", 10**9, ports=("", "p9")),
    )
    states = {"p1": "forwarding", "p2": "forwarding", "p3": "blocking"}
    heard = {"p1": ("h1", "eth0"), "p2": ("s2", "p9"), "p3": ("s2", "p8")}
    topology = Topology(unnamed().switches, unnamed().hosts, links)
    found = with_tree(topology, [SwitchView("s1", states, neighbours=heard)])
    assert found.tree == frozenset({0, 2})


@pytest.mark.parametrize(
    ("heard", "problem"),
    [
        ({"p1": ("h1", "eth0")}, "LLDP hears s2 on no port of s1"),
        ({"p1": ("h1", ""), "p2": ("s2", ""), "p3": ("s2", "")}, "s2 on several ports of s1"),
    ],
)
def test_a_port_that_cannot_be_told_is_to_be_named(
    heard: dict[str, tuple[str, str]], problem: str
) -> None:
    states = dict.fromkeys(("p1", "p2", "p3"), "forwarding")
    with pytest.raises(TopologyError) as caught:
        with_tree(unnamed(), [SwitchView("s1", states, neighbours=heard)])
    assert caught.value.key == "link[1].ports"
    assert problem in caught.value.problem
    assert "ports = [" in caught.value.fix


def test_only_the_ports_of_the_bridge_count() -> None:
    assert parse_ports(BRIDGE, "br0") == {"p1": "forwarding", "p2": "blocking"}
    assert parse_ports("[]", "br0") == {}


def test_speeds_are_read_where_they_are_known() -> None:
    text = "/sys/class/net/p1/speed:1000\n/sys/class/net/p2/speed:-1\n/sys/class/net/p3/speed:0\n"
    assert parse_speeds(text + "grep: nonsense") == {"p1": 10**9}


def test_a_token_bucket_at_a_ports_root_is_its_speed() -> None:
    qdiscs = [
        {"kind": "tbf", "handle": "1:", "dev": "p1", "root": True, "options": {"rate": 62_500_000}},
        {"kind": "tbf", "dev": "p2", "parent": "1:1", "options": {"rate": 1}},
        {"kind": "noqueue", "dev": "p3", "root": True, "options": {}},
    ]
    assert parse_shapers(json.dumps(qdiscs)) == {"p1": 500_000_000}


def test_lldp_neighbours_are_read_alone_and_in_a_list() -> None:
    assert parse_lldp(LLDP_ONE) == {"p1": ("s2", "p7")}
    assert parse_lldp(LLDP_MANY) == {"p1": ("s2", "")}
    assert parse_lldp('{"lldp": {}}') == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["lldp", "interface", "chassis", "port", "id", "p1", "s2"]), inner
            )
        ),
        max_leaves=30,
    )
)
def test_whatever_is_said_is_understood_or_refused(said: object) -> None:
    for parse in (parse_lldp, parse_shapers, lambda text: parse_ports(text, "br0")):
        for text in (json.dumps(said), json.dumps({"lldp": said}), str(said)):
            with suppress(ConfigError):
                assert isinstance(parse(text), dict)


class Machine:
    """Answers commands as a switch does."""

    def __init__(self, **answers: str) -> None:
        self.asked: list[list[str]] = []
        self.answers = answers

    def __call__(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        self.asked.append(list(command))
        program = next(word for word in command if word in {"bridge", "grep", "tc", "lldpctl"})
        if program == "lldpctl" and program not in self.answers:
            raise FileNotFoundError(program)
        answer = self.answers.get(program)
        code, text = (1, "") if answer is None else (0, answer)
        return subprocess.CompletedProcess(list(command), code, text, "it failed" if code else "")


def test_a_switch_is_read_with_the_least_of_its_limits() -> None:
    speeds = "/sys/class/net/p1/speed:10000\n/sys/class/net/p2/speed:1000"
    shaped = '[{"kind":"tbf","dev":"p1","root":true,"options":{"rate":62500000}}]'
    machine = Machine(bridge=BRIDGE, grep=speeds, tc=shaped, lldpctl=LLDP_ONE)
    seen = read_switch(BridgeSource("s1", "br0"), run=machine)
    assert seen == SwitchView(
        "s1",
        {"p1": "forwarding", "p2": "blocking"},
        {"p1": 500_000_000, "p2": 10**9},
        {"p1": ("s2", "p7")},
    )


def test_a_token_bucket_faster_than_its_port_is_no_limit() -> None:
    shaped = '[{"kind":"tbf","dev":"p1","root":true,"options":{"rate":2500000000}}]'
    machine = Machine(bridge=BRIDGE, grep="/sys/class/net/p1/speed:10000", tc=shaped)
    assert read_switch(BridgeSource("s1", "br0"), run=machine).speeds_bps == {"p1": 10**10}


def test_what_lldp_hears_elsewhere_is_of_no_account() -> None:
    machine = Machine(bridge=BRIDGE, tc="[]", lldpctl=LLDP_ONE.replace('"p1"', '"eth0"'))
    assert read_switch(BridgeSource("s1", "br0"), run=machine).neighbours == {}


def test_a_switch_is_read_where_it_is() -> None:
    machine = Machine(bridge=BRIDGE, tc="[]")
    read_switch(BridgeSource("s1", "br0", netns="one"), run=machine)
    assert machine.asked[0] == ["ip", "netns", "exec", "one", "bridge", "-j", "link"]
    assert not any("lldpctl" in command for command in machine.asked), "it hears another namespace"
    read_switch(BridgeSource("s1", "br0", ssh="admin@s1"), run=machine)
    assert ["ssh", "-o", "BatchMode=yes", "--", "admin@s1", "tc", "-j", "qdisc"] in machine.asked


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        (Machine(tc="[]"), "it failed"),
        (Machine(bridge=BRIDGE), "it failed"),
        (Machine(bridge="p1: up", tc="[]"), "cannot be understood"),
        (Machine(bridge="[]", tc="[]"), "has no port, or does not exist"),
    ],
)
def test_a_switch_that_cannot_be_read_is_named(machine: Machine, problem: str) -> None:
    with pytest.raises(TreeError) as caught:
        read_switch(BridgeSource("s1", "br0"), "network.toml", machine)
    assert caught.value.key == "switch.s1"
    assert problem in caught.value.problem
    assert caught.value.fix


def test_a_machine_without_the_programs_is_named() -> None:
    def absent(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        raise FileNotFoundError(2, "No such file or directory", command[0])

    with pytest.raises(TopologyError, match="'bridge'"):
        read_switch(BridgeSource("s1", "br0"), run=absent)


FILE = """
[switch.s1]
bridge = "br0"
[switch.s2]
[host.h1]
[[link]]
between = ["h1", "s2"]
capacity = "1Gbps"
[[link]]
between = ["s1", "s2"]
capacity = "1Gbps"
ports = ["p1", ""]
[[link]]
between = ["s1", "s2"]
capacity = "1Gbps"
ports = ["p2", ""]
"""


def swapped(text: str) -> str:
    return (
        text.replace("forwarding", "X").replace("blocking", "forwarding").replace("X", "blocking")
    )


def test_a_change_of_the_tree_is_seen_and_an_error_keeps_the_last(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(FILE)
    machine = Machine(bridge=BRIDGE, tc="[]")
    watch = TopologyWatch(path, machine)
    assert watch.topology == discover(path, machine)
    assert watch.topology.tree == frozenset({0, 1})
    assert watch.look() is None
    machine.answers["bridge"] = BRIDGE.replace("blocking", "learning")
    with pytest.raises(TopologyError, match="is changing"):
        watch.look()
    assert watch.topology.tree == frozenset({0, 1})
    machine.answers["bridge"] = swapped(BRIDGE)
    changed = watch.look()
    assert changed is watch.topology
    assert changed.tree == frozenset({0, 2})


def test_a_change_of_the_file_is_seen_and_an_error_keeps_the_last(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(FILE)
    machine = Machine(bridge=BRIDGE, tc="[]")
    watch = TopologyWatch(path, machine)
    first = watch.topology
    path.write_text(FILE + "nonsense = 1\n")
    for _ in range(2):
        with pytest.raises(TopologyError, match="nonsense"):
            watch.look()
    path.unlink()
    with pytest.raises(TopologyError, match="No such file"):
        watch.look()
    assert watch.topology is first
    more = '[[link]]\nbetween = ["h0", "s2"]\ncapacity = "10Gbps"\n'
    path.write_text(FILE.replace("[host.h1]", "[host.h0]\n[host.h1]") + more)
    assert watch.look() is watch.topology
    assert watch.look() is None
    assert renumbered(first, watch.topology) == (1,)
    assert renumbered(watch.topology, first) == (None, 0)
