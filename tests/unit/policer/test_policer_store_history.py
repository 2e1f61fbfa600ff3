"""History and days of contracts in the store, on both databases."""

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest
from store_values import host, promise

from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.history.retention import Oldest, Retention
from policer.reports.sla import line_of, month_of
from policer.store import ChunkRow, DayRow, Kept, Store
from policer.store.database import pruning

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

NOVEMBER = (date(2026, 11, 1), date(2026, 12, 1))


@pytest.fixture
def epoch(store: Store) -> int:
    """The epoch of a policer that leads."""
    epoch = store.leadership("ann").acquire()
    assert epoch is not None
    return epoch


def chunk(at: int, points: bytes = b"x", part: int = 1, name: str = "gold") -> ChunkRow:
    return ChunkRow(name, 1, at, part, points)


def day(vr: str, part: int = 1, of: date = date(2026, 11, 23), **sums: float) -> DayRow:
    return DayRow("gold", vr, of, part, **sums)  # type: ignore[arg-type]


def test_a_chunk_that_is_written_again_takes_the_place_of_the_first(
    store: Store, epoch: int
) -> None:
    for points in (b"one", b"one and two"):
        assert store.history.put([chunk(10, points), chunk(20)], epoch)
    assert [tuple(row) for row in store.history.chunks("gold", 1, 0, 99, 99)] == [
        (10, b"one and two"),
        (20, b"x"),
    ]


def test_chunks_are_found_by_host_kind_and_time(store: Store, epoch: int) -> None:
    rows = [chunk(at) for at in range(0, 100, 10)]
    store.history.put([*rows, chunk(20, name="iron"), ChunkRow("gold", 60, 20, 1, b"m")], epoch)
    assert [row.at for row in store.history.chunks("gold", 1, 20, 50, 99)] == [20, 30, 40]
    assert [row.at for row in store.history.chunks("gold", 1, 20, 50, 2)] == [20, 30]
    assert [row.points for row in store.history.chunks("gold", 60, 0, 99, 9)] == [b"m"]


def test_what_two_leaders_wrote_of_one_time_is_both_there(store: Store, epoch: int) -> None:
    store.history.put([chunk(10, b"a", part=2**62 - 1), chunk(10, b"b", part=5)], epoch)
    assert {row.points for row in store.history.chunks("gold", 1, 0, 99, 9)} == {b"a", b"b"}


def test_a_leader_that_was_overtaken_writes_nothing(store: Store, epoch: int) -> None:
    assert not store.history.put([chunk(10)], epoch - 1)
    assert not store.sla.put([day("r1", data_s=1.0)], epoch - 1)
    assert store.history.chunks("gold", 1, 0, 99, 9) == []


def test_days_add_up_over_days_and_leaders(store: Store, epoch: int) -> None:
    store.hosts.add(host(), "ann")
    for vr in ("r1", "r2"):
        store.contracts.put("gold", vr, promise(1e3), None, "ann")
    store.sla.put([day("r1", data_s=1.0)], epoch)
    rows = [
        day("r1", data_s=60.0, wanted=5.0, punishments=1),
        day("r1", part=2, data_s=40.0, wanted=3.0),
        day("r1", of=date(2026, 11, 30), data_s=10.0, punishments=2),
        day("r1", of=date(2026, 10, 31), data_s=1000.0),
        day("r1", of=date(2026, 12, 1), data_s=1000.0),
    ]
    store.sla.put(rows, epoch)
    first, second = store.sla.page(NOVEMBER, None, 9)
    assert first.kept == Kept(data_s=110.0, wanted=8.0, punishments=3)
    assert second.kept == Kept()


def test_contracts_come_in_pages_with_all_that_was_promised(store: Store, epoch: int) -> None:
    del epoch
    for name in ("gold", "iron"):
        store.hosts.add(host(name), "ann")
        for number in range(4):
            store.contracts.put(name, f"r{number}", promise(1e3), None, "ann")
    store.contracts.remove("gold", "r2", 1, "ann")
    found, after = [], None
    while page := store.sla.page(NOVEMBER, after, 3):
        found += page
        after = page[-1].host, page[-1].vr
    assert [(one.host, one.vr) for one in found] == [
        (name, f"r{number}") for name in ("gold", "iron") for number in range(4)
    ]
    assert [len(one.changes) for one in found] == [1, 1, 2, 1, 1, 1, 1, 1]
    assert found[2].changes[-1].contract is None
    assert len(store.sla.page(NOVEMBER, None, 99, "iron")) == 4


def test_old_history_is_pruned(store: Store, epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 3)
    store.history.put([chunk(at) for at in range(0, 100, 10)], epoch)
    store.history.put([ChunkRow("gold", 60, at, 1, b"m") for at in range(0, 7200, 3600)], epoch)
    store.sla.put([day("r1", of=date(2026, 10, 31)), day("r1")], epoch)
    removed = store.prune_history(Oldest(50.0, 3600.0, NOVEMBER[0]))
    assert list(removed.values()) == [5, 1, 1]
    assert [row.at for row in store.history.chunks("gold", 1, 0, 99, 9)] == [50, 60, 70, 80, 90]


def test_what_was_in_force_for_years_is_reported_after_it_is_pruned(
    backend: "Backend", store: Store
) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(1e3), None, "ann")
    store.contracts.put("gold", "r1", promise(2e3), 1, "ann")
    backend.clock.forward(days=800)  # 2028-05-09
    store.contracts.put("gold", "r1", promise(3e3), 2, "ann")
    assert store.prune(90, 730)["revisions"] == 1
    april = month_of("2028-04", date(2028, 1, 1), backend.clock())
    (days,) = store.sla.page((april.first, april.following), None, 9)
    line = line_of(days, april, april.end, {})
    assert line is not None
    assert (line.in_force_s, line.guarantee_pps) == (30 * 86400, 2e3)


def test_the_last_tenant_of_a_removed_contract_is_known_as_long_as_its_removal(
    backend: "Backend", store: Store
) -> None:
    store.hosts.add(host(), "ann")
    store.tenants.put("acme", Tenant(), None, "ann")
    store.contracts.put("gold", "r1", promise(1e3, tenant="acme"), None, "ann")
    backend.clock.forward(days=800)
    store.contracts.remove("gold", "r1", 1, "ann")
    assert store.prune(90, 730)["revisions"] == 0
    assert store.contracts.owner("gold", "r1") == "acme"
    backend.clock.forward(days=731)
    assert store.prune(90, 730)["revisions"] == 2


def test_revisions_are_kept_as_long_as_there_are_reports_of_their_days(
    backend: "Backend", store: Store
) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(1e3), None, "ann")
    backend.clock.forward(days=100)
    changed = store.contracts.put("gold", "r1", promise(2e3), 1, "ann").version.changed_at
    backend.clock.forward(days=100)
    assert store.prune(90, 30, changed.date())["revisions"] == 0
    assert store.prune(90, 30, changed.date() + timedelta(days=1))["revisions"] == 1


def test_what_is_kept_goes_by_the_settings() -> None:
    noon = 1_795_435_200.0  # 2026-11-23T12:00:00Z
    oldest = Retention(seconds_s=3600, minutes_days=30, report_months=25).oldest(noon)
    assert oldest == Oldest(noon - 3600, noon - 30 * 86400, date(2024, 11, 1))
    assert Retention(report_months=1).oldest(noon).day == date(2026, 11, 1)
    assert Retention(report_months=11).oldest(noon).day == date(2026, 1, 1)
    assert Retention(report_months=12).oldest(noon).day == date(2025, 12, 1)
    assert Retention(seconds_s=0).oldest(noon).second == noon


def test_brought_down_the_older_program_finds_its_own_tables(
    backend: "Backend", store: Store, epoch: int
) -> None:
    store.hosts.add(host(), "ann")
    store.history.put([chunk(10)], epoch)
    store.bring_down("0003")
    again = backend.open(upgrade=True)
    assert again.history.chunks("gold", 1, 0, 99, 9) == []
    assert again.hosts.get("gold").value == host()


def test_days_of_a_contract_that_follows_add_up_over_hosts_and_names(
    store: Store, epoch: int
) -> None:
    for name in ("gold", "iron", "iron.2"):
        store.hosts.add(host(name), "ann")
    for name in ("a", "a-1", "a.1", "b"):
        store.contracts.put(ANYWHERE, name, promise(1e3), None, "ann")
    store.contracts.put("gold", "a", promise(1e3), None, "ann")
    rows = [
        DayRow("gold", "a", NOVEMBER[0], 1, data_s=1.0, follows="a"),
        DayRow("gold", "a2", NOVEMBER[0], 1, data_s=2.0, follows="a"),
        DayRow("iron", "a", NOVEMBER[0], 1, data_s=4.0, follows="a"),
        DayRow("iron.2", "a", NOVEMBER[0], 1, data_s=8.0, follows="a-1"),
        DayRow("gold", "a", NOVEMBER[0], 1, data_s=16.0),
        DayRow("iron", "b", NOVEMBER[1], 1, data_s=32.0, follows="b"),
    ]
    for _ in range(2):  # to write a row again changes nothing
        assert store.sla.put(rows, epoch)
    found = store.sla.page(NOVEMBER, None, 9)
    assert [(one.host, one.vr, one.kept.data_s, one.hosts) for one in found] == [
        (ANYWHERE, "a", 7.0, ("gold", "iron")),
        (ANYWHERE, "a-1", 8.0, ("iron.2",)),
        (ANYWHERE, "a.1", 0.0, ()),
        (ANYWHERE, "b", 0.0, ()),
        ("gold", "a", 16.0, ("gold",)),
    ]
    alone = [store.sla.page(NOVEMBER, (ANYWHERE, one.vr), 1)[0] for one in found[:3]]
    assert alone == found[1:4]
    on_iron = store.sla.page(NOVEMBER, None, 9, "iron")
    assert [(one.vr, one.kept.data_s) for one in on_iron] == [("a", 7.0)]
    on_gold = store.sla.page(NOVEMBER, None, 9, "gold")
    assert [(one.host, one.kept.data_s) for one in on_gold] == [(ANYWHERE, 7.0), ("gold", 16.0)]
