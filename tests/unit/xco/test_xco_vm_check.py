"""What checks say of listed VMs: how they are treated, and what is hardly meant."""

from pathlib import Path

import pytest
from test_xco_cli import Shell

from xco.coordinator import gate, vm_check
from xco.coordinator import shell as coordinator
from xco.coordinator.config import CoordinatorConfig, load_config
from xco.errors import ConfigError

TOPOLOGY = """
[switch.s]
[host.a]
[host.b]
[[link]]
between = ["a", "s"]
capacity = "1Gbps"
[[link]]
between = ["b", "s"]
capacity = "500Mbps"
"""
GOLD = """
[vm.gold]
interface = "gold0"
guarantee = "400Mbps"
"""
TIN = """
[vm.tin]
interface = "tin0"
guarantee = "200Mbps"
"""


def configured(folder: Path, tables: str) -> CoordinatorConfig:
    (folder / "topology.toml").write_text(TOPOLOGY + tables)
    (folder / "xco.toml").write_text(
        f'[coordinator]\nhost = "a"\ninterface = "e0"\ntopology = "{folder}/topology.toml"\n'
        'key_file = "key"\ncontrollers = ["10.0.0.9:7400"]\n'
    )
    return load_config(folder / "xco.toml")


def warned(folder: Path, tables: str) -> list[str]:
    return list(vm_check.warnings(configured(folder, tables)))


@pytest.mark.parametrize(
    ("classifier", "gates", "said"),
    [
        ("bpf", "tbf", "share each gate"),
        ("u32", "tbf", "have no effect, since u32"),
        ("bpf", "edt", "between hosts only"),
    ],
)
def test_it_is_said_how_vms_are_treated(
    tmp_path: Path, classifier: str, gates: str, said: str
) -> None:
    assert said in vm_check.treatment(configured(tmp_path, GOLD), classifier, gates)
    assert vm_check.treatment(configured(tmp_path, ""), classifier, gates) == ""


def test_guarantees_that_fit_are_not_warned_of(tmp_path: Path) -> None:
    assert warned(tmp_path, GOLD) == warned(tmp_path, "") == []


def test_a_guarantee_beyond_this_hosts_link_is_warned_of(tmp_path: Path) -> None:
    first, second = warned(tmp_path, GOLD.replace("400Mbps", "2Gbps"))
    assert first == "vm.gold: its guarantee of 2Gbps exceeds this host's 1Gbps"
    assert "others may get 8 kbit/s" in second


def test_guarantees_beyond_the_smallest_link_of_a_host_are_warned_of(tmp_path: Path) -> None:
    assert warned(tmp_path, GOLD + TIN) == [
        (
            "guarantees are 600Mbps together, and the smallest host link has 500Mbps: where they "
            "meet in a gate, others may get 8 kbit/s of it"
        )
    ]


def test_the_interface_of_the_host_is_no_vms(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"coordinator.interface: 'e0' is the interface of vm.gold"
    ):
        configured(tmp_path, GOLD.replace("gold0", "e0"))


def test_the_bridge_of_that_interface_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gold0").mkdir()
    (tmp_path / "e0").mkdir()
    (tmp_path / "e0" / "master").symlink_to("../gold0")
    monkeypatch.setattr(vm_check, "NET", tmp_path)
    (said,) = warned(tmp_path, GOLD)
    assert said.startswith("vm.gold: gold0 is the bridge of e0: ")


def test_checks_count_vms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XCO_CONFIG", str(tmp_path / "xco.toml"))
    host = Shell(tmp_path, monkeypatch, capsys)
    topology = load_config(tmp_path / "xco.toml").table.topology
    with Path(topology).open("a") as file:
        file.write(GOLD.replace("400Mbps", "65Gbps"))
    assert ", 1 VM\n" in host("topology", "check", topology)
    for part, found in (("classifier", ("u32", "")), ("gates", ("tbf", ""))):
        monkeypatch.setattr(coordinator, part, lambda _config, found=found: found)
    monkeypatch.setattr(gate, "check", lambda *_: None)
    said = host("coordinator", "check")
    assert "1 VM listed: weights and guarantees have no effect" in said
