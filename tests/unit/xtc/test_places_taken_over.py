"""An original belongs to its place, however the configuration writes that."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from manager_rig import planned
from simulated_rig import Rig

from common.units import CapFraction
from xtc.actuator.base import Actuator
from xtc.actuator.places import place_of, takes_over
from xtc.errors import Transient
from xtc.spec import (
    ActuatorSpec,
    CgroupOriginal,
    CgroupSpec,
    DeadlineOriginal,
    DeadlineSpec,
    LibvirtOriginal,
    LibvirtSpec,
    Original,
    SimulatedOriginal,
    SimulatedSpec,
)
from xtc.state.journal import Entry, Ledger
from xtc.state.repair import planned as planned_repair
from xtc.state.salvage import Salvaged
from xtc.wire import Deactivate

UUID = "6f2a1c9e-0000-4000-8000-00000000000a"
OTHER = "6f2a1c9e-0000-4000-8000-00000000000b"
GOLD = LibvirtOriginal(UUID, 3, {"vcpu_quota": -1})
NAMESPACE = DeadlineOriginal(())


def domain(name: str, scope: str = "vcpu") -> LibvirtSpec:
    return LibvirtSpec(name, "qemu:///system", "machine" if scope == "machine" else "vcpu")


def netns(*interfaces: str, period_us: int = 1000) -> DeadlineSpec:
    return DeadlineSpec("/proc/self/ns/net", interfaces, period_us)


SAME: list[tuple[ActuatorSpec, ActuatorSpec, Original]] = [
    (CgroupSpec("/proc/"), CgroupSpec("/proc"), CgroupOriginal(None, 100_000)),
    (domain(UUID), domain("gold"), GOLD),
    (domain(UUID.upper()), domain(UUID), GOLD),
    (netns("r0", "r1"), netns("r1", "r0"), NAMESPACE),
    (netns("r0"), netns("r0", period_us=2000), NAMESPACE),
    (SimulatedSpec("a", 9e3), SimulatedSpec("a"), SimulatedOriginal(None)),
]
OTHERS: list[tuple[ActuatorSpec, ActuatorSpec, Original]] = [
    (CgroupSpec("/proc/sys"), CgroupSpec("/proc"), CgroupOriginal(None, 100_000)),
    (domain(OTHER), domain("gold"), GOLD),
    (domain("gold", "machine"), domain("gold"), GOLD),
    (netns("r0"), netns("r0", "r1"), NAMESPACE),
    (netns("r0", "r1"), netns("r0"), NAMESPACE),
    (SimulatedSpec("b"), SimulatedSpec("a"), SimulatedOriginal(None)),
]


@pytest.mark.parametrize(("spec", "left", "original"), SAME)
def test_an_original_is_taken_over(
    spec: ActuatorSpec, left: ActuatorSpec, original: Original
) -> None:
    assert takes_over(spec, left, original)


@pytest.mark.parametrize(("spec", "left", "original"), OTHERS)
def test_an_original_of_more_of_less_or_of_another_place_is_not(
    spec: ActuatorSpec, left: ActuatorSpec, original: Original
) -> None:
    assert not takes_over(spec, left, original)


def test_a_domain_is_known_by_what_its_hypervisor_tells() -> None:
    def place(spec: ActuatorSpec) -> frozenset[tuple[str, ...]]:
        return place_of(spec, uuid_of=lambda _: UUID)

    assert takes_over(domain("gold"), domain(UUID), GOLD, place)
    assert not takes_over(domain("gold"), domain(UUID), GOLD)


# Managers


class GroupsRig(Rig):
    """Routers of the plant whose specifications are paths; the last part names the router."""

    def open(self, spec: ActuatorSpec, _original: Original | None) -> Actuator:
        """Open the actuator of the router that a path leads to."""
        assert isinstance(spec, CgroupSpec)
        return super().open(SimulatedSpec(Path(os.path.realpath(spec.path)).name), None)


@pytest.fixture
def rig(tmp_path: Path) -> GroupsRig:
    group = tmp_path / "groups" / "a"
    group.mkdir(parents=True)
    (tmp_path / "link").symlink_to(group)
    rig = GroupsRig(tmp_path / "state", {"a": planned("a", CgroupSpec(str(group)), 20e3)})
    rig.tick(8)
    return rig


def written_otherwise(rig: GroupsRig, tmp_path: Path) -> None:
    rig.plans["a"] = replace(rig.plans["a"], spec=CgroupSpec(str(tmp_path / "link")))


def test_a_cap_is_adopted_under_another_spelling_of_its_place(
    rig: GroupsRig, tmp_path: Path
) -> None:
    before = rig.cap("a")
    assert before is not None
    written_otherwise(rig, tmp_path)
    rig.restart()
    assert rig.cap("a") == before
    rig.tick(2)
    assert len(rig.journal.ledger.entries) == 1
    rig.ask(Deactivate("a"))
    assert rig.cap("a") is None


def test_a_reload_that_writes_a_place_otherwise_keeps_its_original(
    rig: GroupsRig, tmp_path: Path
) -> None:
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    written_otherwise(rig, tmp_path)
    rig.manager.reconfigure(rig.plans, max_release_share=1.0)
    rig.faults.errors.clear()
    rig.tick(8)
    assert rig.holds("a", 20e3)
    rig.ask(Deactivate("a"))
    rig.tick(8)
    assert rig.cap("a") is None


# Repairs


def test_a_repair_takes_one_place_for_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    old = Entry(CgroupSpec(str(tmp_path / "a")), SimulatedOriginal(None))
    new = Entry(CgroupSpec(str(tmp_path / "link")), SimulatedOriginal(CapFraction(0.2)))
    found = {
        "journal.corrupt-1": Salvaged(Ledger("boot", {"a": old})),
        "journal": Salvaged(Ledger("boot", {"b": new})),
    }
    repair = planned_repair(found, "boot")
    assert repair.ledger.entries == {"a": old}
    assert "another original" in " ".join(repair.notes)
