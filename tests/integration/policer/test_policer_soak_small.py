"""The soak in small: bad hosts beside compliant ones, and connections that ask nothing."""

import pytest

from benchmarks.policer.soak import measure
from benchmarks.policer.soak_judged import judged

pytestmark = pytest.mark.timeout(600)


def test_bad_hosts_and_idle_clients_keep_no_compliant_host_from_being_controlled() -> None:
    """How much comes in time is the benchmark's to judge, on a machine with nothing else to do."""
    soak = measure(hosts=20, routers=5, minutes=0.25, connections=150)
    lines = {line.name: line for line in judged(soak)}
    for name in ("controlled", "answers", "bad hosts shown", "no defect"):
        assert lines[name].holds, lines[name].words
    assert len(soak.compliant) == 15
    assert {seen.fault for seen in soak.seen} == {"", *soak.shown}
    assert min(seen.ticks for seen in soak.compliant) > 0
    assert min(seen.orders for seen in soak.compliant) > 0
    assert soak.rounds > 0
    assert soak.reopened >= 0
    assert lines["memory flat"].holds is None
    assert lines["disk bounded"].holds is None
