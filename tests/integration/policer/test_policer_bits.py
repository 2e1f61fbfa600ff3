"""A contract in bits/s, from the store to a real manager: held in bits, contended in packets."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fleet_rig import FleetRig
from support.stores import with_tables

from common.units import PacketsPerSecond
from policer.contracts.contract import Contract
from policer.fleet.live import Fleet
from policer.service.service import Service, ServiceSettings
from policer.store import Store, open_store
from xtc.wire import Report

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

PERIOD_S = 0.25
"""Real seconds of a tick, which is a second of the host's clock."""
SOON_S = 90.0
CEILING = 160e6
SOLD = Contract(guarantee_bps=80e6, ceiling_bps=CEILING, packet_bytes=1000, punish="never")


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="xtc-") as name:
        yield Path(name)


class Host:
    """A simulated host, and what the policer sees of it."""

    def __init__(self, hosts: FleetRig, fleet: Fleet) -> None:
        self._hosts, self._fleet = hosts, fleet

    def send(self, vr: str, pps: float, size: float) -> None:
        """Let packets of a size be sent to a router from now on."""
        rig = self._hosts["h0"].rig

        def change() -> None:
            router = rig.plant.routers[vr]
            router.frame_bytes = size
            router.plant = replace(router.plant, offered=PacketsPerSecond(pps))
            if vr in rig.sent:
                rig.sent[vr] = PacketsPerSecond(pps)

        self._hosts.do(change)

    def report(self, vr: str = "a0") -> Report | None:
        live = self._fleet.get("h0")
        return None if live is None else live.telemetry.routers.get(vr)

    async def until(self, holds: Callable[[Report], bool]) -> Report:
        """Wait until what is reported of the router that was sold bits is so."""
        async with asyncio.timeout(SOON_S):
            while True:
                report = self.report()
                if report is not None and holds(report):
                    return report
                await asyncio.sleep(0.05)


def opened(folder: Path, hosts: FleetRig) -> Store:
    store = open_store(with_tables(folder / "policer.db"))
    store.hosts.add(hosts["h0"].entry(), "test")
    store.contracts.put("h0", "a0", SOLD, None, "test")
    store.contracts.put("h0", "a1", Contract(guarantee_pps=30e3), None, "test")
    return store


@pytest.fixture
async def host(folder: Path) -> AsyncIterator[Host]:
    fleet = Fleet()
    with FleetRig(folder, hosts=1, routers=2, period_s=PERIOD_S) as hosts:
        here = Host(hosts, fleet)
        here.send("a0", 100e3, 1000.0)
        here.send("a1", 1e3, 64.0)
        with contextlib.closing(opened(folder, hosts)) as store:
            task = asyncio.create_task(Service(store, fleet, ServiceSettings("one"), None).run())
            yield here
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def at_its_ceiling(report: Report) -> bool:
    return (
        report.setpoint_bps == CEILING
        and report.throughput_bps is not None
        and abs(report.throughput_bps - CEILING) <= 0.05 * CEILING
    )


async def test_a_ceiling_in_bits_is_held_whatever_the_size_and_in_packets_while_contended(
    host: Host,
) -> None:
    large = await host.until(at_its_ceiling)
    assert large.setpoint_pps is None
    assert large.throughput_pps == pytest.approx(20e3, rel=0.06)
    host.send("a0", 100e3, 500.0)
    small = await host.until(lambda r: at_its_ceiling(r) and (r.throughput_pps or 0.0) > 35e3)
    assert small.throughput_pps == pytest.approx(40e3, rel=0.06)

    host.send("a1", 130e3, 64.0)
    contended = await host.until(lambda r: r.setpoint_pps is not None)
    assert contended.setpoint_bps is None
    reserve = SOLD.reserve_pps
    await host.until(lambda r: reserve <= (r.setpoint_pps or 0.0) <= 40e3 * 1.04)

    host.send("a1", 1e3, 64.0)
    again = await host.until(at_its_ceiling)
    assert again.over_promise_bits is not None
