"""The real daemon holds real routers at their setpoints, and puts back what it found."""

import math
import time

import pytest
from conftest import Daemon, Host, cap_of, switches_of
from support.holding import stream, watch

from benchmarks.rig import cpu_seconds
from lab.routers.router import Router
from xtc.wire import Retune

pytestmark = pytest.mark.root

SETTLING, WATCHED = 3, 8
"""Of the daemon's ticks."""


@pytest.mark.usefixtures("deadline")
def test_both_kinds_of_router_are_held_retuned_and_released(host: Host) -> None:
    user = host.router("user", "user-space", 60e3)
    kernel = host.router("kern", "kernel", 120e3)
    before = switches_of(kernel)
    host.configure()
    daemon = host.start()
    assert (cap_of(user), cap_of(kernel)) == (None, None)
    daemon.hold(user=15e3, kern=50e3)
    check_means(host, daemon, user=15e3, kern=50e3)
    check_reported_caps(daemon, user, kernel)
    for vr, setpoint in {"user": 40e3, "kern": 25e3}.items():
        daemon.ask(Retune(vr, setpoint))
    check_means(host, daemon, user=40e3, kern=25e3)
    daemon.stop()
    assert (cap_of(user), cap_of(kernel)) == (None, None)
    assert switches_of(kernel) == before


def test_what_another_process_takes_of_the_cap_is_given_back(host: Host) -> None:
    router = host.router("user", "user-space", 60e3)
    host.configure()
    daemon = host.start()
    daemon.hold(user=20e3)
    daemon.wait_until_held("user")
    hog = router.hog(0.03)
    watch(daemon.runtime, SETTLING)
    before = cpu_seconds(hog.pid)
    check_means(host, daemon, user=20e3)
    assert cpu_seconds(hog.pid) > before


def check_means(host: Host, daemon: Daemon, **setpoints: float) -> None:
    daemon.wait_until_held(*setpoints)
    watch(daemon.runtime, SETTLING)
    host.check_held(daemon, WATCHED, 0.08, setpoints)


def check_reported_caps(daemon: Daemon, *routers: Router) -> None:
    """Compare what a tick reports with what the kernel held between the one before and it."""
    in_force: dict[str, float | None] = {}
    read_at = math.inf
    for tick in stream(daemon.runtime):
        if read_at < tick.at:
            break
        in_force = {router.name: cap_of(router) for router in routers}
        read_at = time.monotonic()
    else:
        pytest.fail("the caps were never read between two ticks")
    reported = {report.vr: report.cap for report in tick.routers}
    assert reported == pytest.approx(in_force, rel=0.01)
