"""Routers of a private libvirtd on a host of the lab, and their quotas read from the kernel."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from conftest import Daemon, Host, quota_of
from support.holding import of, stream
from support.inconclusive import inconclusive
from support.weights import make_punctual, prefer

from lab.libvirt import requirements
from lab.libvirt.routers import GuestHost, GuestRouter
from lab.libvirt.server import PrivateLibvirtd
from lab.programs.processes import Place
from lab.system import cgroups
from xtc.wire import Mode, Report

FLOODS: Final = {"lxc": 24e3, "lxc-kernel": 20e3, "qemu": 9e3}
"""What each kind is sent, in packets/s: more than it may carry in any test."""
CONSOLE: Final = 2000
"""The last characters that a machine wrote."""


class LibvirtHost:
    """A host of the lab with a libvirtd of its own, and routers in it."""

    def __init__(self, host: Host, guests: GuestHost) -> None:
        self.host, self.guests, self.libvirtd = host, guests, guests.libvirtd

    def router(self, name: str, kind: Any) -> GuestRouter:
        """Start a router, and flood it once it forwards."""
        (router,) = self.routers(**{name: kind})
        return router

    def routers(self, **kinds: Any) -> list[GuestRouter]:
        """Start routers at once, and flood them once they forward."""
        routers = [self.guests.add_router(name, kind) for name, kind in kinds.items()]
        for router in routers:
            router.wait_until_forwarding()
            make_punctual(router.flood(FLOODS[router.domain.kind]).pid)
        return routers

    def start(self, period_s: float = 1.0) -> Daemon:
        """Start a daemon for every router of the lab and of libvirt."""
        routers = self.guests.routers.values()
        self.host.configure(period_s, **{router.name: table(router) for router in routers})
        return self.host.start()

    def held(self, period_s: float = 1.0, **setpoints: float) -> Daemon:
        """Start a daemon that holds routers, and return when it does."""
        daemon = self.start(period_s)
        daemon.hold(**setpoints)
        daemon.wait_until_held(*setpoints)
        return daemon


def top(libvirtd: PrivateLibvirtd) -> Path:
    """Return the control group that holds those of a libvirtd's routers."""
    root = cgroups.find_root()
    assert root is not None
    return root / f"{libvirtd.partition}.partition"


def table(router: GuestRouter) -> str:
    """Return a router's table of the configuration: no interfaces are named."""
    return f'actuator = {{ kind = "libvirt", domain = "{router.name}", uri = "{router.uri}" }}'


def group(router: GuestRouter) -> Path:
    """Return the control group that holds a router's quota while it runs."""
    kind = "qemu" if router.domain.kind == "qemu" else "lxc"
    (found,) = top(router.libvirtd).glob(f"{kind}-*-{router.name}.libvirt-{kind}")
    return found / "vcpu0" if kind == "qemu" else found


def cap_of(router: GuestRouter) -> float | None:
    """Return the cap in force as the kernel tells it; None is uncapped."""
    quota, period = quota_of(group(router))
    return None if quota is None else quota / period


def is_closed(report: Report) -> bool:
    """Whether a router's loop is closed, and nothing keeps it from its work."""
    return report.mode is Mode.CLOSED_LOOP and report.cap is not None and not report.problem


def closed_at(daemon: Daemon, vr: str) -> float:
    """Wait until a router's loop is closed; return when that was, by the daemon's clock.

    That clock is the test's as well: monotonic seconds of the machine.
    """
    for tick in stream(daemon.runtime):
        if is_closed(*of(vr, [tick])):
            return tick.at
    pytest.fail(f"{vr} is not held again: {daemon.report(vr)}\n{daemon.log}")


def show(host: Host, guests: GuestHost) -> None:
    """Print what explains a failure: what machines wrote, and what their interfaces counted."""
    for name, router in guests.routers.items():
        console = router.domain.folder / "console"
        if console.exists():
            print(f"{name}:", console.read_text(errors="replace")[-CONSOLE:])  # noqa: T201
    inside = Place(host.lab.dom0_netns).command(["ip", "-s", "-s", "link"])
    print(subprocess.run(inside, capture_output=True, text=True, check=False).stdout)  # noqa: T201


def held_or_mute(daemon: Daemon, vr: str) -> None:
    """Wait until a machine is held, without a problem.

    Raises:
        AssertionError: it is not in time.
        Inconclusive: what it receives it does not forward, with CPU to spare: its own network
            stopped, as it did once under emulation.
    """
    try:
        daemon.wait_until_held(vr, without_problem=True)
    except AssertionError:
        report = daemon.report(vr)
        if report.throughput_pps == 0 and report.offered_pps and report.binding is False:
            inconclusive(f"{vr} forwards nothing, with CPU to spare")
        raise


@contextmanager
def libvirt_on(host: Host, folder: Path) -> Iterator[LibvirtHost]:
    """Give a host a libvirtd, or skip where this machine lacks something for it."""
    pytest.importorskip("libvirt", reason="libvirt-python is not installed")
    if missing := requirements.missing():
        pytest.skip("; ".join(missing))
    with (
        PrivateLibvirtd(folder / "lv", host.lab.dom0_netns) as libvirtd,
        GuestHost(host.lab, libvirtd) as guests,
    ):
        prefer(top(libvirtd))
        try:
            yield LibvirtHost(host, guests)
        finally:
            show(host, guests)
