"""Parts of a router that vanish under the daemon: it says so, and the other router is held on."""

import os
import signal
from itertools import islice

import pytest
from conftest import PREFIX, Daemon, Host, cap_of, give_quota, quota_of

from lab import cgroups, namespaces
from lab.pacer import MAX_LAG_S
from lab.plan import namespace
from lab.router import Router
from xtc.instance import Finding, Mode

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


def test_an_interface_that_vanishes_gives_no_wild_rate(host: Host) -> None:
    lost = host.router("lost", "user-space", SENT)
    other = host.router("other", "user-space", SENT)
    daemon = held(host)
    stream = daemon.client.telemetry()
    next(stream)
    victim = lost.host_interfaces[0]
    namespaces.configure(namespace(PREFIX, "dom0"), lambda ip: ip.link("del", ifname=victim))
    reports = [tick.routers[0] for tick in islice(stream, 8)]
    noticed = next(report for report in reports if report.problem)
    assert noticed.problem == f"{victim}: vanished"
    assert noticed.throughput_pps is None
    rates = [rate for report in reports for rate in (report.throughput_pps, report.offered_pps)]
    assert max(rate for rate in rates if rate is not None) <= MOST_SENT
    check_held(daemon, other)
    daemon.stop()


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
