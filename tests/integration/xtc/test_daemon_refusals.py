"""What the daemon cannot do it refuses or gives up, with words that help, and leaves no cap."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Host, cap_of, quota_of

from lab.system import cgroups
from xtc.modes import Finding, Mode

pytestmark = pytest.mark.root

READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def test_a_quota_on_a_router_of_the_kernel_is_given_up_with_advice(host: Host) -> None:
    router = host.router("kern", "kernel", 40e3)
    root = cgroups.find_root()
    assert root is not None
    group = cgroups.create(root, host.lab.prefix, "idle")
    (group / "cgroup.procs").write_text(str(host.run("sleep", "300").pid))
    interfaces = f'interfaces = ["vif{router.index}.*"]'
    host.configure(kern=f'{interfaces}\nactuator = {{ kind = "cgroup", path = "{group}" }}')
    daemon = host.start()
    daemon.hold(kern=10e3)
    found = daemon.wait_for("kern", lambda r: r.finding is Finding.UNRESPONSIVE)
    assert found.mode is Mode.RELEASED
    assert 'actuator kind = "deadline"' in found.problem
    assert quota_of(group)[0] is None


def test_a_group_that_may_not_be_written_is_refused_with_the_fix(host: Host) -> None:
    router = host.router("user", "user-space", 20e3)
    host.configure()
    host.start("unshare", "--mount", "sh", "-c", READ_ONLY, str(router.cgroup))
    done = host.xtc("activate", "user", "--setpoint", "10kpps")
    assert done.returncode == 1
    assert f"{router.cgroup}: may not be written" in done.stderr
    assert "cgroupfs mounted writable" in done.stderr
    assert cap_of(router) is None


@pytest.fixture
def small_disk(host: Host) -> Iterator[Path]:
    """Have the state directory on a disk of 16 KiB; return a file that can fill it."""
    host.state.mkdir()
    options = "size=16k,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "xtcint", host.state], check=True)
    yield host.state / "ballast"
    subprocess.run(["umount", "--lazy", host.state], check=True)


def test_on_a_full_disk_nothing_new_is_capped_and_what_is_held_is_held_on(
    host: Host, small_disk: Path
) -> None:
    host.router("old", "user-space", 40e3)
    new = host.router("new", "user-space", 40e3)
    host.configure(period_s=0.25)
    daemon = host.start()
    daemon.hold(old=15e3)
    daemon.wait_until_held("old")
    fill(small_disk)
    daemon.hold(new=15e3)
    found = daemon.wait_for("new", lambda report: bool(report.problem))
    assert "No space left on device; no new router will be capped" in found.problem
    host.check_held(daemon, 8, 0.2, {"old": 15e3})
    assert cap_of(new) is None
    assert daemon.report("old").cap is not None
    small_disk.unlink()
    daemon.wait_until_held("new")
    assert not daemon.report("new").problem
    daemon.stop()
    assert cap_of(new) is None


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for _ in range(16):
            file.write(bytes(4096))
    assert shutil.disk_usage(path.parent).free == 0
