"""Parts of a router that vanish under the daemon: it says so, and the other router is held on."""

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Final

import pytest
from conftest import PREFIX, Daemon, Host, cap_of, give_quota, quota_of
from pyroute2 import IPRoute
from support.holding import stream

from lab.plan import namespace
from lab.programs.pacer import MAX_LAG_S
from lab.routers.router import Router
from lab.system import cgroups, namespaces
from xtc.config.timing import EARLY, LATE
from xtc.modes import Finding, Mode
from xtc.wire import Telemetry

pytestmark = pytest.mark.root
SENT, PERIOD_S = 40e3, 0.25
WITH_PROBLEM: Final = 10
"""Ticks that name a problem, until a router counts as kept."""


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
    ticks = stream(daemon.runtime)
    start = next(ticks)
    victim = lost.host_interfaces[0]
    in_dom0(lambda ip: ip.link("del", ifname=victim))
    before, after = parted(chain([start], ticks))
    check_vanished(before, after[0], victim)
    check_rates([*before, *after])
    check_kept(after, victim)
    check_held(daemon, other)
    daemon.stop()


def test_a_router_whose_interface_is_renamed_under_a_flood_keeps_its_cap(host: Host) -> None:
    lost = host.router("lost", "user-space", SENT)
    daemon = host_of_one(host)
    ticks = stream(daemon.runtime)
    start = next(ticks)
    egress = lost.host_interfaces[1]
    rename(egress, "elsewhere")
    _, after = parted(chain([start], ticks))
    check_kept(after, egress)
    rename("elsewhere", egress)
    daemon.wait_until_held("lost", without_problem=True)
    daemon.stop()


def in_dom0(work: Callable[[IPRoute], object]) -> None:
    namespaces.configure(namespace(PREFIX, "dom0"), work)


def rename(interface: str, name: str) -> None:
    def change(ip: IPRoute) -> None:
        ip.link("set", index=ip.link_lookup(ifname=interface)[0], ifname=name)

    in_dom0(change)


def parted(ticks: Iterable[Telemetry]) -> tuple[list[Telemetry], list[Telemetry]]:
    """Return the ticks before the first that names a problem, and those until enough have.

    The kernel removes and renames interfaces in its own time, and a late tick may name nothing.
    """
    before: list[Telemetry] = []
    after: list[Telemetry] = []
    for tick in ticks:
        (after if after or tick.routers[0].problem else before).append(tick)
        if sum(bool(one.routers[0].problem) for one in after) == WITH_PROBLEM:
            return before, after
    raise AssertionError(f"too few ticks name a problem: {before}, {after}")


def check_vanished(before: Sequence[Telemetry], first: Telemetry, interface: str) -> None:
    """Check the first problem's name: after a late tick, rates begin without the interface."""
    problem = first.routers[0].problem
    known = [tick.at for tick in before if tick.routers[0].throughput_pps is not None]
    if known and first.at - known[-1] <= LATE * PERIOD_S:
        assert problem == f"{interface}: vanished"
    assert problem in {f"{interface}: vanished", f"{interface}: not there"}


def check_rates(ticks: Sequence[Telemetry]) -> None:
    """Check that no rate is wild: the source makes up for a time in which it stood still.

    A rate spans the time since the tick before, and more where that is too short for a rate.
    """
    for one, two in pairwise(ticks):
        most = SENT * (1 + MAX_LAG_S / max(EARLY * PERIOD_S, two.at - one.at)) * 1.1
        report = two.routers[0]
        assert max(report.throughput_pps or 0.0, report.offered_pps or 0.0) <= most


def check_kept(ticks: Sequence[Telemetry], interface: str) -> None:
    """Check that a router keeps the cap that it had when an interface was first missed.

    The last tick must name the interface.
    """
    reports = [tick.routers[0] for tick in ticks]
    assert [report.throughput_pps for report in reports] == [None] * len(reports)
    assert reports[-1].problem == f"{interface}: not there"
    assert (reports[-1].mode, reports[-1].finding) == (Mode.HOLD, Finding.BLIND)
    assert None not in [report.cap for report in reports]
    caps = [report.cap or 0.0 for report in reports]
    assert max(caps) <= 1.2 * caps[0]


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
    daemon.wait_for(router.name, lambda report: report.mode is Mode.CLOSED_LOOP)
    assert cap_of(router) is not None
