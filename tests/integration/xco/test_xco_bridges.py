"""Real Linux bridges in namespaces, in a ring with the spanning tree protocol on, read live."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bridge_ring import Ring, inside, settled

from xco.errors import TopologyError, TreeError
from xco.topology.discovery import discover, read_switch
from xco.topology.file import BridgeSource
from xco.topology.graph import Paths

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]

RING = Ring("xcot")


@pytest.fixture(scope="module")
def network() -> Iterator[None]:
    with RING.built():
        yield


@pytest.fixture
def file(network: None, tmp_path: Path) -> Path:
    del network
    path = tmp_path / "network.toml"
    path.write_text(written("1Gbps"))
    return path


def written(capacity: str) -> str:
    tables = [f'[switch.{name}]\nbridge = "br0"\nnetns = "{name}"' for name in RING.switches]
    tables += [f"[host.{name}]" for name in RING.hosts]
    ends = [(*pair, "next", "back") for pair in RING.between]
    ends += [("xcot-h1", "xcot-s1", "eth0", "edge"), ("xcot-h3", "xcot-s3", "eth0", "edge")]
    tables += [
        f'[[link]]\nbetween = ["{a}", "{b}"]\ncapacity = "{capacity}"\nports = ["{x}", "{y}"]'
        for a, b, x, y in ends
    ]
    return "\n".join(tables)


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
