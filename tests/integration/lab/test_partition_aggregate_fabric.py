"""Partition-aggregate over a real fabric: a starved port loses and TCP waits, an ample one not."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.inconclusive import inconclusive
from support.stalls import Stalls
from support.waiting import eventually

from lab.errors import ProgramError
from lab.fabric.fabric import Fabric
from lab.programs.reporter import Reporter
from lab.traffic import roles
from lab.traffic.counts import Queried
from lab.traffic.partition import BACKGROUND_PORT, Member, Tiers, aggregate, send_background

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.timeout(240),
]
WORKERS = 8
BOTTLENECK = "200Mbps"
FRAME = 1_514
SIZE = 24_000
LEAST_TIMEOUT_S = 0.2
"""Of TCP in Linux."""


def members(fabric: Fabric) -> list[Member]:
    return [Member(fabric.place(host), host.address) for host in fabric.senders]


def times(running: Reporter[Queried], queries: int, within: float = 90.0) -> list[float]:
    """Return the completion times of all queries, in seconds."""
    took: list[float] = []
    deadline = time.monotonic() + within
    while len(took) < queries:
        assert time.monotonic() < deadline, f"{len(took)} of {queries} are complete"
        took += [each / 1e9 for each in running.counts().query_ns]
        time.sleep(0.02)
    return took


@pytest.fixture(scope="module")
def ample() -> Iterator[Fabric]:
    """Room for all answers at once, twice."""
    with Fabric(f"pa{os.getpid()}") as fabric:
        fabric.incast(WORKERS, BOTTLENECK, 2 * WORKERS * (SIZE + 20 * FRAME))
        yield fabric


def query(fabric: Fabric, queries: int) -> list[float]:
    top = fabric.place(fabric.receivers[0])
    with (
        Tiers(members(fabric)) as tiers,
        aggregate(top, tiers.servers, size=SIZE, queries=queries) as running,
    ):
        return times(running, queries)


def test_an_ample_port_loses_nothing(ample: Fabric, stalls: Stalls) -> None:
    took = query(ample, 50)
    assert len(took) == 50
    assert ample.drops() == 0
    least = WORKERS * SIZE * 8 / 200e6
    assert min(took) > least * 0.9, "the link has its rate"
    timeouts = ample.timeouts()
    if timeouts and stalls.longest() >= LEAST_TIMEOUT_S:
        inconclusive(f"a CPU stood still for {stalls.longest():.2g} s, which may time TCP out")
    assert timeouts == 0


def test_a_starved_port_drops_and_tcp_waits_for_timeouts() -> None:
    with Fabric(f"ps{os.getpid()}") as fabric:
        fabric.incast(WORKERS, BOTTLENECK, 4 * FRAME)
        took = query(fabric, 20)
        assert len(took) == 20
        assert fabric.drops() > 20
        assert fabric.retransmitted() > 20
        assert fabric.timeouts() + fabric.loss_probes() > 0
        assert max(took) > 0.15, "TCP waits 200 ms at least"


def test_three_tiers_ask_through_mid_level_aggregators(ample: Fabric) -> None:
    others, top = members(ample), ample.place(ample.receivers[0])
    with (
        Tiers(others[2:], others[:2]) as tiers,
        aggregate(top, tiers.servers, size=2_000, queries=10, port=tiers.port) as running,
    ):
        assert len(times(running, 10)) == 10
        assert running.counts().bytes == 10 * 2 * 2_000, "two answers to each query"


def test_queries_at_a_rate_wait_for_their_instant(ample: Fabric) -> None:
    top, begun = ample.place(ample.receivers[0]), time.monotonic()
    with (
        Tiers(members(ample)) as tiers,
        aggregate(top, tiers.servers, size=100, queries=20, rate=40.0, seed=4) as running,
    ):
        took = times(running, 20)
    assert len(took) == 20
    assert time.monotonic() - begun > 0.25


def test_background_flows_arrive_at_random_hosts(ample: Fabric) -> None:
    others = members(ample)[:3]
    with ExitStack() as stack:
        sinks = [
            stack.enter_context(roles.sink_streams(each.place, port=BACKGROUND_PORT))
            for each in others[1:]
        ]
        to = [each.address for each in others[1:]]
        source = stack.enter_context(send_background(others[0].place, to, gap_s=0.01, seed=1))
        assert eventually(lambda: all(sink.counts().total_bytes > 0 for sink in sinks))
        counts = source.counts()
        assert counts.flows > 1
        assert counts.failed == 0


def test_a_worker_that_dies_ends_the_aggregator_with_its_reason(ample: Fabric) -> None:
    worker = members(ample)[0]
    with Tiers([worker]) as tiers:
        running = aggregate(
            ample.place(ample.receivers[0]), tiers.servers, size=10, queries=10**9, rate=100.0
        )
        times(running, 1)
    with pytest.raises(ProgramError, match="a server has gone"):
        times(running, 10**9)
    running.stop()


def test_without_workers_an_aggregator_does_not_start(ample: Fabric) -> None:
    with pytest.raises(ProgramError, match="refused"):
        aggregate(ample.place(ample.receivers[0]), ["127.0.0.1"], size=10, queries=1, port=9)
