"""The history of real services over simulated hosts: a change of the lead counts nothing twice."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fleet_rig import FleetRig
from support.stores import with_tables

from policer.contracts.contract import Contract
from policer.fleet.live import Fleet
from policer.history.packing import unpacked
from policer.history.point import Point, added
from policer.recording import host_track as hosttrack
from policer.recording import writer
from policer.service.service import Service, ServiceSettings
from policer.store import Store, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
SOON_S = 60.0


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture
def hosts() -> Iterator[FleetRig]:
    with (
        tempfile.TemporaryDirectory(prefix="xtc-") as folder,
        FleetRig(Path(folder), hosts=1, routers=1, period_s=1.0) as rig,
    ):
        yield rig


@pytest.fixture
def store(tmp_path: Path, hosts: FleetRig) -> Iterator[Store]:
    made = open_store(with_tables(tmp_path / "policer.db"))
    made.hosts.add(hosts["h0"].entry(), "test")
    made.contracts.put("h0", "a0", Contract(guarantee_pps=60e3), None, "test")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be written within a second or two of its end."""
    monkeypatch.setattr(writer, "COLLECT_EVERY_S", 0.2)
    monkeypatch.setattr(writer, "FLUSH_EVERY_S", 0.2)
    monkeypatch.setattr(hosttrack, "WRITE_EVERY_S", 1)


@asynccontextmanager
async def running(store: Store, name: str) -> AsyncIterator[Service]:
    service = Service(store, Fleet(), ServiceSettings(name), None)
    task = asyncio.create_task(service.run())
    try:
        yield service
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON_S):
        while not holds():  # noqa: ASYNC110  what is waited for rings no bell
            await asyncio.sleep(0.1)


def seen(store: Store) -> Point:
    """Return all seconds that the store has."""
    rows = store.history.chunks("h0", 1, 0, 2**40, 10_000)
    return added(point for row in rows for point in unpacked(row.points, "a0", 10).values())


def of_days(store: Store) -> float:
    """Return the seconds that the contract's days come to."""
    today = datetime.now(UTC).date()
    days = today - timedelta(days=1), today + timedelta(days=2)
    return store.sla.page(days, None, 9)[0].kept.data_s


async def test_two_leaders_one_after_the_other_count_each_second_once(store: Store) -> None:
    began = time.time()
    for name, seconds in (("one", 4), ("two", 8)):
        async with running(store, name):
            await until(lambda s=seconds: of_days(store) >= s)
    assert seen(store).data_s == pytest.approx(of_days(store), abs=0.1)
    assert of_days(store) <= time.time() - began + 1


async def test_a_follower_that_takes_over_goes_on_where_the_leader_ended(store: Store) -> None:
    """Both hear each tick all the time; only the leader's is recorded."""
    began = time.time()
    second = Service(store, Fleet(), ServiceSettings("two"), None)
    async with running(store, "one") as first:
        await until(lambda: first._fleet.leadership.leading)
        task = asyncio.create_task(second.run())
        await until(lambda: of_days(store) >= 3)
        assert not second._fleet.leadership.leading
    of_first = of_days(store)
    await until(lambda: of_days(store) >= of_first + 3)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert seen(store).data_s == pytest.approx(of_days(store), abs=0.1)
    assert of_days(store) <= time.time() - began + 1
