"""Where a cap goes: the same place however it is written."""

from pathlib import Path

import pytest

from common.errors import ConfigError
from xtc.actuator.places import place_of
from xtc.config.file import parse_config
from xtc.config.plan import plans
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec, LibvirtSpec, SimulatedSpec


def meet(one: ActuatorSpec, other: ActuatorSpec) -> bool:
    return bool(place_of(one) & place_of(other))


@pytest.fixture
def group(tmp_path: Path) -> Path:
    path = tmp_path / "routers" / "a"
    path.mkdir(parents=True)
    (tmp_path / "link").symlink_to(path)
    return path


@pytest.mark.parametrize(
    "spelling",
    ["{group}/", "{group}//", "{group}/.", "{group}/../a", "{link}", "/proc/self/root{group}"],
)
def test_a_group_is_the_same_however_it_is_written(
    group: Path, tmp_path: Path, spelling: str
) -> None:
    path = spelling.format(group=group, link=tmp_path / "link")
    assert meet(CgroupSpec(str(group)), CgroupSpec(path))


@pytest.mark.parametrize("spelling", ["{there}/none/", "{there}//none", "{link}/none"])
def test_a_group_that_does_not_exist_is_compared_by_its_path(
    group: Path, tmp_path: Path, spelling: str
) -> None:
    path = spelling.format(there=group, link=tmp_path / "link")
    assert meet(CgroupSpec(f"{group}/none"), CgroupSpec(path))
    assert not meet(CgroupSpec(f"{group}/other"), CgroupSpec(path))


def test_names_given_to_one_group_later_are_found_when_asked_again(tmp_path: Path) -> None:
    one, other = CgroupSpec(str(tmp_path / "one")), CgroupSpec(str(tmp_path / "other"))
    assert not meet(one, other)
    (tmp_path / "one").mkdir()
    (tmp_path / "other").symlink_to(tmp_path / "one")
    assert meet(one, other)


def test_a_group_and_the_one_above_it_are_two() -> None:
    assert not meet(CgroupSpec("/sys/fs/cgroup/a"), CgroupSpec("/sys/fs/cgroup/a/b"))


def test_routers_of_one_namespace_are_told_apart_by_their_interfaces(tmp_path: Path) -> None:
    (tmp_path / "ns").symlink_to("/proc/self/ns/net")
    one = DeadlineSpec("/proc/self/ns/net", ("eth0", "eth1"))
    assert meet(one, DeadlineSpec("/proc/thread-self/ns/net", ("eth1",), 2000))
    assert meet(one, DeadlineSpec(str(tmp_path / "ns"), ("eth1", "eth0")))
    assert not meet(one, DeadlineSpec("/proc/self/ns/net", ("eth2",)))
    assert not meet(one, DeadlineSpec("/run/netns/of-another-router", ("eth0",)))


def test_a_domain_is_compared_by_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = "c7a5fdbd-edaf-9455-926a-d65c16db1809"
    assert meet(LibvirtSpec(uuid), LibvirtSpec(uuid.upper(), scope="machine"))
    assert not meet(LibvirtSpec("gold"), LibvirtSpec("Gold"))
    assert not meet(LibvirtSpec("gold", "xen:///system"), LibvirtSpec("gold", "qemu:///system"))
    monkeypatch.setenv("LIBVIRT_DEFAULT_URI", "xen:///system")
    assert meet(LibvirtSpec("gold", "xen:///system"), LibvirtSpec("gold"))


def test_a_name_and_a_uuid_are_one_domain_where_its_hypervisor_tells() -> None:
    uuid = "c7a5fdbd-edaf-9455-926a-d65c16db1809"
    name = place_of(LibvirtSpec("gold"), uuid_of={LibvirtSpec("gold"): uuid}.get)
    assert name & place_of(LibvirtSpec(uuid.upper(), "qemu:///system"))
    assert name & place_of(LibvirtSpec("gold"))
    assert not name & place_of(LibvirtSpec("silver"))


def test_plants_are_compared_by_name() -> None:
    assert meet(SimulatedSpec("a"), SimulatedSpec("a", stolen=0.5))
    assert not meet(SimulatedSpec("a"), SimulatedSpec("b"))


def test_a_container_that_does_not_run_is_compared_by_its_name() -> None:
    one, other = CgroupSpec("container:no-such-a"), CgroupSpec("container:no-such-b")
    assert meet(one, one)
    assert not meet(one, other)


def test_two_spellings_of_one_group_are_refused_with_both_routers(group: Path) -> None:
    text = "".join(
        f'[router.{name}]\nactuator = {{ kind = "cgroup", path = "{path}" }}\n'
        f'interfaces = ["tap-{name}"]\n'
        for name, path in (("a", group), ("b", f"{group}/"))
    )
    with pytest.raises(ConfigError, match=r"router\.b\.actuator: the same as router\.a's"):
        plans(parse_config(text))
