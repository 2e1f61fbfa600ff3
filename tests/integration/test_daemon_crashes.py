"""What daemons leave behind when they are killed, and what the next one makes of it."""

import json
import signal
import time
from itertools import pairwise

import pytest
from conftest import Daemon, Host, cap_of, give_quota, near_setpoint, quota_of, switches_of

from xtc.wire import Status, Telemetry

pytestmark = pytest.mark.root


@pytest.mark.usefixtures("deadline")
def test_a_killed_daemons_caps_are_adopted_by_the_next(host: Host) -> None:
    user = host.router("user", "user-space", 60e3)
    kernel = host.router("kern", "kernel", 60e3)
    before = switches_of(kernel)
    assert user.cgroup is not None
    give_quota(user.cgroup, 80_000, 100_000)
    host.configure()
    first = held(host, user=20e3, kern=20e3)
    first.kill()
    left = [cap_of(user), cap_of(kernel)]
    assert None not in left
    second = host.start()
    assert [cap_of(user), cap_of(kernel)] == [pytest.approx(cap, rel=0.3) for cap in left]
    for vr in ("user", "kern"):
        report = second.wait_for(vr, lambda report: report.throughput_pps is not None)
        assert report.active
        assert report.setpoint_pps == 20e3
        assert report.throughput_pps == pytest.approx(20e3, rel=0.5)
    second.stop()
    assert quota_of(user.cgroup) == (80_000, 100_000)
    assert cap_of(kernel) is None
    assert switches_of(kernel) == before


@pytest.mark.usefixtures("deadline")
def test_release_all_needs_no_daemon(host: Host) -> None:
    user = host.router("user", "user-space", 60e3)
    kernel = host.router("kern", "kernel", 60e3)
    before = switches_of(kernel)
    host.configure(period_s=0.25)
    held(host, user=20e3, kern=20e3).kill()
    assert cap_of(user) is not None
    done = host.xtc("release", "--all", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"user": "released", "kern": "released"}
    assert [cap_of(user), cap_of(kernel)] == [None, None]
    assert switches_of(kernel) == before
    assert json.loads(host.xtc("release", "--all", "--json").stdout) == {}


def test_a_second_daemon_on_the_same_state_is_refused(host: Host) -> None:
    host.configure()
    first = host.start()
    second = host.launch()
    assert second.wait(10) == 2
    assert f"{host.state} is held by a running xtc daemon" in (host.folder / "log").read_text()
    assert first.client.call(Status()) == ()


def test_a_daemon_that_was_stopped_for_seconds_goes_on_as_if_nothing_had_been(host: Host) -> None:
    host.router("user", "user-space", 60e3)
    host.configure()
    daemon = held(host, user=20e3)
    stream = daemon.client.telemetry()
    before = next(stream)
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    daemon.process.send_signal(signal.SIGCONT)
    after = [next(stream) for _ in range(4)]
    assert [tick.tick for tick in after] == [before.tick + n for n in range(1, 5)]
    late, *regular = after
    assert late.at - before.at > 3
    assert late.routers[0].throughput_pps is None
    gaps = [two.at - one.at for one, two in pairwise(regular)]
    assert gaps == [pytest.approx(1, abs=0.2)] * len(gaps)
    # nothing was learnt from the seconds away: the cap is what it was when they began
    assert caps(regular[0]) == caps(late)
    assert caps(late) == [pytest.approx(caps(before)[0], rel=0.5)]
    daemon.wait_for("user", near_setpoint)


def caps(*ticks: Telemetry) -> list[float | None]:
    return [tick.routers[0].cap for tick in ticks]


def held(host: Host, **setpoints: float) -> Daemon:
    """Return a daemon that holds routers."""
    daemon = host.start()
    daemon.hold(**setpoints)
    daemon.wait_until_held(*setpoints)
    return daemon
