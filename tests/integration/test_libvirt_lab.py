"""The lab's own libvirt: quotas throttle its routers, faults are real, nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Host
from libvirt_host import LibvirtHost, libvirt_on

from lab.libvirt import partition
from lab.libvirt.errors import LibvirtError
from lab.libvirt.routers import GuestRouter
from lab.teardown import find, tear_down

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import sys, time
from pathlib import Path
from lab.libvirt.routers import GuestHost
from lab.libvirt.server import PrivateLibvirtd
from lab.topology import Lab
prefix, folder = sys.argv[1], Path(sys.argv[2])
with Lab(prefix) as lab, PrivateLibvirtd(folder, lab.dom0_netns) as libvirtd:
    with GuestHost(lab, libvirtd) as guests:
        router = guests.add_router("silver", "lxc")
        router.wait_until_forwarding()
        print(router.virsh("domid", "silver"), flush=True)
        time.sleep(60)
"""


@pytest.fixture
def libvirt(host: Host, tmp_path: Path) -> Iterator[LibvirtHost]:
    with libvirt_on(host, tmp_path) as libvirt_host:
        yield libvirt_host


@pytest.fixture
def prefix() -> Iterator[str]:
    name = f"t{os.getpid()}"
    yield name
    tear_down(name)
    partition.sweep(f"{name}-dom0")


def forwarded_pps(router: GuestRouter, seconds: float = 1.0) -> float:
    start, before = time.monotonic(), router.forwarded()
    time.sleep(seconds)
    return (router.forwarded() - before) / (time.monotonic() - start)


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def test_throughput_follows_the_quota_of_a_container(libvirt: LibvirtHost) -> None:
    silver = libvirt.router("silver", "lxc")
    rates = []
    for cap in (0.02, 0.06):
        silver.set_quota(cap)
        time.sleep(0.5)
        rates.append(forwarded_pps(silver, 1.5))
    assert 2 < rates[1] / rates[0] < 4.5


def test_what_the_host_s_kernel_forwards_no_quota_throttles(libvirt: LibvirtHost) -> None:
    kern = libvirt.router("kern", "lxc-kernel")
    kern.set_quota(0.02)
    assert forwarded_pps(kern) == pytest.approx(20e3, rel=0.2)


def test_guests_outlive_their_libvirtd_and_a_frozen_one_answers_nobody(
    libvirt: LibvirtHost,
) -> None:
    silver = libvirt.router("silver", "lxc")
    libvirt.libvirtd.kill()
    with pytest.raises(LibvirtError):
        silver.virsh("list")
    assert forwarded_pps(silver) > 1e3
    libvirt.libvirtd.start()
    assert silver.virsh("list", "--name").split() == ["silver"]
    libvirt.libvirtd.freeze()
    with pytest.raises(LibvirtError, match="no answer"):
        libvirt.libvirtd.virsh("lxc", "list", timeout_s=0.5)
    libvirt.libvirtd.thaw()
    libvirt.libvirtd.wait_ready(2)


@pytest.mark.usefixtures("libvirt")
def test_after_sigkill_of_the_owner_nothing_of_libvirt_is_left(prefix: str, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, prefix, str(folder)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    controller = int(owner.stdout.readline())
    (init,) = Path(f"/proc/{controller}/task/{controller}/children").read_text().split()
    groups = partition.groups(f"{prefix}-dom0", Path("/proc/self/mounts").read_text())
    assert [group for group in groups if group.is_dir()] == groups
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    assert eventually(lambda: not find(prefix).processes)
    assert eventually(lambda: not Path(f"/proc/{init}").exists())
    assert eventually(lambda: not any(group.exists() for group in groups))
    assert str(folder) not in Path("/proc/self/mounts").read_text()
