"""What a check tells of floors: the way of each router, groups above it, needs beyond the host."""

from dataclasses import replace
from pathlib import Path

import pytest
from group_rig import make_group
from manager_rig import planned

from common.setpoint import Setpoint, Unit
from models import paper_host
from xtc.config.floor_check import FloorWay, floor_ways, unbacked
from xtc.config.host_facts import HostFacts
from xtc.config.plan import RouterPlan
from xtc.control.floors import AUTO, KEEP
from xtc.kernel.weights import Level, levels, populated, pressure, rivals
from xtc.spec import (
    CGROUP_V1,
    CGROUP_V2,
    ActuatorSpec,
    CgroupSpec,
    DeadlineSpec,
    LibvirtSpec,
    SimulatedSpec,
)

GROUP, ABOVE = "/sys/fs/cgroup/routers.slice/r", "/sys/fs/cgroup/routers.slice"
OWN = Level(GROUP, CGROUP_V2, 100, ("hog",))


def plan(spec: ActuatorSpec, name: str = "r", weight: str | int = AUTO) -> RouterPlan:
    return replace(planned(name, spec), weight=weight)


def ways(*plans: RouterPlan, found: tuple[Level, ...] = ()) -> list[tuple[str, str]]:
    facts = HostFacts(cpus=2, present=None, levels={one.name: found for one in plans})
    planned = {one.name: one for one in plans}
    return [(way.way, way.advice) for way in floor_ways(planned, facts)]


@pytest.mark.parametrize(
    ("spec", "found", "way"),
    [
        (CgroupSpec(GROUP), (OWN,), "cpu.weight"),
        (CgroupSpec(GROUP), (OWN._replace(scale=CGROUP_V1),), "cpu.shares"),
        (CgroupSpec(GROUP), (), "none"),
        (DeadlineSpec("/run/netns/r", ("r0",)), (), "reservation"),
        (LibvirtSpec("r", "xen:///system"), (), "weight"),
        (LibvirtSpec("r", "qemu:///system"), (), "cpu_shares"),
    ],
)
def test_the_way_of_each_kind(spec: ActuatorSpec, found: tuple[Level, ...], way: str) -> None:
    assert ways(plan(spec), found=found) == [(way, "")]


def test_a_weight_that_is_kept_is_no_floor() -> None:
    assert ways(plan(CgroupSpec(GROUP), weight=KEEP), found=(OWN,)) == [("none", "")]


def test_a_slice_that_counts_no_more_than_others_is_told_once() -> None:
    above = Level(ABOVE, CGROUP_V2, 100, ("system.slice", "user.slice"))
    both = [plan(CgroupSpec(GROUP), name) for name in ("a", "b")]
    (first, second) = ways(*both, found=(OWN, above))
    assert first[1] == (
        f"{ABOVE} has cpu.weight 100 against system.slice, user.slice, which can take the CPU of "
        "all routers in it: systemctl set-property routers.slice CPUWeight=1000"
    )
    assert second == ("cpu.weight", "")


@pytest.mark.parametrize(
    "above",
    [Level(ABOVE, CGROUP_V2, 1000, ("system.slice",)), Level(ABOVE, CGROUP_V2, 100, ())],
)
def test_a_slice_that_counts_more_or_is_alone_is_none_to_tell_of(above: Level) -> None:
    assert ways(plan(CgroupSpec(GROUP)), found=(OWN, above)) == [("cpu.weight", "")]


def test_a_group_that_is_no_unit_is_written_by_hand() -> None:
    above = Level("/sys/fs/cgroup/cpu/lab", CGROUP_V1, 1024, ("a", "b", "c", "d"))
    (way,) = ways(plan(CgroupSpec(GROUP)), found=(OWN, above))
    assert "against a, b, c ..." in way[1]
    assert way[1].endswith("echo 10240 > /sys/fs/cgroup/cpu/lab/cpu.shares")


def test_domains_contend_as_one_group_with_the_rest_of_the_host() -> None:
    machines = Level("/sys/fs/cgroup/machine.slice", CGROUP_V2, 100, ("system.slice",))
    (way,) = ways(plan(LibvirtSpec("r", "qemu:///system")), found=(machines,))
    assert "systemctl set-property machine.slice CPUWeight=1000" in way[1]


def test_an_idle_group_is_told() -> None:
    (way,) = ways(plan(CgroupSpec(GROUP)), found=(OWN._replace(weight=0),))
    assert way == ("cpu.weight", f"{GROUP} is idle: write 0 into its cpu.idle")


def test_ways_are_named_by_router_and_a_model_has_none() -> None:
    plans = {"s": plan(SimulatedSpec("s"), "s"), "d": plan(DeadlineSpec("/n", ("r0",)), "d")}
    facts = HostFacts(cpus=2, present=None)
    assert floor_ways(plans, facts) == (FloorWay("d", "reservation"),)


def trained(name: str, rate: float, unit: Unit = Unit.PACKETS) -> RouterPlan:
    held = plan(CgroupSpec(f"/g/{name}"), name)
    return replace(held, model=paper_host(), setpoint=Setpoint(rate, unit))


def test_setpoints_that_models_say_need_more_than_the_host_has_are_told() -> None:
    many = {name: trained(name, 95e3) for name in "abcd"}
    assert list(unbacked(many, 8)) == []
    found = list(unbacked(many, 1))
    assert [error.where for error in found] == [f"router.{name}.setpoint" for name in "abcd"]
    assert "is left of 100%" in found[0].problem


def test_what_no_model_tells_is_not_counted() -> None:
    bits = trained("bits", 1e9, Unit.BITS)
    untrained = replace(trained("r", 95e3), model=None)
    xen = replace(trained("x", 95e3), spec=LibvirtSpec("x", "xen:///system"))
    kept = replace(trained("s", 95e3), spec=SimulatedSpec("s"))
    assert list(unbacked({"b": bits, "r": untrained, "x": xen, "s": kept}, 1)) == []


# What is read.


def test_siblings_with_processes_contend(tmp_path: Path) -> None:
    for name, weight in (("r", 100), ("hog", 300)):
        make_group(tmp_path / name, weight)
    make_group(tmp_path / "empty", populated=False)
    (tmp_path / "file").write_text("")
    assert rivals(tmp_path / "r") == {"hog": 300}
    assert rivals(tmp_path / "r", ("hog",)) == {}
    (tmp_path / "cgroup.procs").write_text("17\n")
    assert rivals(tmp_path / "r") == {"hog": 300, "": 100}


def test_without_events_processes_are_looked_for_below(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "cgroup.procs").write_text("")
    (tmp_path / "a" / "b" / "cgroup.procs").write_text("")
    assert not populated(tmp_path / "a")
    (tmp_path / "a" / "b" / "cgroup.procs").write_text("17\n")
    assert populated(tmp_path / "a")


def test_levels_go_up_to_the_root_of_the_hierarchy(tmp_path: Path) -> None:
    make_group(tmp_path / "routers" / "r", 250)
    for name in ("routers", "system.slice"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "cpu.weight").write_text("100\n")
        (tmp_path / name / "cgroup.events").write_text("populated 1\n")
    found = levels(tmp_path / "routers" / "r")
    assert [(Path(one.path).name, one.weight, one.rivals) for one in found] == [
        ("r", 250, ()),
        ("routers", 100, ("system.slice",)),
    ]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("some avg10=12.50 avg60=1.00 avg300=0.10 total=1\nfull avg10=0.00\n", 0.125),
        ("", None),
        (None, None),
    ],
)
def test_pressure_is_a_share_of_the_last_seconds(
    tmp_path: Path, text: str | None, share: float | None
) -> None:
    if text is not None:
        (tmp_path / "cpu.pressure").write_text(text)
    assert pressure(tmp_path) == share
