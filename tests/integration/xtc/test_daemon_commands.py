"""What operators type, against a running daemon and real packets."""

import json
from functools import partial
from typing import Any

import pytest
from conftest import Host, received
from support.limits import check_limited, check_unlimited, passing
from support.waiting import eventually

from xtc.wire import Report

pytestmark = pytest.mark.root

WATCHED_S = 0.7
FIELDS = set(Report.__struct_fields__)


def test_a_limit_reduces_what_arrives_at_the_router_until_it_is_lifted(host: Host) -> None:
    router, sender = host.paced_router("user", 20e3)
    host.configure(period_s=0.25)
    daemon = host.start()
    daemon.wait_for("user", lambda report: bool(report.interfaces))
    arrived = partial(received, router.netns, router.inner_interfaces[0])
    check_unlimited(passing(arrived, sender, WATCHED_S))
    for undo in (["limit", "user", "--rate", "none"], ["release", "user"]):
        done = host.xtc("limit", "user", "--rate", "5kpps", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[0]["limit_pps"] == 5000
        check_limited(passing(arrived, sender, WATCHED_S), 5e3)
        assert host.xtc(*undo).returncode == 0
        check_unlimited(passing(arrived, sender, WATCHED_S))
        assert daemon.report("user").limit_pps is None


def test_status_and_top_print_every_field_of_the_reports(host: Host) -> None:
    host.router("user", "user-space", 20e3)
    host.configure(period_s=0.25)
    daemon = host.start()
    daemon.hold(user=10e3)
    daemon.wait_until_held("user")
    report = eventually(partial(closed_loop_status, host))
    assert (report["vr"], report["active"]) == ("user", True)
    top = host.xtc("top", "--ticks", "2", "--json")
    assert top.returncode == 0, top.stderr
    first, second = (json.loads(line) for line in top.stdout.splitlines())
    assert second["tick"] == first["tick"] + 1
    assert set(second["routers"][0]) == FIELDS
    assert (second["routers"][0]["vr"], second["routers"][0]["setpoint_pps"]) == ("user", 10e3)


def closed_loop_status(host: Host) -> dict[str, Any] | None:
    """Return the printed report of the only router; None in a tick in which its loop is blind."""
    (report,) = json.loads(host.xtc("status", "--json").stdout)
    assert set(report) == FIELDS
    return report if report["mode"] == "closed_loop" else None
