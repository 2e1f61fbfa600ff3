"""Parts of a router that vanish under the daemon: it says so, and the other router is held on."""

import os
import signal
from collections.abc import Callable
from itertools import islice

import pytest
from conftest import PREFIX, Daemon, Host, cap_of, give_quota, quota_of
from pyroute2 import IPRoute

from lab.plan import namespace
from lab.programs.pacer import MAX_LAG_S
from lab.routers.router import Router
from lab.system import cgroups, namespaces
from xtc.modes import Finding, Mode
from xtc.wire import Report

pytestmark = pytest.mark.root
SENT, PERIOD_S = 40e3, 0.25
MOST_SENT = SENT * (1 + MAX_LAG_S / PERIOD_S) * 1.1
"""In one period, where the source makes up for a time in which it stood still."""


def test_a_group_that_is_removed_is_gone_until_another_takes_its_path(host: Host) -> None:
    lost = host.router("lost", "user-space", SENT)
    other = host.router("other", "user-space", SENT)
    daemon = held(host)
    assert lost.cgroup is not None
    for pid in cgroups.processes(lost.cgroup):
        os.kill(pid, signal.SIGKILL)
    cgroups.remove(lost.cgroup)
    gone = daemon.wait_for("lost", lambda report: report.finding is Finding.GONE)
    assert "does not exist" in gone.problem
    assert gone.cap is None
    check_held(daemon, other)
    lost.cgroup.mkdir()
    give_quota(lost.cgroup, 40_000, 50_000)
    lost.start_forwarder()
    daemon.wait_until_held("lost")
    daemon.stop()
    assert quota_of(lost.cgroup) == (40_000, 50_000)
    assert cap_of(other) is None


@pytest.mark.usefixtures("deadline")
def test_a_namespace_that_is_removed_is_gone(host: Host) -> None:
    host.router("lost", "kernel", SENT)
    other = host.router("other", "user-space", SENT)
    daemon = held(host)
    namespaces.remove(namespace(PREFIX, "lost"))
    gone = daemon.wait_for("lost", lambda report: report.finding is Finding.GONE)
    assert namespace(PREFIX, "lost") in gone.problem
    assert gone.mode is Mode.RELEASED
    check_held(daemon, other)
    daemon.stop()


def test_a_router_that_loses_an_interface_keeps_its_cap_and_has_no_wild_rate(host: Host) -> None:
    lost = host.router("lost", "user-space", SENT)
    other = host.router("other", "user-space", SENT)
    daemon = held(host)
    stream = daemon.client.telemetry()
    before = next(stream).routers[0].cap
    victim = lost.host_interfaces[0]
    in_dom0(lambda ip: ip.link("del", ifname=victim))
    reports = [tick.routers[0] for tick in islice(stream, 12)]
    first = next(index for index, report in enumerate(reports) if report.problem)
    assert reports[first].problem == f"{victim}: vanished"
    rates = [rate for report in reports for rate in (report.throughput_pps, report.offered_pps)]
    assert max((rate for rate in rates if rate is not None), default=0.0) <= MOST_SENT
    check_kept(reports[first:], victim, max(before or 0.0, reports[0].cap or 0.0))
    check_held(daemon, other)
    daemon.stop()


def test_a_router_whose_interface_is_renamed_under_a_flood_keeps_its_cap(host: Host) -> None:
    lost = host.router("lost", "user-space", SENT)
    daemon = host_of_one(host)
    stream = daemon.client.telemetry()
    before = next(stream).routers[0].cap or 0.0
    egress = lost.host_interfaces[1]
    rename(egress, "elsewhere")
    reports = [tick.routers[0] for tick in islice(stream, 12)]
    first = next(index for index, report in enumerate(reports) if report.problem)
    check_kept(reports[first:], egress, max(before, reports[0].cap or 0.0))
    rename("elsewhere", egress)
    daemon.wait_until_held("lost", without_problem=True)
    daemon.stop()


def in_dom0(work: Callable[[IPRoute], object]) -> None:
    namespaces.configure(namespace(PREFIX, "dom0"), work)


def rename(interface: str, name: str) -> None:
    def change(ip: IPRoute) -> None:
        ip.link("set", index=ip.link_lookup(ifname=interface)[0], ifname=name)

    in_dom0(change)


def check_kept(reports: list[Report], interface: str, cap: float) -> None:
    """Check that a router is held where it was, and that the missing interface is named."""
    assert [report.throughput_pps for report in reports] == [None] * len(reports)
    assert reports[-1].problem == f"{interface}: not there"
    assert (reports[-1].mode, reports[-1].finding) == (Mode.HOLD, Finding.BLIND)
    caps = [report.cap for report in reports]
    assert None not in caps
    assert max(each or 0.0 for each in caps) <= 1.2 * cap


def host_of_one(host: Host) -> Daemon:
    host.configure(period_s=PERIOD_S)
    daemon = host.start()
    daemon.hold(lost=15e3)
    daemon.wait_until_held("lost")
    return daemon


def held(host: Host) -> Daemon:
    host.configure(period_s=PERIOD_S)
    daemon = host.start()
    daemon.hold(lost=15e3, other=15e3)
    daemon.wait_until_held("lost", "other")
    return daemon


def check_held(daemon: Daemon, router: Router) -> None:
    daemon.wait_until_held(router.name, without_problem=True)
    report = daemon.report(router.name)
    assert report.mode is Mode.CLOSED_LOOP
    assert cap_of(router) is not None
