"""The XML of the lab's domains, and the files of a private libvirtd."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab.errors import BadRequestError
from lab.libvirt.cache import GuestCache
from lab.libvirt.domainxml import Domain, bridge, check_guest_kind, domain
from lab.libvirt.layout import Layout, with_account
from lab.libvirt.partition import groups
from lab.plan import ports

KINDS = ("lxc", "lxc-kernel", "qemu")
FOLDER = Path("/var/tmp/a & b/<router>")


def parsed(kind: str, index: int = 101) -> ET.Element:
    router = Domain("gold", check_guest_kind(kind), index, FOLDER)
    return ET.fromstring(domain(router, "xtclab-dom0", GuestCache(Path("/cache & more"))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_domain_has_two_interfaces_on_its_own_bridges_and_no_name_for_them(kind: str) -> None:
    found = parsed(kind)
    assert found.findtext("name") == "gold"
    assert found.findtext("resource/partition") == "/xtclab-dom0"
    interfaces = found.findall("devices/interface")
    assert [i.find("source").get("bridge") for i in interfaces] == ["br101.0", "br101.1"]
    assert found.findall("devices/interface/target") == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_domain_starts_with_a_quota_or_comes_back_by_itself(kind: str) -> None:
    found = parsed(kind)
    assert found.find("cputune") is None
    for event in ("on_poweroff", "on_reboot", "on_crash"):
        assert found.findtext(event) == "destroy"


def test_a_path_with_odd_characters_survives() -> None:
    assert parsed("lxc").find("devices/filesystem/source").get("dir") == str(FOLDER / "root")
    assert parsed("qemu").find("devices/serial/source").get("path") == str(FOLDER / "console")
    assert parsed("qemu").findtext("os/kernel") == "/cache & more/kernel/vmlinux"


def test_only_what_the_kernel_is_to_forward_bears_the_router_s_address() -> None:
    """A container's own kernel must drop what its forwarder reads (`lab.plan.Port.idle_mac`)."""
    for kind, attribute in {"lxc": "idle_mac", "lxc-kernel": "router_mac"}.items():
        macs = [i.find("mac").get("address") for i in parsed(kind).findall("devices/interface")]
        assert macs == [getattr(port, attribute) for port in ports(101)]


def test_a_guest_is_told_its_number_and_its_next_hop() -> None:
    words = parsed("qemu", 7).findtext("os/cmdline").split()
    assert "router.N=7" in words
    assert f"router.FAR={ports(7)[1].nowhere_mac}" in words
    arguments = [element.text for element in parsed("lxc", 7).findall("os/initarg")]
    near, far = ports(7)
    assert arguments == [
        "forward",
        "7",
        near.router_mac,
        near.host_mac,
        far.router_mac,
        far.nowhere_mac,
    ]


def test_bridges_fit_into_an_interface_s_name() -> None:
    assert len(bridge(ports(254)[1])) <= 15


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadRequestError, match="lxc, lxc-kernel, qemu"):
        check_guest_kind("xen")


def test_a_folder_too_deep_for_sockets_is_refused(tmp_path: Path) -> None:
    Layout(Path("/tmp/short"))
    with pytest.raises(BadRequestError, match="short enough for sockets"):
        Layout(tmp_path / ("x" * 100))


def test_two_libvirtds_differ_in_identity_and_place(tmp_path: Path) -> None:
    layouts = [Layout(tmp_path / name) for name in "ab"]
    for layout in layouts:
        layout.write()
    texts = [layout.config.read_text() for layout in layouts]
    for key in ("host_uuid", "unix_sock_dir", "log_outputs"):
        values = {line for text in texts for line in text.splitlines() if line.startswith(key)}
        assert len(values) == 2


def test_the_account_is_added_once() -> None:
    once = with_account("root:x:0:\n", "64055:")
    assert once.splitlines() == ["root:x:0:", "libvirt-qemu:x:64055:"]
    assert with_account(once, "64055:") == once


def test_a_partition_has_a_group_in_every_hierarchy() -> None:
    mounts = """\
cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
tmpfs /run tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0
"""
    assert [str(group) for group in groups("p", mounts)] == [
        "/sys/fs/cgroup/cpu/p.partition",
        "/sys/fs/cgroup/unified/p.partition",
    ]
