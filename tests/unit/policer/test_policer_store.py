"""Hosts and contracts in the store: versions, admission, history and audit, on both databases."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest
from store_values import host, promise
from support.races import at_once

from policer.contracts.ladder import Step
from policer.errors import Invalid, PolicerError, Stale, StoreGone, Taken, Unknown
from policer.store import Store, Stored, Version

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]


def test_a_host_is_given_back_as_it_was_entered(backend: "Backend", store: Store) -> None:
    entered = host(server_key="a" * 40, overcommit=True, capacity_source="model")
    stored = store.hosts.add(entered, "ann")
    assert stored == Stored(entered, Version(1, backend.clock(), "ann"))
    assert store.hosts.get("gold") == stored
    assert backend.open().hosts.all() == [stored]


def test_a_host_is_changed_by_who_has_seen_its_last_version(
    backend: "Backend", store: Store
) -> None:
    store.hosts.add(host(), "ann")
    backend.clock.forward(minutes=5)
    changed = store.hosts.replace(host(capacity_pps=50e3), 1, "ben")
    assert changed.version == Version(2, backend.clock(), "ben")
    with pytest.raises(Stale, match="version 2 now") as refused:
        store.hosts.replace(host(capacity_pps=70e3), 1, "cid")
    assert refused.value.version == 2
    assert store.hosts.get("gold") == changed


def test_hosts_that_are_there_or_are_not(store: Store) -> None:
    with pytest.raises(Unknown):
        store.hosts.get("gold")
    with pytest.raises(Unknown):
        store.hosts.replace(host(), 1, "ann")
    with pytest.raises(Unknown):
        store.hosts.remove("gold", 1, "ann")
    store.hosts.add(host(), "ann")
    with pytest.raises(Taken):
        store.hosts.add(host(capacity_pps=1.0), "ben")
    assert [stored.value for stored in store.hosts.all()] == [host()]


@pytest.mark.parametrize("name", ["gold\0", "gold\udc80", "", "gold'--", "GOLD"])
def test_an_odd_name_is_not_found(store: Store, name: str) -> None:
    store.hosts.add(host(), "ann")
    with pytest.raises(Unknown):
        store.hosts.get(name)
    if name:  # "" is no host: what is promised there follows its router
        with pytest.raises(Unknown):
            store.contracts.put(name, "r1", promise(1.0), None, "ann")
    with pytest.raises(Unknown):
        store.contracts.get("gold", name)


def test_the_versions_of_a_host_rise_over_its_removal(store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.hosts.remove("gold", 1, "ann")
    assert store.hosts.all() == []
    assert store.hosts.add(host(), "ann").version.number == 3
    with pytest.raises(Stale):
        store.hosts.remove("gold", 1, "ann")


def test_a_host_that_contradicts_itself_is_refused(store: Store) -> None:
    open_to_all = msgspec.structs.replace(host(), requests="tcp://10.0.0.1:9000")
    with pytest.raises(Invalid, match="server_key"):
        store.hosts.add(open_to_all, "ann")
    with pytest.raises(Invalid) as refused:
        store.hosts.add(host(capacity_pps=float("nan")), "ann")
    assert [problem.field for problem in refused.value.problems] == ["capacity_pps"]
    assert store.hosts.all() == []


def test_a_host_keeps_what_its_contracts_need(store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(60e3), None, "ann")
    with pytest.raises(Invalid, match="capacity_pps"):
        store.hosts.replace(host(capacity_pps=50e3), 1, "ann")
    with pytest.raises(Invalid, match="it has contracts: r1"):
        store.hosts.remove("gold", 1, "ann")
    assert store.hosts.get("gold").version.number == 1
    store.contracts.remove("gold", "r1", 1, "ann")
    store.hosts.remove("gold", 1, "ann")


def test_a_contract_is_given_back_as_it_was_put(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    promised = promise(
        20e3,
        ceiling_pps=40e3,
        weight=2.5,
        burst_packets=1e4,
        measures=(Step.WARN, Step.STOP),
        dry_run=True,
        cost=1.5,
        burst=4e3,
    )
    stored = store.contracts.put("gold", "r1", promised, None, "ann")
    assert stored == Stored(promised, Version(1, backend.clock(), "ann"))
    assert backend.open().contracts.all() == {"gold": {"r1": stored}}
    assert store.contracts.get("gold", "r1") == stored


@pytest.mark.parametrize("burst", [0.0, -1.0, float("nan"), float("inf"), 60 * 20e3 + 1])
def test_a_burst_that_cannot_be_kept_is_refused_by_name(store: Store, burst: float) -> None:
    store.hosts.add(host(), "ann")
    with pytest.raises(Invalid) as refused:
        store.contracts.put("gold", "r1", promise(20e3, burst=burst), None, "ann")
    assert [problem.field for problem in refused.value.problems] == ["burst"]
    assert store.contracts.all() == {}


def test_a_contract_is_changed_by_who_has_seen_its_last_version(store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(1e3), None, "ann")
    store.contracts.put("gold", "r1", promise(2e3), 1, "ben")
    attempts: list[tuple[int | None, type[PolicerError]]] = [(1, Stale), (3, Stale), (None, Taken)]
    for version, error in attempts:
        with pytest.raises(error):
            store.contracts.put("gold", "r1", promise(3e3), version, "cid")
    with pytest.raises(Stale):
        store.contracts.remove("gold", "r1", 1, "cid")
    assert store.contracts.get("gold", "r1").value == promise(2e3)


def test_a_contract_that_is_not_there_is_not_replaced(store: Store) -> None:
    store.hosts.add(host(), "ann")
    with pytest.raises(Stale) as refused:
        store.contracts.put("gold", "r1", promise(1e3), 1, "ann")
    assert refused.value.version == 0
    with pytest.raises(Unknown):
        store.contracts.remove("gold", "r1", 1, "ann")
    with pytest.raises(Unknown):
        store.contracts.get("gold", "r1")
    with pytest.raises(Unknown):
        store.contracts.history("gold", "r1")


def test_history_keeps_every_revision(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    steps: list[Callable[[], object]] = [
        lambda: store.contracts.put("gold", "r1", promise(1e3), None, "ann"),
        lambda: store.contracts.put("gold", "r1", promise(2e3), 1, "ben"),
        lambda: store.contracts.remove("gold", "r1", 2, "cid"),
        lambda: store.contracts.put("gold", "r1", promise(3e3), None, "ann"),
    ]
    started = backend.clock()
    for step in steps:
        step()
        backend.clock.forward(hours=1)
    history = store.contracts.history("gold", "r1")
    assert [revision.version for revision in history] == [4, 3, 2, 1]
    assert [revision.contract for revision in history] == [
        promise(3e3),
        None,
        promise(2e3),
        promise(1e3),
    ]
    assert [revision.by for revision in history] == ["ann", "cid", "ben", "ann"]
    assert [r.at for r in history] == [started + timedelta(hours=hour) for hour in (3, 2, 1, 0)]
    assert store.contracts.get("gold", "r1").version.number == 4


def test_history_is_read_in_parts(store: Store) -> None:
    store.hosts.add(host(), "ann")
    for version in range(5):
        store.contracts.put("gold", "r1", promise(1e3 * version), version or None, "ann")
    first = store.contracts.history("gold", "r1", limit=2)
    rest = store.contracts.history("gold", "r1", before=first[-1].version)
    assert [one.version for one in first + rest] == [5, 4, 3, 2, 1]


def test_what_was_overtaken_long_ago_is_pruned_and_what_stands_is_kept(
    backend: "Backend", store: Store
) -> None:
    store.hosts.add(host(), "ann")
    for vr in ("r1", "r2", "r3"):
        store.contracts.put("gold", vr, promise(1e3), None, "ann")
    store.contracts.put("gold", "r1", promise(2e3), 1, "ann")
    store.contracts.remove("gold", "r2", 1, "ann")
    backend.clock.forward(days=800)
    store.contracts.remove("gold", "r3", 1, "ann")
    assert store.prune(90, 730)["revisions"] == 1 + 2
    assert [one.version for one in store.contracts.history("gold", "r1")] == [2]
    assert [one.version for one in store.contracts.history("gold", "r3")] == [2, 1]
    with pytest.raises(Unknown):
        store.contracts.history("gold", "r2")
    assert store.contracts.put("gold", "r2", promise(1e3), None, "ann").version.number == 1
    assert store.prune(90, 730)["revisions"] == 0


def test_a_host_has_no_more_contracts_than_it_may_have_routers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policer.store.inventory.contracts.MOST_ROUTERS", 2)
    store.hosts.add(host(), "ann")
    for vr in ("r1", "r2"):
        store.contracts.put("gold", vr, promise(0.0), None, "ann")
    with pytest.raises(Invalid, match="2 contracts on gold"):
        store.contracts.put("gold", "r3", promise(0.0), None, "ann")
    store.contracts.put("gold", "r2", promise(1.0), 1, "ann")


def test_a_host_is_not_promised_more_than_it_can_forward(store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(60e3), None, "ann")
    with pytest.raises(Invalid) as refused:
        store.contracts.put("gold", "r2", promise(40e3, cost=1.1), None, "ann")
    (problem,) = refused.value.problems
    assert problem.field == "guarantee_pps"
    assert "36363" in problem.fix
    store.contracts.put("gold", "r1", promise(56e3), 1, "ann")
    store.contracts.put("gold", "r2", promise(40e3, cost=1.1), None, "ann")
    store.hosts.replace(host(overcommit=True), 1, "ann")
    store.contracts.put("gold", "r3", promise(90e3), None, "ann")


def test_what_a_daemon_would_refuse_is_refused_here(store: Store) -> None:
    store.hosts.add(host(), "ann")
    for vr in ("", "-r1", "r1\n", "r 1", "r" * 65, "r\0"):
        with pytest.raises(Invalid, match="vr"):
            store.contracts.put("gold", vr, promise(1.0), None, "ann")
    for rate in (float("inf"), float("nan"), -1.0):
        with pytest.raises(Invalid, match="guarantee_pps"):
            store.contracts.put("gold", "r1", promise(rate), None, "ann")
    with pytest.raises(Invalid, match="ceiling_pps"):
        store.contracts.put("gold", "r1", promise(2.0, ceiling_pps=1.0), None, "ann")
    assert store.contracts.all() == {}


def test_two_clients_cannot_promise_the_same_capacity(backend: "Backend", store: Store) -> None:
    stores = [backend.open(busy_s=60.0) for _ in range(2)]
    for number in range(20):
        name = f"host{number}"
        store.hosts.add(host(name), "ann")
        outcomes = at_once(
            *(
                partial(one.contracts.put, name, vr, promise(60e3), None, "ann")
                for one, vr in zip(stores, ("r1", "r2"), strict=True)
            )
        )
        assert sorted(map(type, outcomes), key=str) == sorted([Stored, Invalid], key=str)
        assert len(store.contracts.all()[name]) == 1


def test_two_clients_cannot_enter_the_same_host(backend: "Backend") -> None:
    first, second = (backend.open(busy_s=60.0) for _ in range(2))
    for number in range(20):
        one = host(f"host{number}")
        outcomes = at_once(
            partial(first.hosts.add, one, "ann"), partial(second.hosts.add, one, "ben")
        )
        assert sorted(map(type, outcomes), key=str) == sorted([Stored, Taken], key=str)


def test_pages_of_contracts_are_whole_and_in_order(store: Store) -> None:
    keys = [
        (h, f"{prefix}{n}") for h in ("a-b", "a.b", "aB", "ab") for prefix in "rR" for n in (1, 2)
    ]
    for name in {name for name, _ in keys}:
        store.hosts.add(host(name), "ann")
    for name, vr in keys:
        store.contracts.put(name, vr, promise(1.0), None, "ann")
    store.contracts.remove("ab", "r1", 1, "ann")
    found: list[tuple[str, str]] = []
    while page := store.contracts.page(found[-1] if found else None, 3):
        found += [(name, vr) for name, vr, _ in page]
    assert found == sorted(set(keys) - {("ab", "r1")})
    assert [vr for _, vr, _ in store.contracts.page(None, 99, "ab")] == ["R1", "R2", "r2"]


def test_every_change_is_in_the_audit_log_and_counted(backend: "Backend", store: Store) -> None:
    counts = [store.generation()]
    steps: list[Callable[[], object]] = [
        lambda: store.hosts.add(host(), "ann"),
        lambda: store.contracts.put("gold", "r1", promise(1e3), None, "ben"),
        lambda: store.contracts.remove("gold", "r1", 1, "cid"),
        lambda: store.hosts.replace(host(capacity_pps=9e3), 1, "ann"),
        lambda: store.hosts.remove("gold", 2, "ann"),
    ]
    for step in steps:
        step()
        counts.append(store.generation())
    assert counts == sorted(set(counts))
    rows = store.audit.page(None, 99)
    assert [(row.actor, row.action, row.target) for row in reversed(rows)] == [
        ("ann", "add", "host gold"),
        ("ben", "put", "contract gold/r1"),
        ("cid", "remove", "contract gold/r1"),
        ("ann", "replace", "host gold"),
        ("ann", "remove", "host gold"),
    ]
    assert rows[1].before["capacity_pps"] == 100e3
    assert rows[1].after["capacity_pps"] == 9e3
    assert rows[0].after is None
    assert {row.at for row in rows} == {backend.clock()}
    assert [row.id for row in store.audit.page(rows[1].id, 2)] == [rows[2].id, rows[3].id]


def test_a_change_that_is_refused_leaves_nothing_behind(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    before = store.generation(), store.audit.page(None, 99)
    with pytest.raises(Invalid):
        store.contracts.put("gold", "r1", promise(200e3), None, "ann")
    backend.aside().execute("DROP TABLE audit")
    with pytest.raises(PolicerError):
        store.contracts.put("gold", "r1", promise(1.0), None, "ann")
    assert store.contracts.all() == {}
    assert store.generation() == before[0]


def test_a_row_that_somebody_spoilt_is_named(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(1.0), None, "ann")
    backend.aside().execute("UPDATE contracts SET contract = '{\"guarantee_pps\": -1}'")
    with pytest.raises(StoreGone, match="contract gold/r1"):
        store.contracts.all()
    backend.aside().execute("UPDATE hosts SET entry = 'gold' WHERE name = 'gold'")
    with pytest.raises(StoreGone, match="host gold"):
        store.hosts.all()
