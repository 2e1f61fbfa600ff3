"""The lab's own libvirt: quotas throttle its routers, faults are real, nothing is left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Host
from libvirt_host import FLOODS, LibvirtHost, group, libvirt_on
from support.cpu import check_used, periods, used
from support.schedstat import ran
from support.stalls import Stalls
from support.waiting import eventually

from lab.libvirt import partition
from lab.libvirt.errors import LibvirtError
from lab.libvirt.routers import GuestRouter
from lab.system import cgroups
from lab.system.teardown import find, tear_down
from xtc.kernel.namespaces import in_namespace
from xtc.measure.meter import parse

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]

PERIOD_S = 0.1
"""Of a quota."""
ROOT = Path(__file__).resolve().parents[3]
OWNER = """
import sys, time
from pathlib import Path
from lab.libvirt.routers import GuestHost
from lab.libvirt.server import PrivateLibvirtd
from lab.routers.topology import Lab
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
    name = f"own{os.getpid()}"  # next to the host's own lab
    yield name
    tear_down(name)
    partition.sweep(f"{name}-dom0")


def crossed(libvirt: LibvirtHost, router: GuestRouter) -> tuple[int, int]:
    """Return the packets that were sent to a router, and those that came out of it."""
    near, far = router.host_interfaces
    dev = Path("/proc/thread-self/net/dev").read_bytes
    counters = parse(in_namespace(libvirt.host.lab.dom0_netns, dev))
    return counters[near].tx_packets, counters[far].rx_packets


def test_throughput_follows_the_quota_of_a_container(libvirt: LibvirtHost, stalls: Stalls) -> None:
    """A container forwards for as long as its quota lets it, and no longer."""
    silver = libvirt.router("silver", "lxc")
    costs: dict[float, list[float]] = {0.02: [], 0.06: []}
    for cap, least in 3 * list(costs.items()):
        silver.set_quota(cap)
        pids = cgroups.processes(group(silver))
        before = silver.forwarded(), ran(pids)
        seen = used(group(silver), lambda pids=pids: ran(pids), 2.0, stalls)
        check_used(seen, cap, PERIOD_S, 0.15)
        least.append((ran(pids) - before[1]) / (silver.forwarded() - before[0]))
    # What else runs makes a packet dearer, and never cheaper: the least tell of the container.
    assert 2 / 3 < min(costs[0.06]) / min(costs[0.02]) < 3 / 2


def test_what_the_host_s_kernel_forwards_no_quota_throttles(libvirt: LibvirtHost) -> None:
    kern = libvirt.router("kern", "lxc-kernel")
    kern.set_quota(0.02)
    first, throttled = crossed(libvirt, kern), periods(group(kern)).throttled
    eventually(lambda: crossed(libvirt, kern)[0] > first[0] + FLOODS["lxc-kernel"])
    last = crossed(libvirt, kern)
    assert last[1] - first[1] > 0.9 * (last[0] - first[0])
    assert periods(group(kern)).throttled == throttled


def test_guests_outlive_their_libvirtd_and_a_frozen_one_answers_nobody(
    libvirt: LibvirtHost,
) -> None:
    silver = libvirt.router("silver", "lxc")
    libvirt.libvirtd.kill()
    with pytest.raises(LibvirtError):
        silver.virsh("list")
    before = silver.forwarded()
    eventually(lambda: silver.forwarded() > before + 1_000)
    libvirt.libvirtd.start()
    assert silver.virsh("list", "--name").split() == ["silver"]
    libvirt.libvirtd.freeze()
    with pytest.raises(LibvirtError, match="no answer"):
        libvirt.libvirtd.virsh("lxc", "list", timeout_s=0.5)
    libvirt.libvirtd.thaw()
    libvirt.libvirtd.wait_ready()


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
    eventually(lambda: not find(prefix).processes)
    eventually(lambda: not Path(f"/proc/{init}").exists())
    eventually(lambda: not any(group.exists() for group in groups))
    assert str(folder) not in Path("/proc/self/mounts").read_text()
