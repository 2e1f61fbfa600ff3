"""Real machines under QEMU: held by the real daemon through libvirt, with its caps travelling."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import PREFIX, Daemon, Host, quota_of
from libvirt_host import (
    LibvirtHost,
    cap_of,
    closed_at,
    group,
    held_or_mute,
    libvirt_on,
    table,
    top,
)
from support.holding import watch
from support.stalls import Stalls
from support.waiting import eventually
from support.weights import prefer

from lab.libvirt.routers import GuestRouter
from lab.libvirt.server import PrivateLibvirtd
from xtc.modes import Finding
from xtc.wire import Retune

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]  # machines boot in emulation

SETTLING, WATCHED, SWAPPED = 3, 20, 8
"""Of the daemon's ticks."""
AGAIN_S = 10.0
"""Within this a loop is closed again once libvirt answers again."""


@pytest.fixture
def libvirt(host: Host, tmp_path: Path) -> Iterator[LibvirtHost]:
    with libvirt_on(host, tmp_path) as libvirt_host:
        yield libvirt_host


def test_machines_and_containers_are_held_swapped_and_released(libvirt: LibvirtHost) -> None:
    routers = libvirt.routers(gold="qemu", iron="qemu", silver="lxc", zinc="lxc")
    daemon = libvirt.start()
    assert [cap_of(router) for router in routers] == [None] * 4
    setpoints = {"gold": 7e3, "iron": 5e3, "silver": 15e3, "zinc": 8e3}
    daemon.hold(**setpoints)
    check_means(libvirt, daemon, WATCHED, 0.05, **setpoints)
    swapped = {"gold": 5e3, "iron": 7e3, "silver": 8e3, "zinc": 15e3}
    for vr, setpoint in swapped.items():
        daemon.ask(Retune(vr, setpoint))
    check_means(libvirt, daemon, SWAPPED, 0.08, **swapped)
    assert None not in [cap_of(router) for router in routers]
    daemon.stop()
    assert [cap_of(router) for router in routers] == [None] * 4


def test_a_machine_is_followed_through_hot_plug_and_the_death_of_libvirtd(
    libvirt: LibvirtHost, stalls: Stalls
) -> None:
    gold = libvirt.router("gold", "qemu")
    daemon = libvirt.held(0.5, gold=6e3)
    assert len(daemon.report("gold").interfaces) == 2
    gold.attach_interface()
    daemon.wait_for("gold", lambda report: len(report.interfaces) == 3)
    libvirt.libvirtd.kill()
    cap = cap_of(gold)
    daemon.wait_for("gold", lambda report: bool(report.problem))
    assert cap_of(gold) == cap is not None
    libvirt.libvirtd.start()
    stalls.check_within(time.monotonic(), closed_at(daemon, "gold"), AGAIN_S)
    held_or_mute(daemon, "gold")
    daemon.stop()
    assert cap_of(gold) is None


def test_a_migrated_machine_is_adopted_and_gets_back_its_true_original(
    libvirt: LibvirtHost, host: Host, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        target = stack.enter_context(
            PrivateLibvirtd(tmp_path / "lv2", host.lab.dom0_netns, f"{PREFIX}-target")
        )
        prefer(top(target))
        gold = libvirt.router("gold", "qemu")
        gold.set_quota(0.8)
        source = libvirt.held(0.5, gold=6e3)
        freeze(source, gold)  # it changes no cap meanwhile
        cap = cap_of(gold)
        moved = gold.migrate(target)
        assert cap_of(moved) == cap is not None
        source.process.send_signal(signal.SIGCONT)
        source.wait_for("gold", lambda report: report.finding is Finding.GONE)
        assert cap_of(moved) == cap
        (tmp_path / "second").mkdir()
        second = Host(host.lab, tmp_path / "second", stack)
        second.configure(0.5, gold=f'{table(moved)}\nsetpoint = "4kpps"')
        daemon = second.start()
        daemon.wait_until_held("gold", without_problem=True)
        assert daemon.report("gold").setpoint_pps == 4e3
        daemon.stop()
        assert quota_of(group(moved)) == (80_000, 100_000)
        source.stop()


def freeze(daemon: Daemon, router: GuestRouter) -> None:
    """Stop a daemon, and let libvirt come to the end of what it was asked before."""
    daemon.process.send_signal(signal.SIGSTOP)
    status = Path(f"/proc/{daemon.process.pid}/status")
    eventually(lambda: "State:\tT" in status.read_text())
    router.virsh("schedinfo", router.name)  # waits for its turn on the domain


def check_means(
    libvirt: LibvirtHost, daemon: Daemon, ticks: int, most: float, **setpoints: float
) -> None:
    """Check that every router's mean throughput is near its setpoint, once all are held."""
    daemon.wait_until_held(*setpoints)
    watch(daemon.runtime, SETTLING)
    libvirt.host.check_held(daemon, ticks, most, setpoints, libvirt.guests.routers)
