"""Overrides in the store, on both databases: versions, events, audit, ends."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from store_values import host, promise

from policer.contracts.overrides import Override
from policer.contracts.promised import ANYWHERE
from policer.errors import Invalid, Stale, Taken, Unknown
from policer.store import OverrideKey, Store

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

HOST, ROUTER = OverrideKey("suspension", "gold"), OverrideKey("exemption", "gold", "r1")


@pytest.fixture(autouse=True)
def filled(store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", promise(20e3), None, "ann")


@pytest.fixture
def ending(backend: "Backend") -> Override:
    until = backend.clock() + timedelta(hours=1)
    return Override("exemption", "exempt", "gold", "r1", until, "a test")


SUSPENDED = Override("suspension", "suspended", "gold")


def events(store: Store) -> list[tuple[str, str, str | None, str]]:
    """Return kind, host, router and actor of each event, the oldest first."""
    rows = store.events.since(0, 99)
    return [(row.kind, row.host, row.vr, row.actor) for row in rows]


def audited(store: Store) -> list[tuple[str, str]]:
    """Return what the audit log has of overrides, the oldest first."""
    rows = [(row.action, row.target) for row in store.audit.page(None, 99)[::-1]]
    return [row for row in rows if not row[1].startswith(("host", "contract"))]


def test_an_override_is_set_changed_and_cleared(
    backend: "Backend", store: Store, ending: Override
) -> None:
    before = store.generation()
    made = store.overrides.put(ending, None, "ben")
    assert (made.version, made.by, made.at) == (1, "ben", backend.clock())
    assert store.overrides.get(ROUTER) == made == store.overrides.all()[0]
    with pytest.raises(Taken):
        store.overrides.put(ending, None, "cid")
    with pytest.raises(Stale):
        store.overrides.put(ending, 2, "cid")
    assert store.overrides.put(ending, 1, "cid").version == 2
    with pytest.raises(Stale):
        store.overrides.clear(ROUTER, 1, "cid")
    store.overrides.clear(ROUTER, 2, "dan")
    for attempt in (
        lambda: store.overrides.get(ROUTER),
        lambda: store.overrides.clear(ROUTER, 3, ""),
    ):
        with pytest.raises(Unknown, match="policer override list"):
            attempt()
    with pytest.raises(Stale):
        store.overrides.put(ending, 3, "cid")  # a version that was cleared is not replaced
    assert store.overrides.put(ending, None, "eva").version == 4
    assert [kind for kind, *_ in events(store)] == [
        "override_set",
        "override_set",
        "override_cleared",
        "override_set",
    ]
    assert events(store)[2] == ("override_cleared", "gold", "r1", "dan")
    assert "a test" in store.events.page(None, 1)[0].words
    target = "exemption gold/r1"
    assert audited(store) == [("put", target), ("put", target), ("remove", target), ("put", target)]
    assert store.audit.page(None, 1)[0].after["reason"] == "a test"
    assert store.generation() == before + 4


def test_the_brake_is_automatic_until_it_is_set_and_again_when_it_is_cleared(store: Store) -> None:
    first = store.overrides.brake()
    assert (first.mode, first.version) == ("automatic", 1)
    assert store.overrides.all() == []
    same = store.overrides.put(Override("brake", "automatic"), 1, "ben")
    assert (same.version, events(store), audited(store)) == (1, [], [])
    on = store.overrides.put(Override("brake", "on", reason="wrong model"), 1, "ben")
    assert store.overrides.brake() == on == store.overrides.all()[0]
    with pytest.raises(Stale):
        store.overrides.put(Override("brake", "off"), 1, "cid")
    with pytest.raises(Taken):
        store.overrides.put(Override("brake", "off"), None, "cid")
    cleared = store.overrides.put(Override("brake", "automatic", reason="measured"), 2, "cid")
    assert (cleared.mode, cleared.version, cleared.by) == ("automatic", 3, "cid")
    assert store.overrides.all() == []
    assert audited(store) == [("put", "brake"), ("remove", "brake")]
    assert store.events.page(None, 1)[0].words == "the brake is automatic again: measured"


def test_what_is_not_there_cannot_be_overridden(store: Store, ending: Override) -> None:
    with pytest.raises(Unknown, match="no host iron"):
        store.overrides.put(Override("suspension", "suspended", "iron"), None, "ben")
    stranger = Override("exemption", "exempt", "gold", "r9", ending.until)
    with pytest.raises(Unknown, match=r"gold/r9.*never punished"):
        store.overrides.put(stranger, None, "ben")
    assert (store.overrides.all(), events(store)) == ([], [])


def test_what_may_not_be_set_is_refused_by_its_field(backend: "Backend", store: Store) -> None:
    over = Override("brake", "on", until=backend.clock())
    with pytest.raises(Invalid, match="until: it is over"):
        store.overrides.put(over, 1, "ben")
    with pytest.raises(Invalid, match="not valid text"):
        store.overrides.put(Override("brake", "on", reason="\ud800"), 1, "ben")


def test_an_end_is_an_event_once_whoever_finds_it(
    backend: "Backend", store: Store, ending: Override
) -> None:
    store.overrides.put(ending, None, "ben")
    store.overrides.put(SUSPENDED, None, "ben")
    store.overrides.end_due()
    before = store.generation()
    assert len(events(store)) == 2
    backend.clock.forward(hours=1)
    with pytest.raises(Unknown):
        store.overrides.get(ROUTER)
    store.overrides.end_due()
    store.overrides.end_due()
    assert events(store)[2:] == [("override_expired", "gold", "r1", "policer")]
    assert [one.kind for one in store.overrides.all()] == ["suspension"]
    assert store.generation() == before + 1
    assert len(audited(store)) == 2


def test_a_change_that_comes_before_the_leader_ends_what_is_over(
    backend: "Backend", store: Store, ending: Override
) -> None:
    store.overrides.put(ending, None, "ben")
    brake = Override("brake", "on", until=ending.until)
    store.overrides.put(brake, 1, "ben")
    backend.clock.forward(hours=2)
    assert store.overrides.brake().mode == "automatic"
    later = Override("exemption", "exempt", "gold", "r1", backend.clock() + timedelta(hours=1))
    assert store.overrides.put(later, None, "cid").version == 3
    assert events(store)[2:] == [
        ("override_expired", "", None, "policer"),
        ("override_expired", "gold", "r1", "policer"),
        ("override_set", "gold", "r1", "cid"),
    ]
    with pytest.raises(Stale):
        store.overrides.put(Override("brake", "on"), 2, "cid")


def test_an_automatic_brake_that_changes_nothing_still_ends_what_is_over(
    backend: "Backend", store: Store, ending: Override
) -> None:
    store.overrides.put(ending, None, "ben")
    backend.clock.forward(hours=2)
    before = store.generation()
    store.overrides.put(Override("brake", "automatic"), 1, "cid")
    assert events(store)[1:] == [("override_expired", "gold", "r1", "policer")]
    assert store.generation() == before + 1


def test_a_host_or_contract_that_is_removed_takes_its_overrides_along(
    store: Store, ending: Override
) -> None:
    store.overrides.put(ending, None, "ben")
    store.overrides.put(SUSPENDED, None, "ben")
    store.overrides.put(Override("brake", "on"), 1, "ben")
    store.contracts.remove("gold", "r1", 1, "ben")
    assert [one.kind for one in store.overrides.all()] == ["brake", "suspension"]
    store.hosts.remove("gold", 1, "cid")
    assert [one.kind for one in store.overrides.all()] == ["brake"]
    assert events(store)[3:] == [
        ("override_cleared", "gold", "r1", "ben"),
        ("override_cleared", "gold", None, "cid"),
    ]
    store.hosts.add(host(), "ann")
    with pytest.raises(Unknown):
        store.overrides.get(HOST)


def test_an_exemption_of_a_contract_that_follows_ends_with_it(
    store: Store, ending: Override
) -> None:
    moving = replace(ending, host=ANYWHERE, vr="r7")
    with pytest.raises(Unknown, match="no contract r7"):
        store.overrides.put(moving, None, "ben")
    store.contracts.put(ANYWHERE, "r7", promise(20e3), None, "ann")
    assert store.overrides.put(moving, None, "ben").version == 1
    assert audited(store) == [("put", "exemption r7")]
    store.contracts.remove(ANYWHERE, "r7", 1, "cid")
    assert store.overrides.all() == []
    assert events(store)[-1] == ("override_cleared", "", "r7", "cid")


def test_the_highest_epoch_that_is_asked_for_counts_until_it_is_taken(store: Store) -> None:
    lead = store.leadership("me")
    epoch = lead.acquire()
    assert epoch is not None

    def ask(above: int) -> Override:
        return store.overrides.ask_epoch(Override("epoch", "above", above=above), "ben")

    with pytest.raises(Invalid, match=f"the epoch is {epoch}"):
        ask(epoch - 1)
    assert ask(epoch + 100).above == epoch + 100
    assert ask(epoch + 50).above == epoch + 100
    store.overrides.took_epoch(epoch + 100)
    assert [one.above for one in store.overrides.all()] == [epoch + 100]
    taken = lead.acquire(epoch + 100)
    assert taken == epoch + 101
    for _ in range(2):
        store.overrides.took_epoch(taken)
    assert store.overrides.all() == []
    (raised,) = store.events.page(None, 9, kind="epoch_raised")
    assert (raised.words, raised.actor) == (f"epoch {taken} is taken, above {epoch + 100}", "ben")
    assert audited(store) == [("put", "epoch"), ("put", "epoch")]


def test_overrides_go_with_the_version_that_knows_them(backend: "Backend", store: Store) -> None:
    store.overrides.put(SUSPENDED, None, "ben")
    store.bring_down("0003")
    again = backend.open(upgrade=True)
    assert again.overrides.all() == []
    assert again.overrides.brake().mode == "automatic"
    assert again.overrides.put(SUSPENDED, None, "ben").version == 1
