"""Finding the cpu controller in either version of control groups, and the groups of a lab."""

from pathlib import Path

from lab.system import cgroups

VERSION_1 = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
"""


def version_2(mount: Path, controllers: str) -> str:
    (mount / "cgroup.controllers").write_text(controllers)
    return f"cgroup2 {mount} cgroup2 rw,nosuid 0 0\n"


def test_version_1_is_found_by_its_option() -> None:
    assert str(cgroups.cpu_root(VERSION_1)) == "/sys/fs/cgroup/cpu,cpuacct"


def test_version_2_is_found_when_it_has_the_controller(tmp_path: Path) -> None:
    assert cgroups.cpu_root(version_2(tmp_path, "cpuset cpu io\n")) == tmp_path


def test_version_2_without_the_controller_is_none(tmp_path: Path) -> None:
    assert cgroups.cpu_root(version_2(tmp_path, "cpuset io\n")) is None


def test_version_1_wins_on_a_host_that_has_both(tmp_path: Path) -> None:
    both = version_2(tmp_path, "memory\n") + VERSION_1
    assert str(cgroups.cpu_root(both)) == "/sys/fs/cgroup/cpu,cpuacct"


def test_no_controller_at_all_is_none() -> None:
    assert cgroups.cpu_root("proc /proc proc rw 0 0\n") is None


def test_version_2_hands_the_controller_down(tmp_path: Path) -> None:
    for group in (tmp_path, tmp_path / "lab"):
        group.mkdir(exist_ok=True)
        (group / "cgroup.subtree_control").write_text("")
    made = cgroups.create(tmp_path, "lab", "vr1")
    assert made == tmp_path / "lab" / "vr1"
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert (tmp_path / "lab" / "cgroup.subtree_control").read_text() == "+cpu"


def test_groups_of_a_lab_come_deepest_first(tmp_path: Path) -> None:
    for name in ("vr1", "vr2"):
        cgroups.create(tmp_path, "lab", name)
    cgroups.create(tmp_path, "labs", "vr3")
    found = [str(group.relative_to(tmp_path)) for group in cgroups.groups(tmp_path, "lab")]
    assert sorted(found[:2]) == ["lab/vr1", "lab/vr2"]
    assert found[2:] == ["lab"]
    assert cgroups.groups(tmp_path, "none") == []
