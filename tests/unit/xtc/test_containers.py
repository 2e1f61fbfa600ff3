"""Containers are found by the paths of their groups, and named as their engines name them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.units import Seconds
from xtc.actuator.containers import KEPT_S, LONGEST_S, SHORT_ID, Container, Finder, running
from xtc.errors import Gone, Permanent, Transient
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec

ID, OTHER = "ab" * 32, "cd" * 32
V1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"


class Host:
    """A tree of files as a host would show it."""

    def __init__(self, root: Path, mounts: str = V2) -> None:
        self.root = root
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/mounts").write_text(mounts)
        (root / "proc/cpuinfo").touch()

    def run(self, pid: int, path: str, controllers: str = "0::") -> None:
        (self.root / f"proc/{pid}").mkdir(exist_ok=True)
        (self.root / f"proc/{pid}/cgroup").write_text(f"{controllers}{path}\n")

    def end(self, pid: int) -> None:
        (self.root / f"proc/{pid}/cgroup").unlink()

    def write(self, path: str, content: object) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(json.dumps(content))

    def name_in_docker(self, identity: str, name: str) -> None:
        path = f"var/lib/docker/containers/{identity}/config.v2.json"
        self.write(path, {"ID": identity, "Name": f"/{name}", "State": {"Pid": 7}})

    def name_in_podman(self, identity: str, name: str) -> None:
        path = "var/lib/containers/storage/overlay-containers/containers.json"
        self.write(path, [{"id": identity, "names": [name], "layer": "x"}])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize(
    ("path", "engine", "group", "name"),
    [
        (f"/docker/{ID}", "docker", f"/docker/{ID}", ID[:SHORT_ID]),
        (
            f"/system.slice/docker-{ID}.scope/init.scope",
            "docker",
            f"/system.slice/docker-{ID}.scope",
            ID[:SHORT_ID],
        ),
        (
            f"/machine.slice/libpod-{ID}.scope/container",
            "podman",
            f"/machine.slice/libpod-{ID}.scope",
            ID[:SHORT_ID],
        ),
        (
            f"/system.slice/edge.service/libpod-payload-{ID}",
            "podman",
            f"/system.slice/edge.service/libpod-payload-{ID}",
            ID[:SHORT_ID],
        ),
        (f"/libpod_parent/libpod-{ID}", "podman", f"/libpod_parent/libpod-{ID}", ID[:SHORT_ID]),
        ("/lxc/edge-1/init.scope", "lxc", "/lxc/edge-1", "edge-1"),
        ("/lxc.payload.edge.2", "lxc", "/lxc.payload.edge.2", "edge.2"),
        ("/lxc.payload/edge", "lxc", "/lxc.payload/edge", "edge"),
        (
            r"/machine.slice/systemd-nspawn@edge\x2d3.service/payload",
            "nspawn",
            r"/machine.slice/systemd-nspawn@edge\x2d3.service",
            "edge-3",
        ),
        ("/machine.slice/machine-e.scope", "nspawn", "/machine.slice/machine-e.scope", "e"),
    ],
)
@pytest.mark.parametrize(
    ("mounts", "controllers", "mount"),
    [(V1, "4:cpu,cpuacct:", "/sys/fs/cgroup/cpu"), (V2, "0::", "/sys/fs/cgroup")],
)
def test_every_engine_s_groups_are_known(  # noqa: PLR0917
    tmp_path: Path,
    path: str,
    engine: str,
    group: str,
    name: str,
    mounts: str,
    controllers: str,
    mount: str,
) -> None:
    host = Host(tmp_path, mounts)
    host.run(70, path, controllers)
    assert running(tmp_path) == [Container(engine, name, mount + group, 70)]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/user.slice/user-0.slice",
        f"/machine.slice/libpod-conmon-{ID}.scope",
        "/lxc.monitor.edge",
        r"/machine.slice/machine-qemu\x2d1\x2dguest.scope",
        "/machine.slice/systemd-nspawn@edge.service/supervisor",
        "/system.slice/docker.service",
    ],
)
def test_what_is_no_container_is_not_taken_for_one(host: Host, path: str) -> None:
    host.run(70, path)
    assert running(host.root) == []


def test_names_are_those_of_the_engines(host: Host) -> None:
    host.run(9, f"/docker/{ID}")
    host.run(10, f"/docker/{ID}")
    host.run(11, f"/machine.slice/libpod-{OTHER}.scope")
    host.name_in_docker(ID, "vpp1")
    host.name_in_podman(OTHER, "frr1")
    assert [(one.engine, one.name, one.pid) for one in running(host.root)] == [
        ("podman", "frr1", 11),
        ("docker", "vpp1", 9),
    ]


def test_a_list_of_names_that_cannot_be_read_leaves_the_ids(host: Host) -> None:
    host.run(9, f"/docker/{ID}")
    (host.root / f"var/lib/docker/containers/{ID}").mkdir(parents=True)
    (host.root / f"var/lib/docker/containers/{ID}/config.v2.json").write_text("{")
    assert [one.name for one in running(host.root)] == [ID[:SHORT_ID]]


def test_a_name_leads_to_group_and_namespace(host: Host) -> None:
    host.run(9, f"/docker/{ID}")
    host.name_in_docker(ID, "vpp1")
    find = Finder(FakeClock(), host.root)
    assert find.resolve(CgroupSpec("container:vpp1")) == CgroupSpec(f"/sys/fs/cgroup/docker/{ID}")
    deadline = DeadlineSpec("container:docker/vpp1", ("eth0",))
    assert find.resolve(deadline) == DeadlineSpec("/proc/9/ns/net", ("eth0",))


@pytest.mark.parametrize(
    "spec", [CgroupSpec("/sys/fs/cgroup/a"), DeadlineSpec("/run/netns/a", ("eth0",))]
)
def test_a_path_stays_as_it_is(host: Host, spec: ActuatorSpec) -> None:
    assert Finder(FakeClock(), host.root).resolve(spec) == spec


def test_a_container_that_is_made_again_is_found_again(host: Host) -> None:
    clock = FakeClock()
    find, spec = Finder(clock, host.root), CgroupSpec("container:vpp1")
    host.run(9, f"/docker/{ID}")
    host.name_in_docker(ID, "vpp1")
    assert find.resolve(spec) == CgroupSpec(f"/sys/fs/cgroup/docker/{ID}")
    host.end(9)
    clock.sleep(KEPT_S)
    with pytest.raises(Gone, match="no container of this name runs"):
        find.resolve(spec)
    host.run(12, f"/docker/{OTHER}")
    host.name_in_docker(OTHER, "vpp1")
    clock.sleep(Seconds(KEPT_S / 2))
    with pytest.raises(Gone):
        find.resolve(spec)
    clock.sleep(Seconds(KEPT_S / 2))
    assert find.resolve(spec) == CgroupSpec(f"/sys/fs/cgroup/docker/{OTHER}")


def test_two_of_one_name_are_told_apart_by_their_engine(host: Host) -> None:
    host.run(9, f"/docker/{ID}")
    host.run(10, "/lxc/vpp1")
    host.name_in_docker(ID, "vpp1")
    find = Finder(FakeClock(), host.root)
    with pytest.raises(Permanent, match="container:docker/vpp1 or container:lxc/vpp1"):
        find.resolve(CgroupSpec("container:vpp1"))
    assert find.resolve(CgroupSpec("container:lxc/vpp1")) == CgroupSpec("/sys/fs/cgroup/lxc/vpp1")


FORGED = f"/docker/{ID}"


@pytest.mark.parametrize(
    "odd",
    [
        b"0::/user.slice/\xff\n",
        b"0::/user.slice/a\x0c0::" + FORGED.encode() + b"\n",
        b"0::/user.slice/a\x0c1:cpu:" + FORGED.encode() + b"\n",
        b"0::/lxc.payload.\xff\n",
        b"0::/lxc.payload.a\x1b[2J\n",
        b"no colon\n",
        b"",
    ],
)
def test_no_name_of_a_group_breaks_or_forges(host: Host, odd: bytes) -> None:
    host.run(9, "/lxc/edge")
    (host.root / "proc/8").mkdir()
    (host.root / "proc/8/cgroup").write_bytes(odd)
    assert [(one.name, one.pid) for one in running(host.root)] == [("edge", 9)]


def test_a_container_is_found_whatever_groups_it_makes(host: Host) -> None:
    (host.root / "proc/8").mkdir()
    (host.root / "proc/8/cgroup").write_bytes(b"0::/lxc/edge/\xff\n")
    assert [one.name for one in running(host.root)] == ["edge"]


def test_no_name_of_a_mount_breaks_or_forges(host: Host) -> None:
    forged = b"fuse /home/t/\xff\x0ccgroup2 fuse rw 0 0\nfuse /t\x0ccgroup2 fuse rw 0 0\nshort\n"
    (host.root / "proc/self/mounts").write_bytes(forged + V2.encode())
    host.run(9, "/lxc/edge")
    assert [one.group for one in running(host.root)] == ["/sys/fs/cgroup/lxc/edge"]


def test_a_tree_of_processes_that_cannot_be_read_is_an_error_of_its_kind(tmp_path: Path) -> None:
    with pytest.raises(Transient, match="mounts"):
        Finder(FakeClock(), tmp_path).resolve(CgroupSpec("container:vpp1"))


@pytest.mark.parametrize(
    ("written", "name"), [(r"e\xc3\xa4", "eä"), (r"e\x0a", r"e\x0a"), (r"e\xff", r"e\xff")]
)
def test_a_name_that_cannot_be_shown_stays_as_it_is_written(
    host: Host, written: str, name: str
) -> None:
    host.run(9, f"/machine.slice/machine-{written}.scope")
    assert [one.name for one in running(host.root)] == [name]


TENANT = "/machine.slice/machine-a.scope"


@pytest.mark.parametrize(
    ("path", "group", "name"),
    [
        (f"{TENANT}/payload/systemd-nspawn@gold.service", TENANT, "a"),
        (f"{TENANT}/lxc/gold", TENANT, "a"),
        (f"{TENANT}/machine.slice/docker-{ID}.scope", TENANT, "a"),
        (
            f"/system.slice/systemd-nspawn@a.service/libpod-payload-{ID}",
            "/system.slice/systemd-nspawn@a.service",
            "a",
        ),
        (f"/lxc.payload.a.slice/docker-{ID}.scope", "/lxc.payload.a.slice", "a.slice"),
        (f"/docker/{OTHER}/supervisor", f"/docker/{OTHER}", OTHER[:SHORT_ID]),
        (f"/docker/{OTHER}/docker/{ID}", f"/docker/{OTHER}", OTHER[:SHORT_ID]),
    ],
)
def test_the_outermost_group_tells_the_container(
    host: Host, path: str, group: str, name: str
) -> None:
    host.run(9, path)
    host.name_in_docker(ID, "gold")
    (found,) = running(host.root)
    assert (found.name, found.group) == (name, f"/sys/fs/cgroup{group}")


USER = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    "path",
    [
        f"{USER}/lxc.payload.gold",
        f"{USER}/app.slice/systemd-nspawn@gold.service",
        f"{USER}/machine.slice/machine-gold.scope",
        f"{USER}/libpod-payload-{ID}",
        f"{USER}/docker/{ID}",
        f"/system.slice/tenant.service/docker-{ID}.scope",
        f"/system.slice/tenant.service/machine.slice/libpod-{ID}.scope",
    ],
)
def test_a_group_in_a_place_of_another_s_is_no_container(host: Host, path: str) -> None:
    host.run(9, path)
    assert running(host.root) == []


@pytest.mark.parametrize(
    "path",
    [
        f"{USER}/user.slice/libpod-{ID}.scope",
        f"{USER}/docker-{ID}.scope",
        f"{USER}/app.slice/a.service/libpod-payload-{ID}",
    ],
)
def test_a_rootless_container_never_has_a_name_of_the_system_s(host: Host, path: str) -> None:
    host.run(9, path)
    host.name_in_docker(ID, "gold")
    host.name_in_podman(ID, "gold")
    assert [(one.name, one.group) for one in running(host.root)] == [
        (ID[:SHORT_ID], f"/sys/fs/cgroup{path}")
    ]


def test_a_name_that_stands_for_two_groups_is_refused_with_both(host: Host) -> None:
    host.run(9, f"/docker/{ID}")
    host.run(10, f"/routers.slice/docker-{ID}.scope")
    host.name_in_docker(ID, "gold")
    find = Finder(FakeClock(), host.root)
    with pytest.raises(Permanent, match=rf"docker/{ID}, .*docker-{ID}\.scope .write the path"):
        find.resolve(CgroupSpec("container:gold"))


def test_podman_s_pods_are_looked_into(host: Host) -> None:
    host.run(9, f"/libpod_parent/{OTHER}/libpod-{ID}")
    host.run(10, f"/machine.slice/machine-libpod_pod_{OTHER}.slice/libpod-{OTHER}.scope")
    assert [one.name for one in running(host.root)] == [ID[:SHORT_ID], OTHER[:SHORT_ID]]


@pytest.mark.parametrize(
    ("took", "kept"), [(0.001, KEPT_S), (0.3, Seconds(15.0)), (5.0, LONGEST_S)]
)
def test_long_looks_are_rare(
    host: Host, monkeypatch: pytest.MonkeyPatch, took: float, kept: Seconds
) -> None:
    clock, looks = FakeClock(), list[Seconds]()

    def look(root: Path) -> list[Container]:
        looks.append(clock.now())
        clock.sleep(Seconds(took))
        return running(root)

    monkeypatch.setattr("xtc.actuator.containers.running", look)
    find = Finder(clock, host.root)
    for _ in range(200):
        with pytest.raises(Gone):
            find.resolve(CgroupSpec("container:gold"))
        clock.sleep(Seconds(0.5))
    gaps = [later - earlier for earlier, later in pairwise(looks)]
    assert gaps
    assert all(kept <= gap <= kept + 0.5 + took for gap in gaps)
