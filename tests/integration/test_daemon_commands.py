"""What operators type, against a running daemon and real packets."""

import json
import sys
import time

import pytest
from conftest import PACED, Host, received

from lab.router import Router
from xtc.wire import Report

pytestmark = pytest.mark.root

FIELDS = set(Report.__struct_fields__)


def test_a_limit_reduces_what_arrives_at_the_router_until_it_is_lifted(host: Host) -> None:
    router = host.lab.add_router("user", "user-space")
    near, far = router.ports
    host.run(sys.executable, "-c", PACED, near.host_address, far.nowhere_address)
    host.configure(period_s=0.25)
    daemon = host.start()
    daemon.wait_for("user", lambda report: bool(report.interfaces))
    assert arriving(router) == pytest.approx(20e3, rel=0.1)
    for undo in (["limit", "user", "--rate", "none"], ["release", "user"]):
        done = host.xtc("limit", "user", "--rate", "5kpps", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[0]["limit_pps"] == 5000
        assert arriving(router) == pytest.approx(5e3, rel=0.1)
        assert host.xtc(*undo).returncode == 0
        assert arriving(router) == pytest.approx(20e3, rel=0.1)
        assert daemon.report("user").limit_pps is None


def arriving(router: Router) -> float:
    """Return what the router itself receives from the source, in packets/s."""
    start, before = time.monotonic(), received(router.netns, router.inner_interfaces[0])
    time.sleep(0.7)
    after = received(router.netns, router.inner_interfaces[0])
    return (after - before) / (time.monotonic() - start)


def test_status_and_top_print_every_field_of_the_reports(host: Host) -> None:
    host.router("user", "user-space", 20e3)
    host.configure(period_s=0.25)
    daemon = host.start()
    daemon.hold(user=10e3)
    daemon.wait_until_held("user")
    (report,) = json.loads(host.xtc("status", "--json").stdout)
    assert set(report) == FIELDS
    assert (report["vr"], report["mode"], report["active"]) == ("user", "closed_loop", True)
    top = host.xtc("top", "--ticks", "2", "--json")
    assert top.returncode == 0, top.stderr
    first, second = (json.loads(line) for line in top.stdout.splitlines())
    assert second["tick"] == first["tick"] + 1
    assert set(second["routers"][0]) == FIELDS
    assert second["routers"][0]["throughput_pps"] == pytest.approx(10e3, rel=0.5)
