"""Tables of VMs in a topology's file: what they may say, and that each mistake is named."""

from pathlib import Path

import pytest
from xco_vms_rig import NETWORK

from xco.errors import TopologyError
from xco.topology.file import load_file
from xco.topology.vms import Vm

GOLD = """
[vm.gold]
interface = "gold0"
weight = 3
guarantee = "50Mbps"
"""
PLAIN = """
[vm.plain]
interface = "veth7"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "topology.toml"


def test_weight_and_guarantee_are_read_and_have_defaults(file: Path) -> None:
    file.write_text(NETWORK + GOLD + PLAIN)
    assert load_file(file).vms == (Vm("gold", "gold0", 3, 50), Vm("plain", "veth7"))


def test_the_digests_do_not_depend_on_vms(file: Path) -> None:
    file.write_text(NETWORK)
    before = load_file(file).topology
    file.write_text(NETWORK + GOLD)
    after = load_file(file).topology
    assert before.digest() == after.digest()
    assert before.hosts_digest() == after.hosts_digest()
    assert before.nodes_digest() == after.nodes_digest()


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("weight", "wieght", "vm.gold.wieght", "did you mean weight?"),
        ("[vm.gold]", "[vms.gold]", "vms", "did you mean vm?"),
        ("[vm.gold]", "[vm]", "vm.interface", "a table for each VM: [vm.NAME]"),
        ('interface = "gold0"', "", "vm.gold.interface", 'such as "gold0"'),
        ('"gold0"', '"veth7"', "vm.plain.interface", "also the interface of vm.gold"),
        ('"gold0"', '"sixteen-letters0"', "vm.gold.interface", "1 to 15 bytes"),
        ('"gold0"', '"fünfzehnbytes0ü"', "vm.gold.interface", "has 17 bytes"),
        ('"gold0"', '"two words"', "vm.gold.interface", "1 to 15 bytes"),
        *(
            ('"gold0"', f'"{name}"', "vm.gold.interface", 'such as "gold0"')
            for name in (
                ".",
                "..",
                "all",
                "default",
                "lo",
                "a/b",
                "a:b",
                "\\u0001",
                "a\\u007f",
                "a\\tb",
            )
        ),
        ("weight = 3", "weight = 0", "vm.gold.weight", "from 1 to 100"),
        ("weight = 3", "weight = 101", "vm.gold.weight", "from 1 to 100"),
        ("weight = 3", "weight = 1.5", "vm.gold.weight", "from 1 to 100"),
        ("50Mbps", "fast", "vm.gold.guarantee", "is not a rate"),
        ("50Mbps", "1.5Mbps", "vm.gold.guarantee", "whole Mbit/s"),
        ("50Mbps", "500kbps", "vm.gold.guarantee", "whole Mbit/s"),
        ("50Mbps", "65536Mbps", "vm.gold.guarantee", "whole Mbit/s"),
    ],
)
def test_each_mistake_is_named_with_its_key(
    file: Path, old: str, new: str, key: str, words: str
) -> None:
    file.write_text(NETWORK + (GOLD + PLAIN).replace(old, new, 1))
    with pytest.raises(TopologyError) as caught:
        load_file(file)
    assert caught.value.key == key
    assert words in str(caught.value)
