"""Classes, contracts that follow routers, and homes in the store, on both databases."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from store_values import host, promise
from support.races import at_once

from policer.contracts.contract import Contract
from policer.contracts.peak import peak_pps
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import Hours
from policer.errors import Invalid, PolicerError, Stale, StoreGone, Taken, Unknown
from policer.store import PunishmentRow, Store, Stored, Version
from policer.store.database import tables
from policer.store.inventory.promises import book_in, contracts_at

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

SILVER = Contract(class_name="silver")
UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""What the store's clock says (`store_rig`)."""
DAY = timedelta(days=1)


def follow(store: Store, vr: str, contract: Contract, seen_on: str | None = None) -> None:
    store.contracts.put(ANYWHERE, vr, contract, None, "ann", seen_on=seen_on)


def fields(refused: pytest.ExceptionInfo[Invalid]) -> list[str]:
    return [problem.field for problem in refused.value.problems]


def promised(store: Store, name: str) -> float:
    """Return the most that a host has promised, as admission counts it."""
    with store._database.read() as connection:
        book = book_in(connection, NOW)
        return peak_pps(contracts_at(connection, name).values(), book)


@pytest.fixture
def epoch(store: Store) -> int:
    """Two hosts, and the epoch of a leader."""
    store.hosts.add(host(), "ann")
    store.hosts.add(host("tin", 50e3), "ann")
    epoch = store.leadership("me").acquire()
    assert epoch is not None
    return epoch


# Classes.


def test_a_class_is_given_back_as_it_was_put(backend: "Backend", store: Store) -> None:
    stored = store.classes.put("silver", promise(5e3, weight=2.0), None, "ann")
    assert stored == Stored(promise(5e3, weight=2.0), Version(1, backend.clock(), "ann"))
    assert store.classes.get("silver") == stored
    assert backend.open().classes.all() == {"silver": stored}


def test_a_class_is_changed_by_who_has_seen_its_last_version(store: Store) -> None:
    store.classes.put("silver", promise(1e3), None, "ann")
    with pytest.raises(Taken, match="class silver"):
        store.classes.put("silver", promise(2e3), None, "ben")
    store.classes.put("silver", promise(2e3), 1, "ben")
    with pytest.raises(Stale, match="version 2 now"):
        store.classes.put("silver", promise(3e3), 1, "cid")
    with pytest.raises(Stale):
        store.classes.put("gold", promise(3e3), 1, "cid")
    assert store.classes.get("silver").value == promise(2e3)


def test_the_versions_of_a_class_rise_over_its_removal(store: Store) -> None:
    store.classes.put("silver", promise(1e3), None, "ann")
    with pytest.raises(Stale):
        store.classes.remove("silver", 2, "ann")
    store.classes.remove("silver", 1, "ann")
    with pytest.raises(Unknown, match="class silver"):
        store.classes.get("silver")
    with pytest.raises(Unknown):
        store.classes.remove("silver", 2, "ann")
    assert store.classes.all() == {}
    assert store.classes.put("silver", promise(1e3), None, "ann").version.number == 3


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 65, "a\n", "ä", 'a"b'])
def test_an_odd_name_of_a_class_is_refused(store: Store, name: str) -> None:
    with pytest.raises(Invalid, match="name"):
        store.classes.put(name, promise(1.0), None, "ann")
    with pytest.raises(Unknown):
        store.classes.get(name)


def test_a_class_that_contradicts_itself_or_is_a_contract_is_refused(store: Store) -> None:
    with pytest.raises(Invalid) as refused:
        store.classes.put("silver", promise(2.0, ceiling_pps=1.0), None, "ann")
    assert fields(refused) == ["ceiling_pps"]
    with pytest.raises(Invalid) as refused:
        store.classes.put("silver", SILVER, None, "ann")
    assert "class" in fields(refused)


def test_every_change_of_a_class_is_in_the_audit_log_and_counted(store: Store) -> None:
    before = store.generation()
    store.classes.put("silver", promise(1e3), None, "ann")
    store.classes.put("silver", promise(2e3), 1, "ben")
    store.classes.remove("silver", 2, "cid")
    assert store.generation() == before + 3
    rows = store.audit.page(None, 3)
    assert [(row.actor, row.action, row.target) for row in rows] == [
        ("cid", "remove", "class silver"),
        ("ben", "put", "class silver"),
        ("ann", "put", "class silver"),
    ]


def test_a_contract_names_a_class_that_is_there(store: Store, epoch: int) -> None:
    del epoch
    with pytest.raises(Invalid) as refused:
        store.contracts.put("gold", "r1", SILVER, None, "ann")
    assert fields(refused) == ["class"]
    store.classes.put("silver", promise(5e3), None, "ann")
    store.contracts.put("gold", "r1", SILVER, None, "ann")
    with pytest.raises(Invalid, match="states no terms of its own"):
        store.contracts.put("gold", "r2", Contract(1.0, class_name="silver"), None, "ann")


def test_a_class_stays_while_a_contract_names_it(store: Store, epoch: int) -> None:
    del epoch
    store.classes.put("silver", promise(5e3), None, "ann")
    at_night = Contract(1.0, hours=(Hours("22:00", "06:00", class_name="silver"),))
    steps: list[tuple[str, str, Contract]] = [
        ("gold", "r1", SILVER),
        ("gold", "r2", at_night),
        (ANYWHERE, "r3", SILVER),
    ]
    for where, vr, contract in steps:
        store.contracts.put(where, vr, contract, None, "ann")
    with pytest.raises(Invalid, match="contracts name it: gold/r1, gold/r2, r3"):
        store.classes.remove("silver", 1, "ann")
    for where, vr, _ in steps:
        with pytest.raises(Invalid):
            store.classes.remove("silver", 1, "ann")
        store.contracts.remove(where, vr, 1, "ann")
    store.classes.remove("silver", 1, "ann")


def test_a_class_is_not_more_than_each_host_of_its_contracts_can_keep(
    store: Store, epoch: int
) -> None:
    store.classes.put("silver", promise(10e3), None, "ann")
    store.contracts.put("gold", "r1", SILVER, None, "ann")
    store.contracts.put("tin", "r1", SILVER, None, "ann")
    with pytest.raises(Invalid) as refused:
        store.classes.put("silver", promise(60e3), 1, "ann")
    assert fields(refused) == ["guarantee_pps"]
    assert "on tin, " in str(refused.value)
    follow(store, "r2", SILVER)
    store.classes.put("silver", promise(50e3), 1, "ann")  # where r2 is, nobody knows
    store.homes.set({"r2": "tin"}, epoch)
    with pytest.raises(Invalid, match="on tin, "):
        store.classes.put("silver", promise(51e3), 2, "ann")


def test_a_host_that_promises_too_much_may_promise_less_step_by_step(
    store: Store, epoch: int
) -> None:
    """Routers came to it: what the operator may do about that must not be refused."""
    store.classes.put("silver", promise(20e3), None, "ann")
    store.contracts.put("tin", "r1", promise(20e3), None, "ann")
    store.contracts.put("tin", "r2", SILVER, None, "ann")
    for router in ("r3", "r4"):
        follow(store, router, promise(20e3))
    store.homes.set({"r3": "tin", "r4": "tin"}, epoch)
    assert promised(store, "tin") == 80e3
    store.contracts.put("tin", "r1", promise(15e3, weight=2.0), 1, "ann")
    store.classes.put("silver", promise(19e3), 1, "ann")
    store.hosts.replace(host("tin", 60e3), 1, "ann")
    follow_less = promise(10e3)
    store.contracts.put(ANYWHERE, "r3", follow_less, 1, "ann")
    for more in (
        partial(store.contracts.put, "tin", "r1", promise(16e3), 2, "ann"),
        partial(store.classes.put, "silver", promise(20e3), 2, "ann"),
        partial(store.hosts.replace, host("tin", 55e3), 2, "ann"),
        partial(store.contracts.put, "tin", "r9", promise(1.0), None, "ann"),
    ):
        with pytest.raises(Invalid):
            more()
    store.contracts.put("tin", "r9", promise(0.0), None, "ann")


# Time.


def test_contracts_at_different_hours_share_a_capacity(store: Store, epoch: int) -> None:
    del epoch
    day = promise(50e3, hours=(Hours("06:00", "22:00"),))
    night = promise(50e3, hours=(Hours("22:00", "06:00"),))
    store.contracts.put("tin", "day", day, None, "ann")
    store.contracts.put("tin", "night", night, None, "ann")
    with pytest.raises(Invalid) as refused:
        store.contracts.put(
            "tin", "noon", promise(1.0, hours=(Hours("12:00", "13:00"),)), None, "x"
        )
    assert fields(refused) == ["guarantee_pps"]


def test_advice_is_for_the_hours_at_which_a_contract_holds(store: Store, epoch: int) -> None:
    del epoch
    store.contracts.put("tin", "day", promise(45e3, hours=(Hours("06:00", "22:00"),)), None, "ann")
    night = (Hours("22:00", "06:00"),)
    with pytest.raises(Invalid, match="promise at most 50000,"):
        store.contracts.put("tin", "night", promise(60e3, hours=night), None, "ann")
    store.contracts.put("tin", "night", promise(50e3, hours=night), None, "ann")


def test_what_is_over_leaves_room_and_what_is_to_come_takes_it(
    backend: "Backend", store: Store, epoch: int
) -> None:
    del epoch
    store.contracts.put("tin", "r1", promise(50e3, valid_until=NOW + DAY), None, "ann")
    store.contracts.put("tin", "r2", promise(50e3, valid_from=NOW + DAY), None, "ann")
    with pytest.raises(Invalid):
        store.contracts.put("tin", "r3", promise(1.0, valid_until=NOW + DAY), None, "ann")
    backend.clock.forward(days=2)
    store.contracts.put("tin", "r1", promise(0.0), 1, "ann")
    with pytest.raises(Invalid):
        store.contracts.put("tin", "r3", promise(1.0), None, "ann")


@pytest.mark.parametrize(
    ("odd", "field"),
    [
        ({"zone": "Mars/Phobos", "hours": (Hours("08:00", "09:00"),)}, "zone"),
        ({"hours": (Hours("08:00", "09:00"),) * 17}, "hours"),
        ({"valid_from": NOW.replace(year=9999)}, "valid_from"),
        ({"valid_until": NOW.replace(year=1)}, "valid_until"),
        ({"hours": (Hours("08:00", "09:00", class_name="iron"),)}, "class"),
    ],
    ids=["zone", "hours", "from", "until", "class"],
)
def test_a_time_that_makes_no_sense_is_refused_and_counted_nowhere(
    store: Store, epoch: int, odd: dict[str, Any], field: str
) -> None:
    del epoch
    store.contracts.put("tin", "r1", promise(20e3), None, "ann")
    contract = promise(10e3, **odd)
    with pytest.raises(Invalid) as refused:
        store.contracts.put("tin", "r2", contract, None, "ann")
    assert field in fields(refused)
    checked = store.contracts.check("tin", "r2", contract)
    assert field in [problem.field for problem in checked.problems]
    assert checked.promised_pps == 20e3


def test_dates_are_given_back_as_the_instants_that_they_are(
    backend: "Backend", store: Store, epoch: int
) -> None:
    del epoch
    hours = (Hours("22:00", "06:00", ("fri", "sat")),)
    contract = promise(
        1e3, valid_from=NOW, valid_until=NOW + DAY, hours=hours, zone="Europe/Berlin"
    )
    store.contracts.put("gold", "r1", contract, None, "ann")
    assert backend.open().contracts.get("gold", "r1").value == contract


# Contracts that follow routers.


def test_a_contract_that_follows_counts_where_its_router_is(store: Store, epoch: int) -> None:
    follow(store, "r1", promise(40e3))
    assert (promised(store, "gold"), promised(store, "tin")) == (0, 0)
    assert store.homes.set({"r1": "tin"}, epoch)
    assert (promised(store, "gold"), promised(store, "tin")) == (0, 40e3)
    with pytest.raises(Invalid):
        store.contracts.put("tin", "r2", promise(20e3), None, "ann")
    store.contracts.put("gold", "r2", promise(20e3), None, "ann")
    with pytest.raises(Invalid, match="on tin"):
        store.contracts.put(ANYWHERE, "r1", promise(60e3), 1, "ann")


def test_one_whose_router_is_seen_counts_there_from_the_first_moment(
    store: Store, epoch: int
) -> None:
    """Else more is promised before the leader has written where it is."""
    del epoch
    follow(store, "r1", promise(40e3), "tin")
    assert store.homes.all() == {"r1": "tin"}
    with pytest.raises(Invalid):
        follow(store, "r2", promise(20e3), "tin")
    assert store.homes.all() == {"r1": "tin"}


def test_one_whose_router_is_seen_on_a_host_that_is_being_removed_is_made(
    store: Store, epoch: int
) -> None:
    del epoch
    follow(store, "r1", promise(40e3), "nowhere")
    assert store.homes.all() == {}


def test_a_router_with_two_contracts_counts_twice(store: Store, epoch: int) -> None:
    """What holds on the host may be removed, or end, before the other."""
    store.contracts.put("tin", "r1", promise(30e3), None, "ann")
    follow(store, "r1", promise(20e3))
    store.homes.set({"r1": "tin"}, epoch)
    assert promised(store, "tin") == 50e3
    with pytest.raises(Invalid):
        store.contracts.put("tin", "r1", promise(31e3), 1, "ann")
    store.contracts.put("tin", "r1", promise(29e3), 1, "ann")


def test_contracts_that_follow_have_versions_history_and_audit_of_their_own(store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(1e3), None, "ann")
    follow(store, "r1", promise(2e3))
    store.contracts.put(ANYWHERE, "r1", promise(3e3), 1, "ben")
    store.contracts.remove(ANYWHERE, "r1", 2, "cid")
    assert [one.contract for one in store.contracts.history(ANYWHERE, "r1")] == [
        None,
        promise(3e3),
        promise(2e3),
    ]
    assert len(store.contracts.history("gold", "r1")) == 1
    assert store.audit.page(None, 1)[0].target == "contract r1"
    with pytest.raises(Unknown):
        store.contracts.remove(ANYWHERE, "r1", 3, "cid")


def test_a_uuid_that_is_followed_is_written_in_small_letters(store: Store) -> None:
    store.hosts.add(host(), "ann")
    with pytest.raises(Invalid, match=f"give {UUID}"):
        follow(store, UUID.upper(), promise(1.0))
    checked = store.contracts.check(ANYWHERE, UUID.upper(), promise(1.0))
    assert [problem.field for problem in checked.problems] == ["vr"]
    follow(store, UUID, promise(1.0))
    store.contracts.put("gold", UUID.upper(), promise(1.0), None, "ann")  # a name like any other


def test_the_row_of_no_host_is_no_host(store: Store) -> None:
    follow(store, "r1", promise(1.0))
    assert store.hosts.all() == []
    for act in (
        partial(store.hosts.get, ANYWHERE),
        partial(store.hosts.remove, ANYWHERE, 1, "ann"),
    ):
        with pytest.raises(Unknown):
            act()


def test_lists_begin_with_contracts_that_follow(store: Store) -> None:
    store.hosts.add(host(), "ann")
    for vr in ("z", "a"):
        follow(store, vr, promise(1.0))
        store.contracts.put("gold", vr, promise(1.0), None, "ann")
    found: list[tuple[str, str]] = []
    while page := store.contracts.page(found[-1] if found else None, 1):
        found += [(name, vr) for name, vr, _ in page]
    assert found == [("", "a"), ("", "z"), ("gold", "a"), ("gold", "z")]
    assert [vr for _, vr, _ in store.contracts.page(None, 9, "gold")] == ["a", "z"]


# Homes.


def test_a_leader_that_was_overtaken_writes_no_homes(store: Store, epoch: int) -> None:
    follow(store, "r1", promise(1.0))
    follow(store, "r2", promise(1.0))
    assert store.homes.set({"r1": "gold"}, epoch)
    assert not store.homes.set({"r1": "tin", "r2": "tin"}, epoch - 1)
    assert not store.homes.set({"r1": "tin"}, epoch + 1)
    assert store.homes.all() == {"r1": "gold"}
    assert store.homes.set({"r1": "tin"}, epoch)
    assert store.homes.all() == {"r1": "tin"}
    assert store.homes.set({}, 0)


def test_homes_are_of_routers_that_contracts_follow_and_hosts_that_are_entered(
    store: Store, epoch: int
) -> None:
    follow(store, "r1", promise(1.0))
    follow(store, "r2", promise(1.0))
    store.contracts.put("gold", "r3", promise(1.0), None, "ann")
    store.homes.set({"r1": "gold", "r2": "nowhere", "r3": "gold", "r4": "gold"}, epoch)
    assert store.homes.all() == {"r1": "gold"}
    store.homes.set({"r1": "nowhere"}, epoch)
    assert store.homes.all() == {}


def test_thousands_of_homes_are_writtenat_once(store: Store, epoch: int) -> None:
    """All routers of a host that was emptied: other clients wait for it."""
    names = [f"r{number}" for number in range(4000)]
    with store._database.write() as connection:
        row = {"host": ANYWHERE, "contract": "{}", "version": 1, "changed_at": NOW}
        rows = [{**row, "changed_by": "ann", "vr": name} for name in names]
        connection.execute(tables.contracts.insert(), rows)
    # Other work on the machine makes it cost more, never less.
    assert any(max(seconds_to_settle(store, names, epoch)) < 2.0 for _ in range(3))


def seconds_to_settle(store: Store, names: list[str], epoch: int) -> list[float]:
    """Return the CPU seconds for homes of routers that had none, and for others after these."""
    with store._database.write() as connection:
        connection.execute(tables.homes.delete())
    seconds = []
    for where in ("gold", "tin"):
        before = time.process_time()
        assert store.homes.set(dict.fromkeys(names, where), epoch)
        seconds.append(time.process_time() - before)
        assert store.homes.all() == dict.fromkeys(names, where)
    return seconds


def test_homes_go_with_their_host_and_with_their_contract(store: Store, epoch: int) -> None:
    for router in ("r1", "r2"):
        follow(store, router, promise(1.0))
    store.homes.set({"r1": "gold", "r2": "tin"}, epoch)
    store.hosts.remove("tin", 1, "ann")  # nothing was promised there alone
    assert store.homes.all() == {"r1": "gold"}
    store.contracts.remove(ANYWHERE, "r1", 1, "ann")
    assert store.homes.all() == {}
    store.homes.set({"r1": "gold"}, epoch)  # written late
    assert store.homes.all() == {}
    follow(store, "r1", promise(1.0))
    assert store.homes.all() == {}


def test_a_class_that_somebody_spoilt_is_named(backend: "Backend", store: Store) -> None:
    store.classes.put("silver", promise(1.0), None, "ann")
    backend.aside().execute("UPDATE classes SET entry = '{\"guarantee_pps\": -1}'")
    with pytest.raises(StoreGone, match="class silver"):
        store.classes.all()


# Clients at the same time.


def test_a_contract_and_its_class_at_the_same_time_promise_no_more_than_there_is(
    backend: "Backend", store: Store
) -> None:
    """One client raises a class, one gives it to a router, and one promises beside it."""
    stores = [backend.open(busy_s=60.0) for _ in range(3)]
    for number in range(15):
        name, silver = f"host{number}", f"silver{number}"
        store.hosts.add(host(name), "ann")
        store.classes.put(silver, promise(10e3), None, "ann")
        if number % 2:
            store.contracts.put(name, "r0", Contract(class_name=silver), None, "ann")
        one, two, three = stores
        at_once(
            partial(one.classes.put, silver, promise(45e3), 1, "ann"),
            partial(two.contracts.put, name, "r1", Contract(class_name=silver), None, "ben"),
            partial(three.contracts.put, name, "r2", promise(60e3), None, "cid"),
        )
        assert 0 < promised(store, name) <= 100e3


def test_a_class_that_is_given_to_other_hosts_meanwhile_is_checked_there(
    backend: "Backend", store: Store
) -> None:
    stores = [backend.open(busy_s=60.0) for _ in range(2)]
    for number in range(15):
        name, silver = f"host{number}", f"silver{number}"
        store.hosts.add(host(name, 50e3), "ann")
        store.classes.put(silver, promise(10e3), None, "ann")
        outcomes = at_once(
            partial(stores[0].classes.put, silver, promise(60e3), 1, "ann"),
            partial(stores[1].contracts.put, name, "r1", Contract(class_name=silver), None, "ben"),
        )
        assert sorted(map(type, outcomes), key=str) == sorted([Stored, Invalid], key=str)
        assert promised(store, name) <= 50e3


def test_a_class_is_not_removed_while_a_contract_that_names_it_is_made(
    backend: "Backend", store: Store
) -> None:
    stores = [backend.open(busy_s=60.0) for _ in range(2)]
    store.hosts.add(host(), "ann")
    for number in range(15):
        silver = f"silver{number}"
        store.classes.put(silver, promise(1.0), None, "ann")
        outcomes = at_once(
            partial(stores[0].classes.remove, silver, 1, "ann"),
            partial(
                stores[1].contracts.put, "gold", silver, Contract(class_name=silver), None, "ben"
            ),
        )
        assert sum(isinstance(one, Invalid) for one in outcomes) == 1
        there = silver in store.contracts.all().get("gold", {})
        assert there is (silver in store.classes.all())


def test_two_contracts_that_follow_to_one_host_are_not_both_admitted(
    backend: "Backend", store: Store
) -> None:
    stores = [backend.open(busy_s=60.0) for _ in range(2)]
    for number in range(15):
        name = f"host{number}"
        store.hosts.add(host(name), "ann")
        outcomes = at_once(
            *(
                partial(
                    one.contracts.put,
                    ANYWHERE,
                    f"{vr}-{number}",
                    promise(60e3),
                    None,
                    "ann",
                    seen_on=name,
                )
                for one, vr in zip(stores, ("a", "b"), strict=True)
            )
        )
        assert sorted(map(type, outcomes), key=str) == sorted([Stored, Invalid], key=str)


def test_two_clients_cannot_make_the_same_class(backend: "Backend") -> None:
    first, second = (backend.open(busy_s=60.0) for _ in range(2))
    for number in range(15):
        put = [
            partial(one.classes.put, f"silver{number}", promise(1.0), None, "x")
            for one in (first, second)
        ]
        outcomes = at_once(*put)
        assert sorted(map(type, outcomes), key=str) == sorted([Stored, Taken], key=str)


def test_moves_and_changes_at_the_same_time_wait_for_each_other_in_no_circle(
    backend: "Backend", store: Store, epoch: int
) -> None:
    stores = [backend.open(busy_s=60.0) for _ in range(3)]
    store.classes.put("silver", promise(1.0), None, "ann")
    follow(store, "r0", SILVER)
    for number in range(1, 20):
        outcomes = at_once(
            partial(stores[0].homes.set, {"r0": ("gold", "tin")[number % 2]}, epoch),
            partial(stores[1].contracts.put, ANYWHERE, "r0", SILVER, number, "ann"),
            partial(stores[2].classes.put, "silver", promise(1.0 + number), number, "ann"),
        )
        assert not any(isinstance(one, PolicerError) for one in outcomes), outcomes


def test_a_leader_that_writes_and_a_host_that_changes_wait_for_each_other_in_no_circle(
    backend: "Backend", store: Store, epoch: int
) -> None:
    stores = [backend.open(busy_s=60.0) for _ in range(4)]
    follow(store, "r0", promise(1.0))
    row = PunishmentRow("gold", "r0", 1, guilty=True, since=NOW, step="warn")
    for number in range(1, 25):
        way = {"requests": f"ipc:///run/{number}/a", "telemetry": f"ipc:///run/{number}/b"}
        moved = msgspec.structs.replace(host(), **way)
        outcomes = at_once(
            partial(stores[0].homes.set, {"r0": "gold"}, epoch),
            partial(stores[1].punishments.set, [row], [], epoch),
            partial(stores[2].hosts.replace, moved, number, "ann"),
            partial(stores[3].hosts.add, host(f"new{number}"), "ann"),
        )
        assert not any(isinstance(one, PolicerError) for one in outcomes), outcomes
