"""Real Linux bridges in namespaces, in a ring with the spanning tree protocol on, read live."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.waiting import eventually

from xco.discovery import discover, read_switch
from xco.errors import TopologyError, TreeError
from xco.topology import Paths, Topology
from xco.topology_file import BridgeSource

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]

SWITCHES = ("xcot-s1", "xcot-s2", "xcot-s3")
RING = (("xcot-s1", "xcot-s2"), ("xcot-s2", "xcot-s3"), ("xcot-s3", "xcot-s1"))
HOSTS = ("xcot-h1", "xcot-h3")
SETTLE_S = 60
"""Twenty times what these bridges take: a forward delay of 2 s, twice."""


def sh(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def inside(name: str, *command: str) -> None:
    sh("ip", "netns", "exec", name, *command)


def cable(a: str, port_a: str, b: str, port_b: str) -> None:
    sh("ip", "link", "add", port_a, "netns", a, "type", "veth", "peer", port_b, "netns", b)
    for name, port in ((a, port_a), (b, port_b)):
        inside(name, "ip", "link", "set", port, "up")
        if name in SWITCHES:
            inside(name, "ip", "link", "set", port, "master", "br0")


@pytest.fixture(scope="module")
def network() -> Iterator[None]:
    """Three bridges in a ring, two hosts; the first bridge is the root of the tree."""
    try:
        for name in (*SWITCHES, *HOSTS):
            sh("ip", "netns", "add", name)
        for rank, name in enumerate(SWITCHES):
            stp = ("stp_state", "1", "forward_delay", "200", "priority", str(4096 * (rank + 1)))
            inside(name, "ip", "link", "add", "br0", "type", "bridge", *stp)
            inside(name, "ip", "link", "set", "br0", "up")
        for a, b in RING:
            cable(a, "next", b, "back")
        cable("xcot-h1", "eth0", "xcot-s1", "edge")
        cable("xcot-h3", "eth0", "xcot-s3", "edge")
        yield
    finally:
        for name in (*SWITCHES, *HOSTS):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.fixture
def file(network: None, tmp_path: Path) -> Path:
    del network
    path = tmp_path / "network.toml"
    path.write_text(written("1Gbps"))
    return path


def written(capacity: str) -> str:
    tables = [f'[switch.{name}]\nbridge = "br0"\nnetns = "{name}"' for name in SWITCHES]
    tables += [f"[host.{name}]" for name in HOSTS]
    ends = [(*pair, "next", "back") for pair in RING]
    ends += [("xcot-h1", "xcot-s1", "eth0", "edge"), ("xcot-h3", "xcot-s3", "eth0", "edge")]
    tables += [
        f'[[link]]\nbetween = ["{a}", "{b}"]\ncapacity = "{capacity}"\nports = ["{x}", "{y}"]'
        for a, b, x, y in ends
    ]
    return "\n".join(tables)


def settled(file: Path) -> Topology:
    """Read the tree until the bridges agree on one."""

    def agreed() -> Topology | None:
        with suppress(TopologyError):
            return discover(file)
        return None

    found = eventually(agreed, SETTLE_S, poll_s=0.2)
    assert found is not None
    return found


def test_the_tree_is_the_one_that_the_bridges_agreed_on(file: Path) -> None:
    """By their priorities the first is the root, and the third blocks towards the second."""
    topology = settled(file)
    assert topology.tree == frozenset({0, 2, 3, 4})
    assert Paths(topology).path(0, 1) == (2 * 3, 2 * 2 + 1, 2 * 4 + 1)


def test_a_cable_that_is_cut_moves_the_tree(file: Path) -> None:
    settled(file)
    inside("xcot-s3", "ip", "link", "set", "next", "down")
    try:
        topology = settled(file)
        assert topology.tree == frozenset({0, 1, 3, 4})
        assert len(Paths(topology).path(0, 1)) == 4
    finally:
        inside("xcot-s3", "ip", "link", "set", "next", "up")


def test_a_host_that_is_cut_off_leaves_no_tree(file: Path) -> None:
    settled(file)
    inside("xcot-h3", "ip", "link", "set", "eth0", "down")
    try:
        with pytest.raises(TreeError) as caught:
            discover(file)
        assert caught.value.key == "host.xcot-h3"
        assert caught.value.problem == "not connected, as port edge of switch xcot-s3 is down"
        assert caught.value.fix == "plug it in, or take xcot-h3 out of the file"
    finally:
        inside("xcot-h3", "ip", "link", "set", "eth0", "up")
        settled(file)


def test_a_link_faster_than_its_interface_or_shaper_is_refused(file: Path) -> None:
    settled(file)
    file.write_text(written("40Gbps"))
    with pytest.raises(TopologyError, match="claims 40Gbps, but next of xcot-s1 carries 10Gbps"):
        discover(file)
    file.write_text(written("1Gbps"))
    tbf = ("root", "tbf", "rate", "500mbit", "limit", "32kb", "burst", "16kb")
    inside("xcot-s3", "tc", "qdisc", "replace", "dev", "edge", *tbf)
    try:
        with pytest.raises(
            TopologyError, match="claims 1Gbps, but edge of xcot-s3 carries 500Mbps"
        ):
            discover(file)
    finally:
        inside("xcot-s3", "tc", "qdisc", "delete", "dev", "edge", "root")


@pytest.mark.usefixtures("network")
def test_a_namespace_or_bridge_that_is_not_there_is_named() -> None:
    with pytest.raises(TopologyError, match=r"switch\.gone: cannot be read: .*xcot-gone"):
        read_switch(BridgeSource("gone", "br0", "xcot-gone"))
    with pytest.raises(TopologyError, match="bridge br7: has no port, or does not exist"):
        read_switch(BridgeSource("s1", "br7", "xcot-s1"))
