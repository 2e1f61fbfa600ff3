"""VMs with shares: what the loop gets of them, and what status and metrics show."""

import struct
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from test_xco_cli import Shell
from xco_statistics_rig import CORE, coordinator_names, write_statistics
from xco_vms_rig import NETWORK

from xco.cli.report import print_machine
from xco.cli.status import StatusReader
from xco.coordinator import vm_status
from xco.coordinator.config import CoordinatorConfig, checked, plain
from xco.coordinator.status import Metrics, VmStatus, status

VMS = """
[vm.gold]
interface = "gold0"
weight = 3
guarantee = "50Mbps"
[vm.longest]
interface = "fifteen-letters"
"""
COLUMNS = ["name_high", "name_low", "weight", "guarantee_mbps", "sent_bytes", "destinations"]


def configured(folder: Path, tables: str) -> CoordinatorConfig:
    (folder / "topology.toml").write_text(tables)
    settings = {
        "host": "a",
        "interface": "eth0",
        "topology": str(folder / "topology.toml"),
        "key_file": str(folder / "key"),
        "controllers": ["10.0.0.7:7400"],
        "runtime_dir": str(folder),
    }
    text = "\n".join(f"{key} = {value!r}" for key, value in settings.items())
    (folder / "xco.toml").write_text(f"[coordinator]\n{text}\n")
    return checked(settings)


@pytest.fixture
def config(tmp_path: Path) -> CoordinatorConfig:
    return configured(tmp_path, NETWORK + VMS)


@pytest.fixture
def host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Runs xco, which prints wide tables."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XCO_CONFIG", str(tmp_path / "xco.toml"))
    return Shell(tmp_path, monkeypatch, capsys)


def row(name: str, *numbers: int) -> dict[str, int]:
    high, low = struct.unpack("=QQ", name.encode().ljust(16, b"\0"))
    return dict(zip(COLUMNS, (high, low, *numbers), strict=True))


def publish(config: CoordinatorConfig) -> None:
    """Write what a loop with both VMs does."""
    rows = [row("gold0", 3, 50, 9000, 2), row("fifteen-letters", 1, 0, 0, 0)]
    write_statistics(config.statistics, coordinator_names(), {"vms": 2})
    write_statistics(config.vms_file, ([], COLUMNS), {}, rows)


def test_the_columns_are_those_of_the_loop() -> None:
    text = (CORE / "coordinator" / "vms.c").read_text()
    listed = text.split("COLUMNS[] = {", 1)[1].split("}", 1)[0]
    assert [word.strip().strip('"') for word in listed.split(",")] == COLUMNS


def test_the_loop_is_told_of_each_vm(config: CoordinatorConfig) -> None:
    lines = plain(config).splitlines()
    assert lines[-3:] == [
        f"vms_file {config.vms_file}",
        "vm gold0 3 50",
        "vm fifteen-letters 1 0",
    ]


def test_without_vms_the_loop_is_told_nothing(tmp_path: Path) -> None:
    assert "\nvm" not in plain(configured(tmp_path, NETWORK))


def test_vms_that_are_here_are_shown(
    config: CoordinatorConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(config)
    assert status(config).vms == (
        VmStatus("gold0", 3, 50, 9000, 2),
        VmStatus("fifteen-letters", 1, 0, 0, 0),
    )
    print_machine(StatusReader(tmp_path / "xco.toml", ("coordinator",)).look())
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["VM", "weight", "guarantee", "bytes", "hosts"] in shown
    assert any(line[:4] == ["gold0", "3", "50", "Mb/s"] for line in shown), shown


@pytest.mark.parametrize("now", ["", VMS.replace("weight = 3", "weight = 4")])
def test_tables_that_wait_for_a_restart_are_named(host: Shell, tmp_path: Path, now: str) -> None:
    config = configured(tmp_path, NETWORK + VMS)
    publish(config)
    config.plain_file.write_text(plain(config))
    assert "restart" not in host("coordinator", "status")
    configured(tmp_path, NETWORK + now)
    publish(config)
    said = host("coordinator", "status")
    assert "problem: [vm] tables: restart xco-coordinator to change them\n" in said


def received(folder: Path, interface: str, count: int) -> None:
    """Let the host's end of a VM's link have received so many bytes."""
    where = folder / "net" / interface / "statistics"
    where.mkdir(parents=True, exist_ok=True)
    (where / "rx_bytes").write_text(f"{count}\n")


@pytest.mark.parametrize(("grows", "unseen"), [(200_000, True), (60, False)])
def test_a_vm_that_sends_and_is_not_counted_is_named(
    host: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: int, unseen: bool
) -> None:
    publish(configured(tmp_path, NETWORK + VMS))
    for interface in ("gold0", "fifteen-letters"):
        received(tmp_path, interface, 5000)
    monkeypatch.setattr(vm_status, "NET", tmp_path / "net")
    monkeypatch.setattr(
        vm_status, "sleep", lambda _: received(tmp_path, "fifteen-letters", 5000 + grows)
    )
    said = host("coordinator", "status")
    assert ("not seen at the gates" in said) == unseen
    named = [line for line in said.splitlines() if "not seen" in line]
    assert all(line.startswith("fifteen-letters") for line in named)


def test_vms_are_metrics(config: CoordinatorConfig) -> None:
    publish(config)
    registry = CollectorRegistry()
    registry.register(Metrics(config))
    labels = {"interface": "eth0", "vm": "gold0"}
    names = ("weight", "guarantee_bps", "sent_bytes_total")
    found = [registry.get_sample_value(f"xco_coordinator_vm_{name}", labels) for name in names]
    assert found == [3, 50e6, 9000]
    assert registry.get_sample_value("xco_coordinator_vms", {"interface": "eth0"}) == 2


def test_before_the_loop_publishes_them_there_are_none(config: CoordinatorConfig) -> None:
    write_statistics(config.statistics, coordinator_names(), {})
    assert status(config).vms == ()
