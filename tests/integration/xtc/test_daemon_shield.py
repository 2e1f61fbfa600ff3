"""A held router's shield on real interfaces: set, reported, outliving the daemon, and removed."""

import socket
from functools import partial

import pytest
from conftest import Daemon, Host, cap_of

from lab.routers.router import Router
from xtc.kernel import clsact
from xtc.kernel.clsact import Direction
from xtc.kernel.namespaces import in_namespace
from xtc.shield.filters import OBJECT, SHIELD
from xtc.wire import Deactivate, Report

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not OBJECT.exists(), reason="shield.bpf.o is not built (clang, libbpf-dev)"),
]
FLOOD, SETPOINT = 40e3, 5e3


def shielded(host: Host, router: Router) -> int:
    """Return how many of the host's ends bear the shield."""

    def bears(interface: str) -> bool:
        index = socket.if_nametoindex(interface)
        return clsact.attached(index, Direction.EGRESS, SHIELD) is not None

    work = (partial(bears, name) for name in router.host_interfaces)
    return sum(in_namespace(host.lab.dom0_netns, one) for one in work)


def flooded(host: Host) -> tuple[Router, Daemon]:
    router = host.router("user", "user-space", FLOOD)
    host.configure()
    daemon = host.start()
    daemon.hold(user=SETPOINT)
    return router, daemon


def dropping(report: Report) -> bool:
    """Whether more is offered than reaches the router, and it is the shield that drops it."""
    offered = report.offered_pps
    return report.shield_pps is not None and offered is not None and offered > 2 * report.shield_pps


def passing_setpoint(report: Report) -> bool:
    """Whether the shield drops and passes the setpoint; less while it pays back what came first."""
    rate = report.shield_pps
    return dropping(report) and rate is not None and 0.9 * SETPOINT <= rate <= SETPOINT


def test_it_drops_the_excess_of_a_router_that_is_held_and_goes_with_the_cap(host: Host) -> None:
    router, daemon = flooded(host)
    daemon.wait_until_held("user")
    report = daemon.wait_for("user", passing_setpoint)
    assert report.shield_problem == ""
    assert shielded(host, router) == len(router.host_interfaces) > 1
    daemon.ask(Deactivate("user"))
    assert shielded(host, router) == 0
    assert cap_of(router) is None


def test_it_outlives_the_daemon_and_the_next_one_goes_on_with_it(host: Host) -> None:
    router, daemon = flooded(host)
    daemon.wait_for("user", dropping)
    daemon.kill()
    assert shielded(host, router) == len(router.host_interfaces)
    again = host.start()
    again.wait_for("user", dropping)
    again.stop()
    assert shielded(host, router) == 0


def test_without_a_daemon_it_is_released_with_the_caps(host: Host) -> None:
    router, daemon = flooded(host)
    daemon.wait_for("user", dropping)
    daemon.kill()
    assert host.xtc("release", "--all").returncode == 0
    assert shielded(host, router) == 0
