"""The strategy `gcc` on real packets: hosts share what a machine without a coordinator leaves."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.waiting import eventually

from benchmarks.xco.foreign import settings
from benchmarks.xco.rig import XcoRig, rig
from lab.fabric.fabric import Fabric
from lab.fabric.plan import FabricHost
from lab.traffic import roles
from xco.protocol.stats import read_statistics

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(180),
]

LINK_BPS = 100_000_000
FOREIGN_BPS = 40_000_000


@pytest.fixture
def shared() -> Iterator[tuple[XcoRig, FabricHost]]:
    """Two coordinated senders, a receiver, and a sender that is in no topology."""
    with Fabric("xcogcc") as fabric:
        fabric.incast(3, LINK_BPS)
        foreign = fabric.senders[-1]
        with rig(fabric, settings(), [foreign]) as xco:
            yield xco.go("gcc"), foreign


def flood(xco: XcoRig, host: FabricHost, rate_bps: int | None = None) -> ExitStack:
    """Let a host send datagrams to the receiver until this is closed."""
    fabric, stack = xco.fabric, ExitStack()
    to, size = fabric.receivers[0].address, roles.DATAGRAM_BYTES
    place = fabric.place(host)
    stack.enter_context(roles.send_messages(place, to, size=size, rate_bps=rate_bps))
    return stack


def granted(xco: XcoRig) -> float:
    """Return what the hosts may send together, as a share of the receiver's link."""
    rows = read_statistics(xco.controller_config().stats_file).rows
    return sum(row["granted_bps"] for row in rows) / LINK_BPS


def test_hosts_share_what_others_leave_and_the_whole_again(
    shared: tuple[XcoRig, FabricHost],
) -> None:
    xco, foreign = shared
    with ExitStack() as stack:
        stack.enter_context(roles.sink_messages(xco.fabric.place(xco.fabric.receivers[0])))
        for host in xco.fabric.senders[:2]:
            stack.enter_context(flood(xco, host))
        eventually(lambda: granted(xco) > 0.9)
        with flood(xco, foreign, FOREIGN_BPS):
            # less than the foreign rate has been seen where this machine held its sender up
            eventually(lambda: 0.5 < granted(xco) < 0.75)
        eventually(lambda: granted(xco) > 0.9)
    assert xco.controller_counters()["ports_known"] >= 1
    assert xco.controller_counters()["ports_impossible"] == 0
