"""SLA reports of contracts that follow their routers: one line, whichever hosts they were on."""

import csv
import io
from collections.abc import AsyncIterator, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from following_rig import NOON, UUID, Policer, follow, punished
from history_filled import BEGIN, lead, told
from policer_plant import report_of
from rest_rig import PROMISE, SILVER, Rig
from store_values import host, promise
from support.stores import with_tables

from policer.contracts.promised import ANYWHERE
from policer.reports.sla import Line, line_of, month_of
from policer.store import DayRow, open_store
from xtc.wire import Report, Telemetry

TERMS = promise(1000.0)
JUNE = month_of("2026-06", date(2020, 1, 1), NOON)


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


# --- a policer whose router moves


@pytest.fixture
async def policer(tmp_path: Path) -> AsyncIterator[Policer]:
    store = open_store(with_tables(tmp_path / "policer.db"), clock=lambda: BEGIN)
    made = Policer(store)
    store._clock = store.contracts._clock = lambda: made.today
    made.service.history_writer._wall = lambda: made.today.timestamp()  # noqa: PLW0108  the day goes on
    for name in ("h0", "h1"):
        store.hosts.add(host(name), "test")
    yield made
    await made.end()


def seen(vr: str = "r", pps: float = 100.0) -> Report:
    return report_of(vr, uuid=UUID, offered_pps=pps, throughput_pps=pps)


async def watch(policer: Policer, seconds: int, **shown: Report | None) -> None:
    """Have hosts tell so often, once a second, what they have."""
    for _ in range(seconds):
        policer.wait(1.0)
        await policer.look()
        now = policer.clock.now()
        for name, one in shown.items():
            reports = () if one is None else (one,)
            policer.loop(name)._hear(name, Telemetry(now, int(now), reports))


async def wait_a_day(policer: Policer) -> None:
    """Let a day pass in which no host is heard."""
    policer.today += timedelta(days=1)
    await policer.look()


def lines_of(policer: Policer) -> dict[tuple[str | None, str], Line]:
    """Return the report of the month, after all that was seen is written."""
    policer.service.history_writer.close()
    rows = policer.store.sla.page((JUNE.first, JUNE.following), None, 99)
    lines = [line_of(row, JUNE, policer.today, {}) for row in rows]
    return {(line.host, line.vr): line for line in lines if line is not None}


@pytest.mark.anyio
@pytest.mark.parametrize("router", ["r", UUID])
async def test_a_router_that_moved_has_one_line(policer: Policer, router: str) -> None:
    follow(policer.store, router, TERMS, "h0")
    await policer.look()
    await watch(policer, 1, h0=seen(), h1=None)  # the first ticks tell of no period
    await watch(policer, 30, h0=seen(), h1=None)
    await watch(policer, 5, h0=seen(), h1=seen(pps=7.0))  # while it migrates, both have it
    await watch(policer, 1, h0=None, h1=seen())  # with this tick the contract comes
    await watch(policer, 20, h0=None, h1=seen("other-name"))
    (line,) = lines_of(policer).values()
    hosts = ("h0",) if router == "r" else ("h0", "h1")  # another name is another router
    assert (line.host, line.vr, line.hosts, line.in_force_s) == (None, router, hosts, 57.0)


@pytest.mark.anyio
async def test_what_all_hosts_saw_is_added(policer: Policer) -> None:
    follow(policer.store, UUID, TERMS, "h0")
    policer.store.punishments.set([punished("h0", "r")], [])
    await policer.look()
    await watch(policer, 1, h0=seen(), h1=None)
    await watch(policer, 30, h0=seen(), h1=None)
    await watch(policer, 5, h0=seen(), h1=seen(pps=7.0))
    await watch(policer, 1, h0=None, h1=seen())
    await watch(policer, 20, h0=None, h1=seen(pps=200.0))
    line = lines_of(policer)[None, UUID]
    assert (line.data_s, line.no_data_s) == (55.0, 2.0)
    assert line.promised_packets == 55_000.0
    assert line.delivered_packets == 35 * 100.0 + 20 * 200.0
    assert line.wanted_packets == line.delivered_packets
    assert (line.punished_s, line.punishments) == (55.0, 0)
    assert line.hosts == ("h0", "h1")


@pytest.mark.anyio
async def test_it_is_on_several_days_and_comes_back(policer: Policer) -> None:
    follow(policer.store, "r", TERMS, "h0")
    await policer.look()
    for name, other in (("h0", "h1"), ("h1", "h0"), ("h0", "h1")):
        await watch(policer, 1, **{other: None, name: seen()})
        await watch(policer, 10, **{other: None, name: seen()})
        await wait_a_day(policer)
    (line,) = lines_of(policer).values()
    assert (line.data_s, line.delivered_packets, line.hosts) == (30.0, 3000.0, ("h0", "h1"))


@pytest.mark.anyio
@pytest.mark.parametrize("router", ["r", UUID])
async def test_a_contract_that_begins_to_follow_in_the_month(policer: Policer, router: str) -> None:
    """Two contracts, each with the seconds in which it held; together all of them, once."""
    store = policer.store
    store.contracts.put("h0", "r", TERMS, None, "test")
    await policer.look()
    await watch(policer, 1, h0=seen(), h1=None)
    await watch(policer, 30, h0=seen(), h1=None)
    store.contracts.remove("h0", "r", 1, "test")
    follow(store, router, promise(2000.0), "h0")
    await policer.look()
    await watch(policer, 20, h0=seen(), h1=None)
    await watch(policer, 1, h0=None, h1=seen())
    await watch(policer, 10, h0=None, h1=seen())
    lines = lines_of(policer)
    bound, following = lines["h0", "r"], lines[None, router]
    assert len(lines) == 2
    assert (bound.data_s, bound.in_force_s, bound.hosts) == (30.0, 31.0, ("h0",))
    assert bound.promised_packets == 30_000.0
    known = 30.0 if router == "r" else 29.0  # the next tick says which router has the UUID
    assert (following.data_s, following.in_force_s) == (known, 31.0)
    assert following.promised_packets == 2000.0 * known
    assert following.hosts == ("h0", "h1")


# --- over REST


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with told(tmp_path) as rig:
        rig.store.hosts.add(SILVER, "test")
        yield rig


def keep(rig: Rig, name: str, *hosts: str, follows: str = UUID, **sums: float) -> None:
    """Keep days of a contract on some hosts."""
    sums = {"data_s": 60.0, **sums}
    rows = [DayRow(h, name, date(2026, 11, 23), 1, follows=follows, **sums) for h in hosts]  # type: ignore[arg-type]
    assert rig.store.sla.put(rows, lead(rig))


def answer(rig: Rig, **query: Any) -> Any:
    found = rig.client("read").get("/v1/reports/2026-11", params=query)
    assert found.status_code == 200, found.text
    return found


def test_the_answer_has_one_line_and_names_the_hosts(rig: Rig) -> None:
    follow(rig.store, UUID, PROMISE)
    keep(rig, "r7", "silver", "gold", breach_s=2.0, punishments=1)
    first, second = answer(rig).json()["items"]
    assert (first["host"], first["vr"], first["hosts"]) == (None, UUID, ["gold", "silver"])
    assert (first["data_s"], first["breach_s"], first["punishments"]) == (120.0, 4.0, 2)
    assert (second["host"], second["vr"], second["hosts"]) == ("gold", "r1", [])


def test_csv_has_the_hosts_in_one_cell(rig: Rig) -> None:
    follow(rig.store, UUID, PROMISE)
    keep(rig, "r7", "silver", "gold")
    first, second = csv.DictReader(io.StringIO(answer(rig, format="csv").text))
    assert (first["host"], first["vr"], first["hosts"]) == ("", UUID, "gold silver")
    assert (first["data_s"], first["punishments"]) == ("120", "0")
    assert (second["host"], second["hosts"]) == ("gold", "")


def test_a_page_may_end_with_a_contract_that_follows(rig: Rig) -> None:
    for name in ("a", "a-1", "a.1", "a1", "b"):
        follow(rig.store, name, PROMISE)
        keep(rig, "r7", "gold", "silver", follows=name, wanted=float(len(name)))
    found, after = [], None
    while True:
        page = answer(rig, limit=1, **({"after": after} if after else {})).json()
        found += page["items"]
        after = page["next"]
        if after is None:
            break
    assert [(line["vr"], line["data_s"], line["wanted_packets"]) for line in found] == [
        ("a", 120.0, 2.0),
        ("a-1", 120.0, 6.0),
        ("a.1", 120.0, 6.0),
        ("a1", 120.0, 4.0),
        ("b", 120.0, 2.0),
        ("r1", 0.0, 0.0),
    ]


def test_of_one_host_are_those_that_were_there_with_all_their_seconds(rig: Rig) -> None:
    for name, hosts in ((UUID, ("gold", "silver")), ("r8", ("silver",)), ("r9", ())):
        follow(rig.store, name, PROMISE)
        keep(rig, "r7", *hosts, follows=name)
    assert [(line["vr"], line["data_s"]) for line in answer(rig, host="gold").json()["items"]] == [
        (UUID, 120.0),
        ("r1", 0.0),
    ]
    assert [line["vr"] for line in answer(rig, host="silver").json()["items"]] == [UUID, "r8"]
    assert [line["vr"] for line in answer(rig, host="silv").json().get("items")] == []


def test_a_contract_that_was_removed_keeps_its_line(rig: Rig) -> None:
    follow(rig.store, "r7", PROMISE)
    keep(rig, "r7", "gold", follows="r7")
    rig.store.contracts.remove(ANYWHERE, "r7", 1, "test")
    (line,) = [line for line in answer(rig).json()["items"] if line["host"] is None]
    assert (line["in_force_s"], line["data_s"], line["hosts"]) == (0.0, 60.0, ["gold"])
