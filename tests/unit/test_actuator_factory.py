"""A specification opens the actuator it names, or says why not."""

import platform
from pathlib import Path

import pytest

from xtc.actuator.cgroup import CgroupActuator
from xtc.actuator.factory import open_actuator, probe_deadline, release
from xtc.actuator.spec import (
    CgroupOriginal,
    CgroupSpec,
    DeadlineOriginal,
    DeadlineSpec,
    SimulatedOriginal,
    SimulatedSpec,
)
from xtc.errors import Gone, Permanent, Unsupported
from xtc.units import CapFraction


@pytest.fixture
def group(tmp_path: Path) -> CgroupSpec:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 0\n")
    return CgroupSpec(path=str(tmp_path))


def test_a_cgroup_specification_opens_a_cgroup(group: CgroupSpec) -> None:
    assert isinstance(open_actuator(group), CgroupActuator)


def test_a_simulated_router_is_found_by_the_callers_registry(group: CgroupSpec) -> None:
    plants = {"vr1": open_actuator(group)}
    assert open_actuator(SimulatedSpec(plant="vr1"), simulated=plants.__getitem__) is plants["vr1"]


def test_without_a_registry_nothing_is_simulated() -> None:
    with pytest.raises(Unsupported, match="xtc simulate"):
        open_actuator(SimulatedSpec(plant="vr1"))


def test_a_namespace_that_does_not_exist_is_gone() -> None:
    with pytest.raises(Gone, match="xtcact-nowhere"):
        open_actuator(DeadlineSpec(netns="/run/netns/xtcact-nowhere", interfaces=("eth0",)))


def test_an_original_of_another_kind_is_refused(group: CgroupSpec) -> None:
    with pytest.raises(Permanent, match="DeadlineOriginal"):
        open_actuator(group, DeadlineOriginal(interfaces=()))


def test_release_needs_no_actuator_and_puts_the_quota_back(group: CgroupSpec) -> None:
    original = open_actuator(group).capture()
    open_actuator(group).apply(CapFraction(0.1))
    release(group, original)
    assert open_actuator(group).applied() is None


def test_release_of_a_router_that_is_gone_is_done(tmp_path: Path) -> None:
    spec = CgroupSpec(path=str(tmp_path / "vr1"))
    release(spec, CgroupOriginal(quota_us=None, period_us=100_000))
    with pytest.raises(Permanent):
        release(CgroupSpec(path=str(tmp_path)), SimulatedOriginal(cap=None))


def test_an_old_kernel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: "5.10.0-30-amd64")
    assert probe_deadline() == "Linux 5.10.0-30-amd64 is older than 5.14"
