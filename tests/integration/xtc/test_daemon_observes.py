"""A daemon that only observes shows what it would do, and the kernel has nothing of it."""

import socket
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import pytest
from conftest import Daemon, Host, cap_of, give_quota, napi_threads, quota_of, switches_of

from benchmarks.rig import lab_router
from lab.routers.router import Router
from xtc.kernel import clsact
from xtc.kernel.clsact import Direction
from xtc.kernel.namespaces import in_namespace
from xtc.kernel.scheduling import get_policy
from xtc.state.starts import MOST, OBSERVED
from xtc.wire import Report

pytestmark = pytest.mark.root

FLOOD, SETPOINT, PERIOD_S = 40e3, 10e3, 0.25
CONFIGURED: Final = 'setpoint = "10kpps"'
TICKS: Final = 12
OTHERS: Final = (33_000, 100_000)
"""A quota that no law arrives at: whatever xtc writes replaces it."""


def written(host: Host, router: Router) -> dict[str, object]:
    """Return everything in the kernel that a daemon changes of a router that it holds."""
    found: dict[str, object] = {"switches": switches_of(router)}
    found["policies"] = [get_policy(tid) for tid in napi_threads(router)]
    group = router.cgroup
    for file in () if group is None else knobs(group):
        found[file.name] = file.read_text()
    for name in router.host_interfaces:
        found[name] = in_namespace(host.lab.dom0_netns, partial(programs, name))
    return found


def knobs(group: Path) -> list[Path]:
    names = ("cpu.max", "cpu.weight", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares")
    return [group / name for name in names if (group / name).exists()]


def programs(interface: str) -> list[tuple[clsact.Filter, int | None]]:
    """Return the filters on an interface; a rate that changes leaves its program's number."""
    index = socket.if_nametoindex(interface)
    return [
        (one, clsact.attached(index, direction, one.priority))
        for direction in Direction
        for one in clsact.filters(index, direction)
    ]


def watched(
    daemon: Daemon, look: Callable[[], object]
) -> tuple[Mapping[str, Sequence[Report]], list[object]]:
    """Return each router's reports of some ticks, and what was to be seen at each of them."""
    seen: list[object] = []
    reports: defaultdict[str, list[Report]] = defaultdict(list)
    for tick in islice(daemon.client.telemetry(), TICKS):
        for report in tick.routers:
            reports[report.vr].append(report)
        seen.append(look())
    return reports, seen


def check_observed(reports: Sequence[Report]) -> None:
    """Check every tick; a late one, or one without CPU, may know no rate and propose no cap."""
    for report in reports:
        assert report.active
        assert report.observing
        assert report.cap is None
    rates = [report.throughput_pps or 0.0 for report in reports]
    assert max(rates) > 1.5 * SETPOINT, "nothing holds it"
    assert any(report.proposed_cap is not None for report in reports), "it is flooded"


def test_a_daemon_killed_three_times_only_observes_until_it_is_told_to_hold(host: Host) -> None:
    user = host.router("user", "user-space", FLOOD)
    host.configure(period_s=PERIOD_S, user=f"{lab_router(user)}\n{CONFIGURED}")
    for _ in range(MOST):
        daemon = host.start()
        assert not daemon.wait_for("user", lambda report: report.cap is not None).observing
        daemon.kill()
    assert user.cgroup is not None
    give_quota(user.cgroup, *OTHERS)
    left = written(host, user)
    observer = host.start()
    reports, seen = watched(observer, partial(written, host, user))
    assert [each for each in seen if each != left] == []
    assert all(report.active and report.observing for report in reports["user"])
    assert any(report.throughput_pps for report in reports["user"])
    assert reports["user"][-1].problem == OBSERVED
    assert "observing" in observer.log
    shown = host.xtc("status")
    assert "only observed: the daemon ended 3 times within 10 minutes" in unwrapped(shown.stdout)
    assert host.xtc("observe", "off").returncode == 0
    observer.wait_for("user", lambda report: report.proposed_cap is None and not report.observing)
    observer.wait_until_held("user", without_problem=True)
    assert quota_of(user.cgroup) != OTHERS
    observer.stop()
    assert cap_of(user) is None
    assert not host.start().report("user").observing, "a clean stop is the end of it"


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_observe_in_a_routers_table_leaves_that_router_alone(host: Host) -> None:
    seen_only, held = (host.router(name, "user-space", FLOOD) for name in ("seen", "held"))
    tables = {one.name: f"{lab_router(one)}\n{CONFIGURED}" for one in (seen_only, held)}
    tables["seen"] += "\nobserve = true"
    host.configure(period_s=PERIOD_S, **tables)
    before = written(host, seen_only)
    daemon = host.start()
    daemon.wait_until_held("held")
    reports, seen = watched(daemon, partial(written, host, seen_only))
    assert [each for each in seen if each != before] == []
    check_observed(reports["seen"])
    assert not any(report.observing for report in reports["held"])
    assert cap_of(held) is not None
    daemon.stop()
    assert written(host, seen_only) == before


@pytest.mark.usefixtures("deadline")
def test_observe_in_the_daemons_table_leaves_every_router_alone(host: Host) -> None:
    routers = [host.router(f"r-{kind}", kind, FLOOD) for kind in ("user-space", "kernel")]
    tables = {one.name: f"{lab_router(one)}\n{CONFIGURED}" for one in routers}
    host.configure(PERIOD_S, "observe = true", **tables)
    before = [written(host, one) for one in routers]
    daemon = host.start()
    daemon.wait_for("r-user-space", lambda report: report.proposed_cap is not None)
    reports, seen = watched(daemon, lambda: [written(host, one) for one in routers])
    assert [each for each in seen if each != before] == []
    for one in routers:
        check_observed(reports[one.name])
        assert reports[one.name][-1].problem == "only observed: daemon.observe is set"
    refused = host.xtc("limit", "r-kernel", "--rate", "1kpps")
    assert refused.returncode == 1
    assert "only observed" in refused.stderr
    daemon.stop()
    assert [written(host, one) for one in routers] == before
