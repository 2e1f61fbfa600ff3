"""What a daemon's limit drops before a router is reported to the policer all the same."""

import asyncio
import sys
import time
from pathlib import Path

import pytest
from conftest import PACED, received
from conftest import Host as LabHost
from link_rig import listening

from lab.router import Router
from policer.hosts import Host
from xtc.kernel.namespaces import in_namespace
from xtc.meter import parse
from xtc.server import REQUESTS, TELEMETRY
from xtc.wire import Limit

FLOOD, LIMIT = 20e3, 5e3


@pytest.mark.root
def test_a_limit_drops_a_flood_that_is_still_reported_until_it_ends(host: LabHost) -> None:
    """The kernel does not count at the interface what a limit drops; the daemon does."""
    router = host.lab.add_router("user", "user-space")
    near_port, far_port = router.ports
    host.run(sys.executable, "-c", PACED, near_port.host_address, far_port.nowhere_address)
    host.configure(period_s=0.25)
    host.start()
    run = host.folder / "run"
    entry = Host("h", f"ipc://{run / REQUESTS}", f"ipc://{run / TELEMETRY}", 100e3)

    async def story() -> None:
        async with listening(entry) as one:
            await one.until(lambda: one.heard and about(one.report("user").offered_pps, FLOOD))
            limit = Limit("user", LIMIT, ttl_s=5.0)
            assert await one.link.send([limit]) == (None,)
            await one.until(lambda: one.report("user").limit_pps == LIMIT)
            await asyncio.sleep(1.0)
            ticks = len(one.heard)
            arrived, counted = await asyncio.to_thread(rates, host, router, 1.5)
            offered = [tick.routers[0].offered_pps for tick in one.heard[ticks:]]
            assert arrived == pytest.approx(LIMIT, rel=0.1)
            assert counted == pytest.approx(LIMIT, rel=0.1), "the interface counts what it dropped"
            known = [rate for rate in offered if rate is not None]
            assert len(known) == len(offered) >= 4
            assert min(known) > 2 * LIMIT
            assert sum(known) / len(known) == pytest.approx(FLOOD, rel=0.2)
            await one.until(lambda: one.report("user").limit_pps is None)
            arrived, _ = await asyncio.to_thread(rates, host, router, 0.7)
            assert arrived == pytest.approx(FLOOD, rel=0.3)

    asyncio.run(story())


def about(rate: float | None, expected: float) -> bool:
    return rate is not None and abs(rate / expected - 1) < 0.2


def rates(host: LabHost, router: Router, seconds: float) -> tuple[float, float]:
    """Return what arrives at a router, and what the host's end of that link counts as offered."""
    start = time.monotonic()
    before = counts(host, router)
    time.sleep(seconds)
    after = counts(host, router)
    elapsed = time.monotonic() - start
    arrived, counted = ((b - a) / elapsed for a, b in zip(before, after, strict=True))
    return arrived, counted


def counts(host: LabHost, router: Router) -> tuple[int, int]:
    raw = in_namespace(host.lab.dom0_netns, Path("/proc/thread-self/net/dev").read_bytes)
    found = parse(raw)[router.host_interfaces[0]]
    arrived = received(router.netns, router.inner_interfaces[0])
    return arrived, found.tx_packets + found.tx_dropped
