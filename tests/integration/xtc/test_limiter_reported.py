"""What a daemon's limit drops before a router is reported to the policer all the same."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from conftest import Host as LabHost
from conftest import received
from link_rig import listening
from support.limits import Passed, check_limited, check_unlimited, passing
from support.paced import Paced
from support.rates import Rate, between, read

from lab.routers.router import Router
from policer.contracts.host import Host
from xtc.daemon.server import REQUESTS, TELEMETRY
from xtc.kernel.namespaces import in_namespace
from xtc.measure.meter import parse
from xtc.wire import Limit

FLOOD, LIMIT = 20e3, 5e3
WATCHED_S = 1.5
TICKS = 4
"""So many of them are judged."""


@pytest.mark.root
def test_a_limit_drops_a_flood_that_is_still_reported_until_it_ends(host: LabHost) -> None:
    """The kernel does not count at the interface what a limit drops; the daemon does."""
    router, sender = host.paced_router("user", FLOOD)
    host.configure(period_s=0.25)
    host.start()
    run = host.folder / "run"
    entry = Host("h", f"ipc://{run / REQUESTS}", f"ipc://{run / TELEMETRY}", 100e3)

    async def story() -> None:
        async with listening(entry) as one:
            await one.until(lambda: one.heard and about(one.report("user").offered_pps, FLOOD))
            limit = Limit("user", LIMIT, ttl_s=15.0)
            assert await one.link.send([limit]) == (None,)
            await one.until(lambda: one.report("user").limit_pps == LIMIT)
            await asyncio.sleep(1.0)
            ticks = len(one.heard)
            seen, counted = await asyncio.to_thread(both_ends, host, router, sender)
            await one.until(lambda: len(one.heard) >= ticks + TICKS)
            offered = [tick.routers[0].offered_pps for tick in one.heard[ticks:]]
            check_limited(seen, LIMIT)
            assert counted.least <= seen.arrived.most * 1.1, "the interface counts what it dropped"
            known = [rate for rate in offered if rate is not None]
            assert len(known) == len(offered) >= TICKS
            mean = sum(known) / len(known)
            assert seen.sent.least * 0.8 <= mean <= seen.sent.most * 1.2
            assert mean > 2 * seen.arrived.most, "what the limit drops is offered all the same"
            await one.until(lambda: one.report("user").limit_pps is None)
            arrived = partial(received, router.netns, router.inner_interfaces[0])
            check_unlimited(await asyncio.to_thread(passing, arrived, sender, 0.7))

    asyncio.run(story())


def about(rate: float | None, expected: float) -> bool:
    return rate is not None and abs(rate / expected - 1) < 0.2


def both_ends(host: LabHost, router: Router, sender: Paced) -> tuple[Passed, Rate]:
    """Return what passes to a router, and what the host's end of that link counts as offered."""
    first = read(partial(counted, host, router))
    arrived = partial(received, router.netns, router.inner_interfaces[0])
    seen = passing(arrived, sender, WATCHED_S)
    return seen, between(first, read(partial(counted, host, router)))


def counted(host: LabHost, router: Router) -> int:
    raw = in_namespace(host.lab.dom0_netns, Path("/proc/thread-self/net/dev").read_bytes)
    found = parse(raw)[router.host_interfaces[0]]
    return found.tx_packets + found.tx_dropped
