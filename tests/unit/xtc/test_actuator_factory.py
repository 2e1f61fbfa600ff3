"""A specification opens the actuator it names, or says why not."""

import platform
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from common.units import CapFraction
from xtc.actuator.cgroup import CgroupActuator
from xtc.actuator.factory import open_actuator, probe_deadline, release
from xtc.errors import Gone, Permanent, Unsupported
from xtc.spec import (
    CgroupOriginal,
    CgroupSpec,
    DeadlineOriginal,
    DeadlineSpec,
    Original,
    SimulatedOriginal,
    SimulatedSpec,
)


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


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The paths that names of containers stand for now."""
    known: dict[str, str] = {}

    class Names:
        def resolve(self, spec: CgroupSpec | DeadlineSpec) -> CgroupSpec | DeadlineSpec:
            name = spec.path if isinstance(spec, CgroupSpec) else spec.netns
            if name not in known:
                raise Gone(name, "no container of this name runs")
            field = "path" if isinstance(spec, CgroupSpec) else "netns"
            return replace(spec, **{field: known[name]})

    monkeypatch.setattr("xtc.actuator.factory.finder", Names())
    return known


def make_group(path: Path, quota: str = "max 100000") -> Path:
    path.mkdir()
    (path / "cpu.max").write_text(f"{quota}\n")
    (path / "cpu.stat").write_text("usage_usec 0\n")
    return path


GOLD = CgroupSpec("container:gold")


def test_a_container_that_was_renamed_is_released(
    tmp_path: Path, containers: dict[str, str]
) -> None:
    one = make_group(tmp_path / "one")
    containers[GOLD.path] = str(one)
    original = open_actuator(GOLD).capture()
    open_actuator(GOLD, original).apply(CapFraction(0.1))
    del containers[GOLD.path]
    release(GOLD, original)
    assert (one / "cpu.max").read_text().startswith("max ")


def test_a_container_that_took_a_name_is_left_alone(
    tmp_path: Path, containers: dict[str, str]
) -> None:
    one, two = make_group(tmp_path / "one"), make_group(tmp_path / "two", "7000 50000")
    containers[GOLD.path] = str(one)
    original = open_actuator(GOLD).capture()
    containers[GOLD.path] = str(two)
    release(GOLD, original)
    assert (two / "cpu.max").read_text() == "7000 50000\n"


def test_a_group_that_was_made_again_does_not_get_the_original_of_the_old_one(
    tmp_path: Path, containers: dict[str, str]
) -> None:
    one = make_group(tmp_path / "one")
    containers[GOLD.path] = str(one)
    original = open_actuator(GOLD).capture()
    one.rename(tmp_path / "old")  # keeps its inode, so that the next one's is another
    make_group(one, "7000 50000")
    with pytest.raises(Gone, match="another control group"):
        open_actuator(GOLD, original)
    release(GOLD, original)
    assert (one / "cpu.max").read_text() == "7000 50000\n"


def test_an_original_of_an_older_xtc_is_put_back_by_the_name(
    tmp_path: Path, containers: dict[str, str]
) -> None:
    one = make_group(tmp_path / "one", "7000 50000")
    containers[GOLD.path] = str(one)
    older = msgspec.json.decode(
        b'{"kind":"cgroup","quota_us":null,"period_us":100000}', type=Original
    )
    release(GOLD, older)
    assert (one / "cpu.max").read_text().startswith("max ")
