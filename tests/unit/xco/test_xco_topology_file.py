"""The topology's file: what it may say, and that each mistake is named with its key and fix."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.errors import ConfigError, TopologyError
from xco.topology.file import BridgeSource, SnmpSource, load_file, load_topology, parse_topology
from xco.topology.graph import Host, Link

GOOD = """
[switch.tor1]
[switch.tor2]

[host.h1]
addresses = ["10.0.0.1", "10.0.0.11"]
[host.h2]
addresses = ["10.0.0.2"]

[[link]]
between = ["h1", "tor1"]
capacity = "1Gbps"

[[link]]
between = ["h2", "tor2"]
capacity = "1Gbps"

[[link]]
between = ["tor1", "tor2"]
capacity = "10Gbps"
buffer = "32KB"
ports = ["swp49", "swp50"]
"""
SPARE = """
[[link]]
between = ["tor1", "tor2"]
capacity = "1Gbps"
"""


def test_a_file_is_read_in_its_order() -> None:
    topology = parse_topology(GOOD)
    assert topology.hosts[0] == Host("h1", ("10.0.0.1", "10.0.0.11"))
    assert topology.links[2] == Link("tor1", "tor2", 10**10, 32_000, ("swp49", "swp50"))
    assert topology.tree is None
    assert topology.host_of("10.0.0.2") == 1


def test_a_link_that_blocks_is_out_of_the_tree_and_the_rest_within() -> None:
    assert parse_topology(GOOD + SPARE + "tree = false").tree == frozenset({0, 1, 2})
    every = parse_topology(GOOD + "tree = true")
    assert every.tree == frozenset({0, 1, 2})
    assert every.digest() == parse_topology(GOOD).digest()


@pytest.mark.parametrize(
    ("text", "key", "fix"),
    [
        (GOOD.replace("capacity", "capcity", 1), "link[0].capcity", "did you mean capacity?"),
        (GOOD.replace("addresses", "adresses", 1), "host.h1.adresses", "did you mean addresses?"),
        (GOOD.replace("[switch.tor1]", "[swich.tor1]"), "swich", "did you mean switch?"),
        (
            GOOD.replace("[switch.tor1]", "[switch.tor1]\ncolour = 1"),
            "switch.tor1.colour",
            "remove",
        ),
        (GOOD.replace('capacity = "1Gbps"', "", 1), "link[0].capacity", 'such as "10Gbps"'),
        (GOOD.replace('between = ["h1", "tor1"]', ""), "link[0].between", "two names"),
        (GOOD.replace('"1Gbps"', "1000", 1), "link[0].capacity", 'such as "10Gbps"'),
        (GOOD.replace("1Gbps", "fast", 1), "link[0].capacity", "the link is h1 - tor1"),
        (GOOD.replace("1Gbps", "0Gbps", 1), "link[0].capacity", "the link is h1 - tor1"),
        (GOOD.replace("1Gbps", "-1Gbps", 1), "link[0].capacity", "the link is h1 - tor1"),
        (GOOD.replace("32KB", "32Kb"), "link[2].buffer", 'such as "32KB"'),
        (GOOD.replace('["h1", "tor1"]', '["h1"]'), "link[0].between", "two names"),
        (GOOD.replace('"swp49"', '"two words"'), "link[2].ports[0]", "two names of interfaces"),
        (GOOD.replace('["10.0.0.2"]', '"10.0.0.2"'), "host.h2.addresses", "a list of addresses"),
        (GOOD.replace('["10.0.0.2"]', "[1]"), "host.h2.addresses[0]", "a list of addresses"),
        (GOOD + 'tree = "no"', "link[2].tree", "true or false"),
        (GOOD + SPARE, "link[3]", "set tree = false on the links that block"),
        (GOOD + SPARE + "tree = true", "link[3].tree", "on the one that blocks"),
        (GOOD + "tree = false", "switch.tor2", "set tree = true"),
        (
            "switch = 1\n" + GOOD.replace("[switch.tor1]\n[switch.tor2]", ""),
            "switch",
            "[switch.NAME]",
        ),
        ("[link]\n[host.h1]", "link", "[[link]]"),
        ('[host]\nh1 = "10.0.0.1"', "host.h1", ""),
        ("[switch.tor1]\nnetns = 's1'\nssh = 's1'\nbridge = 'br0'", "switch.tor1", "leave out"),
        ("[switch.tor1]\nbridge = 'br0'\nsnmp = 's1'", "switch.tor1", "leave out"),
        ("[switch.tor1]\nsnmp = '-Dall'", "switch.tor1.snmp", "its SNMP agent"),
        ("[switch.tor1]\nnetns = 's1'", "switch.tor1.bridge", "the name of its bridge"),
        ("[switch.tor1]\nbridge = 'br0'\nssh = '-oProxyCommand=x'", "switch.tor1.ssh", "reached"),
        ("[switch.tor1]\nbridge = 'br0\\n'".replace("'", '"'), "switch.tor1.bridge", "bridge"),
        ("", "host", "[host.NAME]"),
    ],
)
def test_a_mistake_is_named_by_file_and_key_with_its_fix(text: str, key: str, fix: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse_topology(text, "network.toml")
    assert caught.value.file == "network.toml"
    assert caught.value.key == key
    assert fix in caught.value.fix
    assert str(caught.value).startswith(f"network.toml: {key}: ")
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"[switch", "not TOML"),
        (b"\xff", "not UTF-8"),
        (b"a = " + b"[" * 4000, "nest more than 16 deep"),
        (b"# " + b"x" * 5000, "longer than 4096"),
        (b"#" * 4000 + b"\n" + (b"#" * 4000 + b"\n") * 17_000, "larger than 64 MiB"),
    ],
)
def test_what_is_no_text_of_a_topology_is_refused(tmp_path: Path, raw: bytes, problem: str) -> None:
    path = tmp_path / "network.toml"
    path.write_bytes(raw)
    with pytest.raises(TopologyError, match=problem):
        load_topology(path)


@given(st.data())
def test_whatever_is_written_is_a_topology_or_an_error(data: st.DataObject) -> None:
    """Cut a piece out of a right file, or put another one's in its place."""
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(GOOD))] * 2)))
    piece = data.draw(st.one_of(st.text(max_size=6), st.sampled_from(["{}", "[]", "1", "true"])))
    with suppress(TopologyError):
        topology = parse_topology(GOOD[:start] + piece + GOOD[end:])
        path = topology.spanning.path(0, len(topology.hosts) - 1)
        assert bool(path) == (len(topology.hosts) > 1)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"nowhere\.toml: No such file"):
        load_topology(tmp_path / "nowhere.toml")


def test_loops_may_stay_open_where_switches_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    read = '[switch.tor1]\nbridge = "br0"\nnetns = "one"'
    path.write_text((GOOD + SPARE).replace("[switch.tor1]", read))
    assert load_file(path).sources == (BridgeSource("tor1", "br0", "one"),)
    with pytest.raises(TopologyError, match="closes a loop"):
        load_topology(path)
    path.write_text(GOOD + SPARE)
    with pytest.raises(TopologyError, match="closes a loop"):
        load_file(path)


def test_a_managed_switch_has_an_agent_and_ports_with_long_names(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(
        '[switch.tor1]\nsnmp = "tor1.example.net"\n[host.h1]\n[[link]]\nbetween = ["h1", "tor1"]\n'
        'capacity = "1Gbps"\nports = ["", "GigabitEthernet1/0/24"]\n'
    )
    loaded = load_file(path)
    assert loaded.sources == (SnmpSource("tor1", "tor1.example.net"),)
    assert loaded.topology.links[0].ports == ("", "GigabitEthernet1/0/24")
