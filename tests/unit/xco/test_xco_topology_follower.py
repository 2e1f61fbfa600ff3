"""A topology that changes while the controller runs: said once, whole, and by nobody waited for."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from xco.coordinator.config import CoordinatorConfig, checked, plain
from xco.errors import TopologyError, TreeError
from xco.topology.follower import Follower
from xco.topology.graph import Topology

STAR = """
[switch.s]
[host.a]
addresses = ["10.0.0.1"]
[host.b]
addresses = ["10.0.0.2"]
[host.c]
addresses = ["10.0.0.3"]
[[link]]
between = ["a", "s"]
ports = ["", "p3"]
capacity = "1Gbps"
[[link]]
between = ["b", "s"]
ports = ["", "p4"]
capacity = "1Gbps"
[[link]]
between = ["c", "t"]
capacity = "400Mbps"
[switch.t]
[[link]]
between = ["s", "t"]
ports = ["p1", ""]
capacity = "800Mbps"
"""
LOOP = STAR.replace("[switch.s]", '[switch.s]\nbridge = "br0"') + (
    '[[link]]\nbetween = ["t", "s"]\nports = ["", "p2"]\ncapacity = "600Mbps"\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "topology.toml"
    file.write_text(STAR)
    return file


def changed(file: Path, text: str) -> None:
    """Write another text, with a time of its own."""
    file.write_text(text)
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))


def test_nothing_is_said_while_nothing_changes(file: Path) -> None:
    follower = Follower(file)
    follower.look()
    assert follower.news() is None
    assert len(follower.topology.links) == 4


def test_another_file_is_said_once(file: Path) -> None:
    follower = Follower(file)
    changed(file, STAR.replace("800Mbps", "700Mbps"))
    follower.look()
    follower.look()
    news = follower.news()
    assert isinstance(news, Topology)
    assert news.links[3].capacity_bps == 7 * 10**8
    assert follower.news() is None


def test_what_is_wrong_is_said_once_and_what_is_right_again_too(file: Path) -> None:
    follower = Follower(file)
    before = follower.topology
    changed(file, "a mistake")
    follower.look()
    follower.look()
    assert isinstance(follower.news(), TopologyError)
    assert follower.news() is None
    changed(file, STAR)
    follower.look()
    assert follower.news() == before
    assert follower.news() is None


class Bridge:
    """A switch with two ports to another, of which one blocks."""

    def __init__(self) -> None:
        self.blocks = "p2"
        self.down = ""
        self.broken = False

    def __call__(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        said = ""
        if self.broken:
            raise RuntimeError("nobody expects it")
        if "link" in command:
            states = dict.fromkeys(("p1", "p2", "p3", "p4"), "forwarding")
            states[self.blocks] = "blocking"
            states |= {self.down: "disabled"} if self.down else {}
            ports = [{"ifname": x, "state": y, "master": "br0"} for x, y in states.items()]
            said = json.dumps(ports)
        elif "qdisc" in command:
            said = "[]"
        return subprocess.CompletedProcess(list(command), 0, said, "")


def test_a_tree_that_the_switches_change_is_another_topology(file: Path) -> None:
    file.write_text(LOOP)
    bridge = Bridge()
    follower = Follower(file, run=bridge)
    assert list(follower.topology.active_links) == [0, 1, 2, 3]
    bridge.blocks = "p1"
    follower.look()
    news = follower.news()
    assert isinstance(news, Topology)
    assert list(news.active_links) == [0, 1, 2, 4]
    assert news.hosts_digest() == follower.topology.hosts_digest()  # hosts need not be told


def test_a_cable_that_is_unplugged_is_said_with_its_port(file: Path) -> None:
    file.write_text(LOOP)
    bridge = Bridge()
    follower = Follower(file, run=bridge)
    bridge.down = "p3"
    follower.look()
    news = follower.news()
    assert isinstance(news, TreeError)
    assert "host.a: not connected, as port p3 of switch s is down (plug it in" in str(news)


def test_an_unexpected_error_is_said_once_and_ends_nothing(file: Path) -> None:
    """It ended the thread: the topology was no longer followed, and nothing said so."""
    file.write_text(LOOP)
    bridge = Bridge()
    follower = Follower(file, run=bridge)
    bridge.broken = True
    follower.look()
    follower.look()
    news = follower.news()
    assert isinstance(news, TopologyError)
    assert "unexpected error: RuntimeError('nobody expects it')" in str(news)
    assert follower.news() is None
    bridge.broken = False
    follower.look()
    assert follower.news() == follower.topology


def config(file: Path) -> CoordinatorConfig:
    table = {
        "host": "a",
        "interface": "eth0",
        "topology": str(file),
        "key_file": "key",
        "controllers": ["10.0.0.9:7400"],
    }
    return checked(table)


KNOWN = [
    "over 1 0 1000000000",
    "over 1 3 500000000",
    "over 2 0 1000000000",
    "over 2 6 400000000",
    "over 2 5 200000000",
]
UNKNOWN = [
    "over 1 3 300000000",
    "over 1 1 500000000",
    "over 2 3 300000000",
    "over 2 2 200000000",
]


def shares(file: Path) -> list[str]:
    return [line for line in plain(config(file)).splitlines() if line.startswith("over ")]


def test_a_host_starts_though_only_the_switches_know_the_tree(file: Path) -> None:
    assert shares(file) == KNOWN
    known = config(file)
    file.write_text(LOOP)
    unknown = config(file)
    assert (known.tree_known, unknown.tree_known) == (True, False)
    # whichever link the tree takes: the slowest of them, shared by the two other hosts
    assert shares(file) == UNKNOWN


def test_hosts_join_by_their_numbers_whatever_links_and_addresses(file: Path) -> None:
    def joins_by() -> str:
        (line,) = (line for line in plain(config(file)).splitlines() if line.startswith("digest"))
        return line

    before = joins_by()
    file.write_text(STAR.replace("800Mbps", "700Mbps"))
    assert joins_by() == before
    file.write_text(STAR.replace("10.0.0.3", "10.0.0.4"))
    assert joins_by() == before
    file.write_text(STAR.replace("host.c", "host.d").replace('"c"', '"d"'))
    assert joins_by() != before
