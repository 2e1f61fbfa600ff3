"""Real machines under QEMU: held by the real daemon through libvirt, with its caps travelling."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import Daemon, Host, near_setpoint, quota_of
from libvirt_host import LibvirtHost, cap_of, group, libvirt_on, table

from lab.libvirt.server import PrivateLibvirtd
from xtc.instance import Finding
from xtc.wire import Report, Retune

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]  # machines boot in emulation

SETTLING, WATCHED, SWAPPED = 3.0, 20.0, 8.0
AGAIN_S = 10.0
"""Within this a router is held again once libvirt answers again."""


@pytest.fixture
def libvirt(host: Host, tmp_path: Path) -> Iterator[LibvirtHost]:
    with libvirt_on(host, tmp_path) as libvirt_host:
        yield libvirt_host


def test_machines_and_containers_are_held_swapped_and_released(libvirt: LibvirtHost) -> None:
    routers = libvirt.routers(gold="qemu", iron="qemu", silver="lxc", zinc="lxc")
    daemon = libvirt.start()
    assert [cap_of(router) for router in routers] == [None] * 4
    setpoints = {"gold": 4e3, "iron": 2.5e3, "silver": 10e3, "zinc": 5e3}
    daemon.hold(**setpoints)
    check_means(libvirt, daemon, WATCHED, 0.05, **setpoints)
    swapped = {"gold": 2.5e3, "iron": 4e3, "silver": 5e3, "zinc": 10e3}
    for vr, setpoint in swapped.items():
        daemon.ask(Retune(vr, setpoint))
    check_means(libvirt, daemon, SWAPPED, 0.08, **swapped)
    assert None not in [cap_of(router) for router in routers]
    daemon.stop()
    assert [cap_of(router) for router in routers] == [None] * 4


def test_a_machine_is_followed_through_hot_plug_and_the_death_of_libvirtd(
    libvirt: LibvirtHost,
) -> None:
    gold = libvirt.router("gold", "qemu")
    daemon = libvirt.held(0.5, gold=6e3)
    assert len(daemon.report("gold").interfaces) == 2
    gold.attach_interface()
    daemon.wait_for("gold", lambda report: len(report.interfaces) == 3)
    libvirt.libvirtd.kill()
    cap = cap_of(gold)
    assert cap is not None
    daemon.wait_for("gold", lambda report: bool(report.problem))
    assert cap_of(gold) == pytest.approx(cap, rel=0.3)
    libvirt.libvirtd.start()
    daemon.wait_for("gold", held_without_problem, AGAIN_S)
    daemon.stop()
    assert cap_of(gold) is None


def test_a_migrated_machine_is_adopted_and_gets_back_its_true_original(
    libvirt: LibvirtHost, host: Host, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        target = stack.enter_context(
            PrivateLibvirtd(tmp_path / "lv2", host.lab.dom0_netns, "xtcint-target")
        )
        gold = libvirt.router("gold", "qemu")
        gold.set_quota(0.8)
        source = libvirt.held(0.5, gold=6e3)
        cap = cap_of(gold)
        moved = gold.migrate(target)
        source.wait_for("gold", lambda report: report.finding is Finding.GONE)
        assert cap_of(moved) == pytest.approx(cap, rel=0.3)
        (tmp_path / "second").mkdir()
        second = Host(host.lab, tmp_path / "second", stack)
        second.configure(0.5, gold=f'{table(moved)}\nsetpoint = "4kpps"')
        daemon = second.start()
        daemon.wait_for("gold", held_without_problem, AGAIN_S)
        assert daemon.report("gold").setpoint_pps == 4e3
        daemon.stop()
        assert quota_of(group(moved)) == (80_000, 100_000)
        source.stop()


def held_without_problem(report: Report) -> bool:
    return near_setpoint(report) and not report.problem


def check_means(
    libvirt: LibvirtHost, daemon: Daemon, seconds: float, most: float, **setpoints: float
) -> None:
    """Check that every router's mean throughput is near its setpoint, once all are held."""
    daemon.wait_until_held(*setpoints)
    time.sleep(SETTLING)
    routers = libvirt.guests.routers
    libvirt.host.check_means(seconds, most, *((routers[vr], pps) for vr, pps in setpoints.items()))
