"""A router that polls (DPDK's testpmd): held under floods, and its cap stands while it is idle."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from statistics import fmean
from typing import Final

import pytest
from conftest import Host
from support.holding import throughputs
from support.inconclusive import inconclusive
from support.waiting import eventually
from support.weights import make_punctual

from benchmarks.rig import lab_router
from lab.programs.processes import Place
from lab.routers.router import Router
from lab.system import cgroups
from xtc.wire import Report, Telemetry

TESTPMD: Final = shutil.which("dpdk-testpmd")
pytestmark = [
    pytest.mark.root,
    pytest.mark.external,
    pytest.mark.skipif(TESTPMD is None, reason="dpdk-testpmd is missing: apt install dpdk-dev"),
]

SETPOINT, FLOOD = 10e3, 60e3
PERIOD_S: Final = 0.5
IDLE_TICKS, FLOODED_TICKS = 8, 10
"""Of the daemon's."""
MOST: Final = 0.15


@contextmanager
def polling(router: Router) -> Iterator[None]:
    """Let testpmd forward in the place of the lab's own program."""
    assert TESTPMD is not None
    assert router.cgroup is not None
    for pid in cgroups.processes(router.cgroup):
        os.kill(pid, signal.SIGKILL)
    group = router.cgroup
    eventually(lambda: not cgroups.processes(group))
    eal = ["--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry", "-l", "0,1"]
    ports = [
        f"--vdev=net_af_packet{n},iface={name}" for n, name in enumerate(router.inner_interfaces)
    ]
    forward = ["--forward-mode=io", "--auto-start", "--nb-cores=1", "--total-num-mbufs=8192"]
    command = Place(router.netns, str(group)).command([TESTPMD, *eal, *ports, "--", *forward])
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            wait_until_forwarding(process)
            yield
        finally:
            process.kill()


def wait_until_forwarding(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "Press enter to exit" in line or "packet forwarding" in line:
            return
    pytest.fail("".join(said))


@pytest.mark.parametrize("shield", [True, False], ids=["shielded", "by its cap alone"])
def test_a_polling_router_is_held_and_does_not_wind_up_while_it_is_idle(
    host: Host, *, shield: bool
) -> None:
    router = host.lab.add_router("polls", "user-space")
    flood = router.flood(FLOOD)
    make_punctual(flood.pid)
    table = lab_router(router) + f"\nshield = {str(shield).lower()}"
    host.configure(period_s=PERIOD_S, polls=table)
    daemon = host.start()
    with polling(router):
        daemon.hold(polls=SETPOINT)
        daemon.wait_until_held("polls")
        stream = daemon.client.telemetry()
        held = reports(stream, FLOODED_TICKS)
        check_held(held)
        assert all((report.shield_pps is not None) is shield for report in held)
        for _ in range(2):
            flood.set_rate(0.0)
            pass_change(stream)
            idle = reports(stream, IDLE_TICKS)
            assert not any(report.binding for report in idle)
            assert largest(idle) <= 1.5 * largest(held)
            flood.set_rate(FLOOD)
            pass_change(stream)
            held = reports(stream, FLOODED_TICKS)
            check_held(held)
    daemon.stop()


def pass_change(stream: Iterator[Telemetry]) -> None:
    """Pass over the tick into which a change of the flood falls, and the next.

    Ticks from before it may have queued up while this program had no CPU.
    """
    changed = time.monotonic()
    next(tick for tick in stream if tick.at >= changed + PERIOD_S)


def reports(stream: Iterator[Telemetry], ticks: int) -> list[Report]:
    return [tick.routers[0] for tick in islice(stream, ticks)]


def largest(seen: Sequence[Report]) -> float:
    return max(report.cap or float("inf") for report in seen)


def check_held(seen: Sequence[Report]) -> None:
    """Check the mean from above; a machine short of CPU may keep it below.

    Of a tick that comes too early or too late, the daemon knows no rate.
    """
    known = [report for report in seen if report.throughput_pps is not None]
    if 2 * len(known) < len(seen):
        inconclusive(f"no rate is known of most of {len(seen)} ticks")
    mean = fmean(throughputs(known))
    assert mean <= (1 + MOST) * SETPOINT
    used, caps = ([one.used or 0.0 for one in known], [one.cap or 1.0 for one in known])
    got = fmean(used) / fmean(caps)
    assert mean >= (1 - MOST) * min(1.0, got) * SETPOINT
