"""The benchmark's overlay: queries cross two switches and a star, and losses are counted."""

import os
import time
from contextlib import ExitStack

import pytest
from rigs.zovn_switch_rig import build_guest
from rigs.zovn_veth_rig import require_lossless_veth
from support.waiting import PATIENCE_S, eventually

from benchmarks.zovn.overlay import start_datagrams
from benchmarks.zovn.overlay_network import Lost, Overlay
from benchmarks.zovn.overlay_plan import BACKGROUND_CLASS, FOREGROUND_CLASS, Background, Request
from lab.system import namespaces
from lab.traffic import roles
from lab.traffic.partition import Tiers, aggregate

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(240),
]
PREFIX = f"gov{os.getpid()}"
QUERIES, WORKERS = 10, 4


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()
    require_lossless_veth()


def request(
    mode: str,
    queue: int,
    background: Background = "none",
    *,
    hosts: int = 2,
    workers: int = WORKERS,
) -> Request:
    return Request(mode, hosts, workers, 100_000_000, 20e-6, queue, queue, background)


def complete(overlay: Overlay, queries: int = QUERIES) -> int:
    """Ask the workers; return how many queries were complete in time."""
    workers = [overlay.member(each) for each in overlay.containers.workers]
    with Tiers(workers) as tiers:
        answers = aggregate(
            overlay.top, tiers.servers, size=48_000, queries=queries, port=tiers.port
        )
        with answers as running:
            deadline = time.monotonic() + PATIENCE_S
            while (done := running.counts().queries) < queries and time.monotonic() < deadline:
                time.sleep(0.05)
            return done


def test_nothing_is_lost_where_both_networks_are_lossless() -> None:
    """All that is under way fits into the headroom, for as long as a switch may stand still."""
    with Overlay(request("ZZ", 16), PREFIX) as overlay:
        assert complete(overlay) == QUERIES
        lost = overlay.lost()
        hosts = [overlay.star.netns(host) for host in overlay.star.hosts]
        wires = [report.ports[-1] for report in overlay.reports()]
    assert (lost.virtual, lost.physical, lost.otherwise) == (0, 0, 0)
    assert all(wire.kind == "wire" and wire.counters["in"] > 0 for wire in wires)
    assert not set(hosts) & set(namespaces.named(PREFIX))


def test_a_lossy_virtual_network_drops_at_its_queues() -> None:
    with Overlay(request("LL", 4), PREFIX) as overlay:
        eventually(lambda: complete(overlay, 3) and overlay.lost().virtual)
        assert overlay.lost().otherwise == 0


def test_a_lossy_physical_network_drops_what_a_lossless_virtual_one_sends() -> None:
    """Two hosts send to one at the rate of its line, and the star holds one frame for it."""
    with Overlay(request("ZL", 1, hosts=3, workers=3), PREFIX) as overlay, ExitStack() as stack:
        for each in overlay.containers.workers[1:]:
            place, to = overlay.member(each).place, overlay.containers.top.address
            stack.enter_context(
                roles.send_messages(place, to, size=roles.DATAGRAM_BYTES, rate_bps=80_000_000)
            )
        eventually(lambda: overlay.star.counts().ports["h1"].dropped[FOREGROUND_CLASS])
        lost = overlay.lost()
    assert lost.physical > 0
    assert lost.virtual == 0


def test_background_of_its_own_has_another_class_on_the_wire() -> None:
    with Overlay(request("ZZ", 16, "own"), PREFIX) as overlay:
        members = [overlay.member(each) for each in overlay.containers.background]
        with ExitStack() as stack:
            start_datagrams(stack, members, 60_000_000)
            assert complete(overlay) == QUERIES
        ports = overlay.star.counts().ports
        lost = overlay.lost()
    assert all(port.most_bytes[BACKGROUND_CLASS] > 0 for port in ports.values())
    assert lost.virtual == 0


def test_losses_add_up() -> None:
    one, two = Lost(1, 2, 3, 4, 5, 6), Lost(1, 1, 1, 1, 1, 1)
    assert one + two - two == one
