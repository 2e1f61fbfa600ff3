"""The real daemon holds a real router at a bit rate, whatever the size of its frames."""

import pytest
from conftest import Daemon, Host, switches_of
from support.holding import watch
from support.weights import make_punctual

from xtc.wire import Activate, Report, Retune

pytestmark = pytest.mark.root

SETTLING, WATCHED = 3, 10
"""Of the daemon's ticks."""
MOST = 0.05
LARGE = 500
"""Bytes of data, which make a frame of 542; the lab's own are of 64."""
SETPOINT, LOWER = 40e6, 15e6
"""bits/s"""


@pytest.mark.usefixtures("deadline")
def test_a_bit_rate_is_held_with_frames_of_two_sizes(host: Host) -> None:
    router = host.router("kern", "kernel", 60e3)
    large = router.flood(20e3, LARGE)
    make_punctual(large.pid)
    before = switches_of(router)
    host.configure()
    daemon = host.start()
    daemon.ask(Activate("kern", setpoint_bps=SETPOINT))
    mixed = check_held(host, daemon, SETPOINT)
    large.set_rate(0)
    daemon.ask(Retune("kern", setpoint_bps=LOWER))
    small = check_held(host, daemon, LOWER)
    assert frame_bytes(small) == pytest.approx(64, abs=2)
    assert frame_bytes(mixed) > 1.5 * frame_bytes(small)
    daemon.stop()
    assert switches_of(router) == before


def check_held(host: Host, daemon: Daemon, setpoint: float) -> Report:
    """Judge by what the kernel counted, and return a report that knows the router's rates."""
    daemon.wait_until_held("kern")
    watch(daemon.runtime, SETTLING)
    host.check_held(daemon, WATCHED, MOST, {"kern": setpoint}, in_bits=True)
    return daemon.wait_for("kern", lambda report: report.throughput_bps is not None)


def frame_bytes(report: Report) -> float:
    """Return the mean size of the frames that a router forwarded."""
    assert report.throughput_bps is not None
    assert report.throughput_pps
    return report.throughput_bps / 8 / report.throughput_pps
