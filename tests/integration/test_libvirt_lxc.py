"""Real containers under a real libvirtd, which dies, hangs, and restarts them under the daemon."""

import json
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Daemon, Host, near_setpoint, quota_of
from conftest import cap_of as cap_of_group
from libvirt_host import LibvirtHost, cap_of, group, libvirt_on

from xtc.instance import Finding, Mode
from xtc.wire import Report, Status

pytestmark = pytest.mark.root

FROZEN_S = 11.0
"""Longer than keepalive takes to end a connection."""
AGAIN_S = 10.0
"""Within this a router is held again once libvirt answers again."""


@pytest.fixture
def libvirt(host: Host, tmp_path: Path) -> Iterator[LibvirtHost]:
    with libvirt_on(host, tmp_path) as libvirt_host:
        yield libvirt_host


def test_a_killed_libvirtd_leaves_the_caps_and_the_loop_finds_the_next(
    libvirt: LibvirtHost,
) -> None:
    silver = libvirt.router("silver", "lxc")
    daemon = libvirt.held(0.5, silver=16e3)
    libvirt.libvirtd.kill(signal.SIGKILL)
    cap = cap_of(silver)
    lost = daemon.wait_for("silver", lambda report: bool(report.problem))
    assert lost.mode is not Mode.RELEASED
    time.sleep(1)
    assert cap is not None
    assert cap_of(silver) == pytest.approx(cap, rel=0.3)
    libvirt.libvirtd.start()
    daemon.wait_for("silver", held_without_problem, AGAIN_S)
    silver.set_quota(None)
    daemon.wait_for("silver", lambda report: (report.cap or 9) < 0.5, AGAIN_S)
    daemon.stop()
    assert cap_of(silver) is None


def test_a_frozen_libvirtd_delays_no_tick_and_no_other_router(libvirt: LibvirtHost) -> None:
    libvirt.router("silver", "lxc")
    plain = libvirt.host.router("plain", "user-space", 60e3)
    daemon = libvirt.held(silver=16e3, plain=20e3)
    stream = daemon.client.telemetry()
    ticks = [next(stream)]
    libvirt.libvirtd.freeze()
    start, forwarded = time.monotonic(), []
    while time.monotonic() - start < FROZEN_S:
        ticks.append(next(stream))
        assert answer_time(daemon) < 1.0
        forwarded += [r.throughput_pps for r in ticks[-1].routers if r.vr == "plain"]
    assert [two.tick - one.tick for one, two in pairwise(ticks)] == [1] * (len(ticks) - 1)
    assert [two.at - one.at for one, two in pairwise(ticks)] == [
        pytest.approx(1, abs=0.3) for _ in ticks[1:]
    ]
    assert sum(forwarded) / len(forwarded) == pytest.approx(20e3, rel=0.08)
    assert cap_of_group(plain) is not None
    libvirt.libvirtd.thaw()
    daemon.wait_for("silver", held_without_problem, AGAIN_S)
    daemon.stop()


def test_a_router_that_is_destroyed_and_made_again_is_found_and_held(
    libvirt: LibvirtHost,
) -> None:
    silver = libvirt.router("silver", "lxc")
    daemon = libvirt.held(0.5, silver=16e3)
    before = daemon.report("silver").interfaces
    silver.destroy()
    gone = daemon.wait_for("silver", lambda report: report.finding is Finding.GONE)
    assert gone.cap is None
    silver.start()
    again = daemon.wait_for("silver", held_without_problem, AGAIN_S)
    assert set(again.interfaces) == set(silver.host_interfaces)
    assert not set(again.interfaces) & set(before)
    daemon.stop()
    assert cap_of(silver) is None


def test_a_foreign_change_is_noticed_and_repeated_ones_are_yielded_to(
    libvirt: LibvirtHost,
) -> None:
    silver = libvirt.router("silver", "lxc")
    daemon = libvirt.held(0.5, silver=16e3)
    silver.set_quota(0.9)
    daemon.wait_for("silver", lambda report: report.cap is not None and report.cap < 0.5)
    report = daemon.report("silver")
    for _ in range(20):
        silver.set_quota(0.9)
        time.sleep(0.5)
        if (report := daemon.report("silver")).finding is Finding.FOREIGN:
            break
    assert (report.mode, report.finding) == (Mode.MANUAL, Finding.FOREIGN)
    time.sleep(2)
    assert quota_of(group(silver)) == (90_000, 100_000)


def test_a_killed_daemons_caps_are_adopted_and_released_to_what_stood_before(
    libvirt: LibvirtHost,
) -> None:
    silver, zinc = libvirt.router("silver", "lxc"), libvirt.router("zinc", "lxc")
    zinc.set_quota(0.8, 50_000)
    first = libvirt.held(0.5, silver=16e3, zinc=8e3)
    first.kill()
    left = [cap_of(silver), cap_of(zinc)]
    assert None not in left
    second = libvirt.host.start()
    assert [cap_of(silver), cap_of(zinc)] == [pytest.approx(cap, rel=0.3) for cap in left]
    second.wait_until_held("silver", "zinc")
    second.stop()
    assert cap_of(silver) is None
    assert quota_of(group(zinc)) == (40_000, 50_000)


def test_discover_lists_containers_and_says_which_no_quota_can_cap(libvirt: LibvirtHost) -> None:
    silver = libvirt.router("silver", "lxc")
    kern = libvirt.router("kern", "lxc-kernel")
    stopped = libvirt.router("stopped", "lxc")
    stopped.destroy()
    done = libvirt.host.xtc("discover", "--json", "--uri", silver.uri)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    domains = {domain["domain"]: domain for domain in found["domains"]}
    assert set(domains) == {"silver", "kern", "stopped"}
    assert domains["silver"]["controllable"]
    assert domains["silver"]["interfaces"] == silver.host_interfaces
    assert domains["silver"]["reasons"] == []
    assert "no quota caps" in " ".join(domains["kern"]["reasons"])
    assert kern.host_interfaces == domains["kern"]["interfaces"]
    assert not domains["stopped"]["controllable"]
    assert libvirt.libvirtd.virsh("lxc", "list", "--state-running", "--name").split() == [
        "silver",
        "kern",
    ]


def held_without_problem(report: Report) -> bool:
    return near_setpoint(report) and not report.problem


def answer_time(daemon: Daemon) -> float:
    start = time.monotonic()
    daemon.client.call(Status())
    return time.monotonic() - start
