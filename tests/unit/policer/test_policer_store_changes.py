"""What was changed is read again, and nothing else, on both databases."""

import threading
from typing import TYPE_CHECKING

import pytest
from store_values import host, promise

from policer.errors import StoreGone
from policer.store import Entered, Store

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]


@pytest.fixture
def filled(store: Store) -> Store:
    for name in ("gold", "lead", "tin"):
        store.hosts.add(host(name), "ann")
        for vr in ("r1", "r2"):
            store.contracts.put(name, vr, promise(1e3), None, "ann")
    return store


def spoil(backend: "Backend", but: str) -> None:
    """Make every contract but one host's unreadable: who reads it fails."""
    backend.aside().execute(f"UPDATE contracts SET contract = '-' WHERE host <> '{but}'")


def test_the_first_time_everything_is_read(filled: Store) -> None:
    entered = filled.changes.since(Entered())
    assert dict(entered.hosts) == {name: host(name) for name in ("gold", "lead", "tin")}
    assert entered.contracts == {
        name: dict.fromkeys(("r1", "r2"), promise(1e3)) for name in entered.hosts
    }
    assert entered.changed(Entered()) == {"gold", "lead", "tin"}


def test_where_nothing_was_changed_nothing_is_read(backend: "Backend", filled: Store) -> None:
    entered = filled.changes.since(Entered())
    spoil(backend, but="")
    assert filled.changes.since(entered) is entered


def test_what_was_changed_is_read_and_nothing_else(backend: "Backend", filled: Store) -> None:
    before = filled.changes.since(Entered())
    backend.open().contracts.put("gold", "r1", promise(2e3), 1, "ben")
    spoil(backend, but="gold")
    after = filled.changes.since(before)
    assert after.contracts["gold"] == {"r1": promise(2e3), "r2": promise(1e3)}
    assert after.changed(before) == {"gold"}
    assert after.contracts["tin"] is before.contracts["tin"]


def test_what_was_removed_is_gone(filled: Store) -> None:
    before = filled.changes.since(Entered())
    for vr in ("r1", "r2"):
        filled.contracts.remove("tin", vr, 1, "ann")
    filled.hosts.remove("tin", 1, "ann")
    after = filled.changes.since(before)
    assert set(after.hosts) == set(after.contracts) == {"gold", "lead"}
    assert after.changed(before) == {"tin"}


def test_a_host_without_contracts_is_changed_by_its_first(store: Store) -> None:
    store.hosts.add(host(), "ann")
    before = store.changes.since(Entered())
    store.contracts.put("gold", "r1", promise(1e3), None, "ann")
    assert store.changes.since(before).changed(before) == {"gold"}


def test_a_token_changes_no_host(filled: Store) -> None:
    before = filled.changes.since(Entered())
    filled.tokens.add("me", ["read"], None, "ann")
    after = filled.changes.since(before)
    assert after is not before
    assert after.changed(before) == set()


def test_several_read_each_what_it_has_not_read(backend: "Backend", filled: Store) -> None:
    other = backend.open()
    one, two = filled.changes.since(Entered()), other.changes.since(Entered())
    filled.contracts.put("gold", "r1", promise(2e3), 1, "ann")
    one = filled.changes.since(one)
    other.contracts.put("lead", "r1", promise(3e3), 1, "ben")
    assert filled.changes.since(one).changed(one) == {"lead"}
    assert other.changes.since(two).changed(two) == {"gold", "lead"}


@pytest.mark.parametrize("lost", ["all", "newest"])
def test_whoever_has_not_the_last_change_reads_everything(
    backend: "Backend", filled: Store, lost: str
) -> None:
    """The audit log was pruned: nothing shows that the database goes on from what was read."""
    before = filled.changes.since(Entered())
    newest = filled.audit.page(None, 1)[0].id
    where = "" if lost == "all" else f" WHERE id = {newest}"
    backend.aside().execute(f"DELETE FROM audit{where}")
    after = filled.changes.since(before)
    assert after.changed(before) == set(before.hosts)
    assert (after.hosts, after.contracts) == (before.hosts, before.contracts)
    assert filled.changes.since(after) is after


def test_a_restored_database_of_the_same_generation_is_read_whole(
    backend: "Backend", filled: Store
) -> None:
    """As many other changes were made since the backup, by the time that somebody looks."""
    aside = backend.aside()
    aside.execute("CREATE TABLE kept AS SELECT * FROM contracts")
    aside.execute("CREATE TABLE kept_generation AS SELECT * FROM generation")
    (newest,) = aside.execute("SELECT max(id) FROM audit").fetchone()
    filled.contracts.put("gold", "r1", promise(2e3), 1, "ann")
    before = filled.changes.since(Entered())
    aside.execute(
        "UPDATE contracts SET contract = kept.contract, version = kept.version,"
        " generation = kept.generation FROM kept"
        " WHERE kept.host = contracts.host AND kept.vr = contracts.vr"
    )
    aside.execute("UPDATE generation SET number = (SELECT number FROM kept_generation)")
    aside.execute(f"DELETE FROM audit WHERE id > {newest}")
    backend.clock.forward(seconds=1)
    backend.open().contracts.put("lead", "r1", promise(3e3), 1, "ben")
    assert filled.generation() == before.mark.generation if before.mark else False
    after = filled.changes.since(before)
    assert after.contracts["gold"]["r1"] == promise(1e3)
    assert after.contracts["lead"]["r1"] == promise(3e3)


def test_a_row_without_a_generation_is_read_with_every_change(
    backend: "Backend", filled: Store
) -> None:
    """One that some other program wrote, which does not number rows."""
    entered, aside = filled.changes.since(Entered()), backend.aside()
    for rate in (7.0, 8.0):
        text = f"'{{\"guarantee_pps\": {rate}}}'"
        aside.execute(f"UPDATE contracts SET contract = {text}, generation = NULL WHERE vr = 'r1'")
        aside.execute("UPDATE generation SET number = number + 1")
        entered = filled.changes.since(entered)
        assert entered.contracts["tin"] == {"r1": promise(rate), "r2": promise(1e3)}


def test_an_unreadable_row_is_named_until_it_is_mended(backend: "Backend", filled: Store) -> None:
    before = filled.changes.since(Entered())
    filled.contracts.put("gold", "r1", promise(2e3), 1, "ann")
    aside = backend.aside()
    aside.execute("UPDATE contracts SET contract = '-' WHERE host = 'gold' AND vr = 'r1'")
    for rate in (1e3, 2e3):
        filled.contracts.put("tin", f"n{rate:g}", promise(rate), None, "ann")
        with pytest.raises(StoreGone, match="contract gold/r1"):
            filled.changes.since(before)
    fixed = "'{\"guarantee_pps\": 7.0}'"
    aside.execute(f"UPDATE contracts SET contract = {fixed} WHERE host = 'gold' AND vr = 'r1'")
    after = filled.changes.since(before)
    assert after.contracts["gold"] == {"r1": promise(7.0), "r2": promise(1e3)}
    assert len(after.contracts["tin"]) == 4


def test_nothing_is_missed_while_many_change_things(backend: "Backend", filled: Store) -> None:
    """Changes are committed while the reader reads; every reading goes on from the last one."""
    stores = [backend.open(busy_s=30.0) for _ in range(3)]

    def change(number: int) -> None:
        name = ("gold", "lead", "tin")[number]
        for turn in range(20):
            stores[number].contracts.put(name, f"n{turn}", promise(1.0), None, "ann")

    threads = [threading.Thread(target=change, args=(number,)) for number in range(3)]
    entered = filled.changes.since(Entered())
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        entered = filled.changes.since(entered)
    entered = filled.changes.since(entered)
    whole = filled.changes.since(Entered())
    assert (entered.hosts, entered.contracts) == (whole.hosts, whole.contracts)
    assert len(entered.contracts["tin"]) == 22


def test_classes_are_read_again_where_they_were_changed(filled: Store) -> None:
    filled.classes.put("basic", promise(1e3), None, "ann")
    filled.classes.put("fine", promise(2e3), None, "ann")
    before = filled.changes.since(Entered())
    assert before.classes == {"basic": promise(1e3), "fine": promise(2e3)}
    filled.classes.put("basic", promise(3e3), 1, "ben")
    filled.classes.remove("fine", 1, "ben")
    after = filled.changes.since(before)
    assert after.classes == {"basic": promise(3e3)}
    assert after.changed(before) == set()


def test_homes_are_read_of_the_routers_that_are_asked_for(store: Store) -> None:
    store.hosts.add(host(), "ann")
    routers = [f"r{number}" for number in range(600)]
    for router in routers[:3]:
        store.contracts.put("", router, promise(1.0), None, "ann")
    assert store.homes.set(dict.fromkeys(routers[:3], "gold"), 0)
    assert store.homes.of({"r1", "unseen"}) == {"r1": "gold"}
    assert store.homes.of(set(routers[1:])) == {"r1": "gold", "r2": "gold"}
    assert store.homes.of(set()) == {}
