"""What daemons leave behind when they are killed, and what the next one makes of it."""

import json
import signal
import time
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice, pairwise
from typing import Final

import pytest
from conftest import Daemon, Host, cap_of, give_quota, quota_of, received, switches_of
from support.holding import PATIENCE_S, stream
from support.rates import between, read
from support.stalls import Stalls

from xtc.modes import Mode
from xtc.wire import Activate, Status, Telemetry

pytestmark = pytest.mark.root

PERIOD_S: Final = 1.0
PAUSE_S: Final = 4.0
LONG_S: Final = 4.0
"""A period that has not ended yet when a daemon answers, so that its law has changed nothing."""
STARVED_S: Final = 30.0
"""Twice the time after which a router whose meter is blind is released at a period of 0.5 s."""


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
    host.configure(period_s=LONG_S)
    second = host.start()
    assert [cap_of(user), cap_of(kernel)] == left
    first_tick = next(second.client.telemetry())
    adopted = {report.vr: report for report in first_tick.routers}
    for vr in ("user", "kern"):
        assert adopted[vr].active
        assert adopted[vr].setpoint_pps == 20e3
        assert adopted[vr].cap is not None
    second.wait_until_held("user", "kern")
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
    assert second.wait(PATIENCE_S) == 2
    assert f"{host.state} is held by a running xtc daemon" in (host.folder / "log").read_text()
    assert first.client.call(Status()) == ()


def test_a_daemon_that_was_stopped_for_seconds_goes_on_as_if_nothing_had_been(
    host: Host, stalls: Stalls
) -> None:
    user = host.router("user", "user-space", 60e3)
    host.configure(period_s=PERIOD_S)
    daemon = held(host, user=20e3)
    ticks = stream(daemon.runtime)
    start = next(ticks)
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(PAUSE_S)
    in_force = cap_of(user)
    daemon.process.send_signal(signal.SIGCONT)
    before, late = around_pause(chain([start], ticks))
    regular = list(islice(ticks, 3))
    assert [tick.tick for tick in (late, *regular)] == [before.tick + n for n in range(1, 5)]
    assert late.routers[0].throughput_pps is None
    # The one after a late tick may be due at once; each further one is due a period later.
    for periods, tick in enumerate(regular):
        assert tick.at - late.at >= periods * PERIOD_S, "no tick is made up for"
    for one, two in pairwise(regular):
        stalls.check_within(one.at, two.at, 1.2)
    # nothing was learnt from the seconds away: the cap is what it was when they began
    assert caps(regular[0]) == caps(late)
    assert caps(late) == [pytest.approx(in_force, rel=0.01)]
    daemon.wait_until_held("user")


def test_a_daemon_without_cpu_for_thirty_seconds_releases_only_what_ended_meanwhile(
    host: Host,
) -> None:
    stays, ends = (host.router(name, "user-space", 20e3) for name in ("stays", "ends"))
    host.configure(period_s=0.5)
    daemon = held(host, stays=5e3, ends=5e3)
    daemon.ask(Activate("ends", 5e3, ttl_s=STARVED_S / 2))
    daemon.process.send_signal(signal.SIGSTOP)
    left = [cap_of(stays), cap_of(ends)]
    before = read(partial(received, host.lab.dom0_netns, *stays.host_interfaces))
    time.sleep(STARVED_S)
    after = read(partial(received, host.lab.dom0_netns, *stays.host_interfaces))
    assert [cap_of(stays), cap_of(ends)] == left
    assert None not in left
    assert between(before, after).least <= 1.1 * 5e3, "its shield holds it meanwhile"
    ticks = daemon.client.telemetry()
    daemon.process.send_signal(signal.SIGCONT)
    seen = [report for tick in islice(ticks, 8) for report in tick.routers if report.vr == "stays"]
    assert None not in [report.cap for report in seen]
    assert {report.mode for report in seen} <= {Mode.CLOSED_LOOP, Mode.HOLD}
    daemon.wait_for("ends", lambda report: report.cap is None and cap_of(ends) is None)
    daemon.wait_until_held("stays")
    daemon.stop()


def around_pause(ticks: Iterable[Telemetry]) -> tuple[Telemetry, Telemetry]:
    """Return the ticks before and after a pause; earlier ones may have queued up."""
    return next((one, two) for one, two in pairwise(ticks) if two.at - one.at > PAUSE_S - PERIOD_S)


def caps(*ticks: Telemetry) -> list[float | None]:
    return [tick.routers[0].cap for tick in ticks]


def held(host: Host, **setpoints: float) -> Daemon:
    """Return a daemon that holds routers."""
    daemon = host.start()
    daemon.hold(**setpoints)
    daemon.wait_until_held(*setpoints)
    return daemon
