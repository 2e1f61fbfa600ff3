"""The link and a daemon of its own process: leases, keys, deaths and long stops."""

import asyncio
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from fleet_rig import FleetKeys
from link_rig import PATIENCE_S, listening
from running_daemon import RunningDaemon
from support.inconclusive import inconclusive
from support.stalls import Stalls
from support.waiting import free_port

from policer.contracts.host import Host
from policer.errors import LinkTimeout
from policer.link import Link
from xtc.daemon.server import REQUESTS, TELEMETRY
from xtc.modes import Finding
from xtc.wire import Activate, Report

FLOOD, LIMIT = 20e3, 5e3
TTL_S = 2.0
"""Of a lease: ten of the daemon's periods."""
RENEWALS, MOST_RENEWALS = 6, 40
"""Longer than a lease in all; and time enough to be near the setpoint, late ticks and all."""
ENDED_S = 0.5
"""Within this after its end a lease is over, by the daemon's clock."""
STOP_S = 10.0
AGAIN_S = 6.0
"""Within this after a long stop the daemon obeys again, by its own clock."""
pytestmark = pytest.mark.timeout(600)


class Policer:
    """What a policer that leads says: leases of one epoch, each with a higher sequence."""

    def __init__(self, epoch: int = 1) -> None:
        self._epoch, self._sequence = epoch, count(1)

    def lease(self, setpoint: float, ttl_s: float = TTL_S) -> Activate:
        return Activate("a", setpoint, self._epoch, next(self._sequence), ttl_s)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture
def keys(tmp_path: Path) -> FleetKeys:
    return FleetKeys(tmp_path / "keys")


@pytest.fixture(params=["ipc", "tcp"])
def entry(request: pytest.FixtureRequest, daemon: RunningDaemon, keys: FleetKeys) -> Host:
    """A daemon that runs, on its local sockets or on TCP with CURVE."""
    host = local(daemon.run) if request.param == "ipc" else remote(daemon, keys)
    daemon.start()
    return host


def local(run: Path) -> Host:
    return Host("h", f"ipc://{run / REQUESTS}", f"ipc://{run / TELEMETRY}", 100e3)


def remote(daemon: RunningDaemon, keys: FleetKeys) -> Host:
    """Have the daemon listen on TCP."""
    requests, telemetry = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    lines = {
        "tcp": requests,
        "tcp_telemetry": telemetry,
        "secret_key_file": keys.daemon,
        "authorised_keys_dir": keys.authorised,
    }
    daemon.configure(router="[server]\n" + "\n".join(f'{k} = "{v}"' for k, v in lines.items()))
    return Host("h", requests, telemetry, 100e3, server_key=keys.server_key)


def has_ended(report: Report) -> bool:
    return report.finding is Finding.LEASE_ENDED


def is_held_at_30(report: Report) -> bool:
    return report.setpoint_pps == 30e3


def near(report: Report, setpoint: float) -> bool:
    return report.throughput_pps is not None and abs(report.throughput_pps / setpoint - 1) < 0.1


def test_a_lease_holds_while_it_is_renewed_and_ends_by_itself(
    entry: Host, keys: FleetKeys, stalls: Stalls
) -> None:
    policer = Policer()

    async def story() -> None:
        async with listening(entry, keys.policer) as one:
            await one.until(lambda: one.heard)
            for renewals in count(1):
                assert await one.link.send([policer.lease(20e3)], PATIENCE_S) == (None,)
                renewed = time.monotonic()
                if renewals == 1:
                    await one.until(lambda: one.report("a").active)
                await asyncio.sleep(TTL_S / 4)
                if (waited := time.monotonic() - renewed) > TTL_S / 2:
                    inconclusive(f"the lease is to be renewed after {waited:.3g} s already")
                assert one.report("a").active
                if renewals >= RENEWALS and near(one.report("a"), 20e3):
                    break
                assert renewals < MOST_RENEWALS, one.report("a")
            await one.until(lambda: has_ended(one.report("a")))
            stalls.check_within(renewed, one.first("a", has_ended), TTL_S + ENDED_S)
            assert one.report("a").cap is None
            assert not one.troubles

    asyncio.run(story())


async def unanswered(link: Link) -> str:
    """Return why a link has no answer to an order."""
    with pytest.raises(LinkTimeout) as caught:
        await link.send([Policer(99).lease(1e3)])
    return str(caught.value)


def test_a_stranger_is_not_admitted_while_the_policer_is(
    daemon: RunningDaemon, keys: FleetKeys
) -> None:
    host = remote(daemon, keys)
    daemon.start()

    async def story() -> None:
        async with (
            listening(host, keys.policer) as friend,
            listening(host, keys.stranger, silence_s=1.0) as stranger,
        ):
            await friend.until(lambda: friend.heard)
            async with asyncio.timeout(PATIENCE_S):  # a handshake may outlast a deadline
                while "does not admit this policer's key" not in await unanswered(stranger.link):
                    pass
            await stranger.until(lambda: stranger.troubles)
            assert not stranger.heard
            assert await friend.link.send([Policer().lease(20e3)], PATIENCE_S) == (None,)
            await friend.until(lambda: friend.report("a").setpoint_pps == 20e3)

    asyncio.run(story())


def test_a_daemon_that_was_killed_is_back_in_step(
    entry: Host, daemon: RunningDaemon, keys: FleetKeys
) -> None:
    policer = Policer(epoch=7)

    async def story() -> None:
        async with listening(entry, keys.policer) as one:
            await one.until(lambda: one.heard)
            assert await one.link.send([policer.lease(20e3, 60.0)], PATIENCE_S) == (None,)
            await one.until(lambda: one.report("a").setpoint_pps == 20e3)
            await one.until(lambda: one.report("a").cap is not None)  # and so in the journal
            daemon.signal(signal.SIGKILL)
            daemon.ended()
            with pytest.raises(LinkTimeout):
                await one.link.send([policer.lease(30e3)], 0.5)
            await asyncio.to_thread(daemon.start)
            before = len(one.heard)
            await one.until(lambda: len(one.heard) > before)
            assert one.report("a").setpoint_pps == 20e3  # adopted, not the order that was lost
            (refusal,) = await one.link.send([Policer(epoch=6).lease(30e3)], PATIENCE_S)
            assert refusal is not None
            assert refusal.code == "stale_epoch"
            assert await one.link.send([policer.lease(30e3)], PATIENCE_S) == (None,)
            await one.until(lambda: one.report("a").setpoint_pps == 30e3)

    asyncio.run(story())


def test_a_daemon_that_was_stopped_for_ten_seconds_is_back_in_step(
    entry: Host, daemon: RunningDaemon, keys: FleetKeys, stalls: Stalls
) -> None:
    policer = Policer()

    async def story() -> None:
        async with listening(entry, keys.policer, silence_s=3.0) as one:
            await one.until(lambda: one.heard)
            assert await one.link.send([policer.lease(20e3)], PATIENCE_S) == (None,)
            daemon.signal(signal.SIGSTOP)
            stopped = time.monotonic()
            try:
                while time.monotonic() - stopped < STOP_S:
                    with pytest.raises(LinkTimeout):
                        await one.link.send([policer.lease(90e3, 60.0)], 1.0)
            finally:
                daemon.signal(signal.SIGCONT)
            before, resumed = len(one.heard), time.monotonic()
            await one.until(lambda: len(one.heard) > before)
            assert await one.link.send([policer.lease(30e3)], PATIENCE_S) == (None,)
            await one.until(lambda: is_held_at_30(one.report("a")))
            stalls.check_within(resumed, one.first("a", is_held_at_30), AGAIN_S)
            assert len(one.troubles) >= 1

    asyncio.run(story())
