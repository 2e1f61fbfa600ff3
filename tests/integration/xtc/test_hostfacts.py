"""What is read of real namespaces, veths and control groups."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from xtc.actuator.places import place_of
from xtc.config.discover import look_around
from xtc.config.file import parse_config
from xtc.config.host_check import check_host
from xtc.config.host_facts import HostFacts, Inside, Trouble, look, look_inside
from xtc.config.plan import plans
from xtc.config.schema import DaemonSection
from xtc.kernel.namespaces import in_namespace
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec

pytestmark = pytest.mark.root

NAME = f"xtc-facts-{os.getpid() % 10_000}"
ENDS = f"xf{os.getpid() % 10_000}"
TEXT = f"""
[router.r]
actuator = {{ kind = "deadline", netns = "/run/netns/{NAME}", interfaces = ["r0", "r1"] }}
interfaces = ["{ENDS}-%s"]
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def router() -> Iterator[None]:
    """A namespace with two veths to this one, and one that ends in itself."""
    ip("netns", "add", NAME)
    try:
        for number in "01":
            ip(*f"link add {ENDS}-{number} type veth peer r{number} netns {NAME}".split())
        ip(*f"-n {NAME} link add d0 type veth peer d1".split())
        yield
    finally:
        for number in "01":  # a namespace takes its time to end, and its veths with it
            subprocess.run(["ip", "link", "del", f"{ENDS}-{number}"], check=False)
        ip("netns", "del", NAME)


def facts(spec: ActuatorSpec) -> HostFacts:
    (plan,) = plans(parse_config(TEXT % "*")).values()
    return look(DaemonSection(), [replace(plan, spec=spec)])


@pytest.mark.usefixtures("router")
def test_a_namespace_shows_its_interfaces_and_their_ends_here() -> None:
    spec = DeadlineSpec(f"/run/netns/{NAME}", ("r0",))
    inside = facts(spec).namespaces[spec.netns]
    assert isinstance(inside, Inside)
    assert [inside.ends[name] for name in ("r0", "r1", "d0")] == [f"{ENDS}-0", f"{ENDS}-1", None]


@pytest.mark.usefixtures("router")
def test_a_glob_that_matches_only_the_ingress_is_found() -> None:
    for pattern, problems in (("*", []), ("0", [f"what leaves by {ENDS}-1 is not counted"])):
        found = plans(parse_config(TEXT % pattern))
        doubts = check_host(found, look(DaemonSection(), found.values()))
        assert [doubt.problem for doubt in doubts] == problems


@pytest.mark.usefixtures("router")
def test_a_namespace_is_the_same_place_by_name_and_by_process() -> None:
    by_name = DeadlineSpec(f"/run/netns/{NAME}", ("r0", "r1"))
    by_process = DeadlineSpec("/proc/thread-self/ns/net", ("r1",), 5000)
    place = in_namespace(by_name.netns, lambda: place_of(by_process))
    assert place < place_of(by_name)
    assert not place & place_of(DeadlineSpec(by_name.netns, ("r2",)))


@pytest.mark.usefixtures("router")
def test_a_namespace_that_forwards_is_discovered_with_what_it_needs() -> None:
    ip("netns", "exec", NAME, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    (found,) = (router for router in look_around().routers if router.name == NAME)
    assert (found.actuator, found.ends) == ("deadline", (f"{ENDS}-0", f"{ENDS}-1"))
    proposed = plans(parse_config(found.configuration))
    assert check_host(proposed, look(DaemonSection(), proposed.values())) == ()


def test_what_is_no_namespace_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, words in ((tmp_path / "file", "is no network namespace"), (tmp_path / "no", "exist")):
        trouble = facts(DeadlineSpec(str(path), ("r0",))).namespaces[str(path)]
        assert isinstance(trouble, Trouble)
        assert words in trouble.problem


def test_a_group_is_looked_for_and_at(tmp_path: Path) -> None:
    words = {
        str(tmp_path / "no"): "control group does not exist",
        str(tmp_path): "no CPU controller",
    }
    for path, problem in words.items():
        trouble = facts(CgroupSpec(path)).groups[path]
        assert trouble is not None
        assert problem in trouble.problem


def test_on_v1_the_group_that_was_meant_is_named() -> None:
    cpu = Path("/sys/fs/cgroup/cpu")
    if not (cpu / "cpu.cfs_quota_us").exists():
        pytest.skip("needs cgroup v1")
    group = cpu / NAME
    group.mkdir()
    try:
        trouble = facts(CgroupSpec(f"/sys/fs/cgroup/{NAME}")).groups[f"/sys/fs/cgroup/{NAME}"]
        assert trouble is not None
        assert trouble.fix == f"did you mean {group}?"
        assert facts(CgroupSpec(str(group))).groups[str(group)] is None
    finally:
        group.rmdir()


@pytest.mark.usefixtures("router")
def test_a_name_that_is_no_text_hides_no_other_interface() -> None:
    odd = os.fsdecode(b"d\xff\x1b[2J")
    ip(*f"-n {NAME} link set d1 name".split(), odd)
    inside = look_inside(f"/run/netns/{NAME}")
    assert isinstance(inside, Inside)
    assert sorted(inside.ends) == ["d0", "d\\xff\x1b[2J", "r0", "r1"]
    assert NAME in {router.name for router in look_around().routers}
