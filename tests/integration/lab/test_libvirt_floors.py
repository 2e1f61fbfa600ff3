"""The floor of a real domain: its weight is set by libvirt, adopted, and put back as it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from conftest import Host
from libvirt_host import LibvirtHost, group, libvirt_on, table
from support.waiting import eventually

from lab.libvirt.routers import GuestRouter

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]

PERIOD_S: Final = 0.5
WEIGHT: Final = 3000
"""That control groups take, be they v1 or v2."""


@pytest.fixture
def libvirt(host: Host, tmp_path: Path) -> Iterator[LibvirtHost]:
    with libvirt_on(host, tmp_path) as libvirt_host:
        yield libvirt_host


def weight_of(router: GuestRouter) -> int:
    """Return the domain's weight in force as the kernel tells it."""
    whole = group(router) if router.domain.kind == "lxc" else group(router).parent
    names = ("cpu.shares", "cpu.weight")
    return next(int((whole / name).read_text()) for name in names if (whole / name).exists())


@pytest.mark.parametrize(("kind", "setpoint"), [("lxc", 16e3), ("qemu", 3e3)])
def test_a_domains_weight_is_set_adopted_and_put_back(
    libvirt: LibvirtHost, kind: str, setpoint: float
) -> None:
    silver = libvirt.router("silver", kind)
    before = weight_of(silver)
    libvirt.host.configure(PERIOD_S, silver=f"{table(silver)}\nweight = {WEIGHT}")
    first = libvirt.host.start()
    first.hold(silver=setpoint)
    eventually(lambda: weight_of(silver) == WEIGHT)
    told = first.wait_for("silver", lambda report: report.weight == WEIGHT)
    assert told.floor_problem == ""
    first.kill()
    assert weight_of(silver) == WEIGHT != before
    second = libvirt.host.start()
    second.wait_for("silver", lambda report: report.cap is not None and report.weight == WEIGHT)
    second.stop()
    assert weight_of(silver) == before
