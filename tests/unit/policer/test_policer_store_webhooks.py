"""Webhooks and their letters in the store, on both databases."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from policer.errors import Invalid, Taken, Unknown
from policer.store import Event, Store, Tried, WebhookRow
from policer.store.service import deliveries as module
from policer.store.service import webhooks as webhooks_module

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

SECRET = "whsec_dGhpcyBpcyB0aGUgc2VjcmV0IG9mIGEgdGVzdA=="
URL = "https://hooks.example/T0/B1/path-that-is-a-secret"


@pytest.fixture
def epoch(store: Store) -> int:
    """The epoch of a policer that leads."""
    epoch = store.leadership("ann").acquire()
    assert epoch is not None
    return epoch


@pytest.fixture
def hook(store: Store) -> WebhookRow:
    return store.webhooks.add("pager", URL, ["punished", "brake"], SECRET, "ann")


def tried(
    number: int, problem: str = "it answers: 500", *, letter: int | None = None, **fields: object
) -> Tried:
    one = Tried(f"evt_{number}", "punished", f'{{"n": {number}}}', 1, problem, letter=letter)
    return Tried(**{name: getattr(one, name) for name in Tried.__struct_fields__} | fields)  # type: ignore[arg-type]


def bodies(rows: list[module.LetterRow]) -> list[str]:
    return [row.message for row in rows]


def test_a_webhook_begins_with_what_happens_after_it(store: Store) -> None:
    store.events.add([Event("gold", "punished", "before")])
    row = store.webhooks.add("pager", URL, ["punished", "brake", "brake"], SECRET, "ann")
    assert (row.name, row.url, row.kinds, row.position) == ("pager", URL, ("brake", "punished"), 1)
    assert (row.waiting, row.dead, row.tried_at, row.problem) == (0, 0, None, "")
    assert store.webhooks.all() == [store.webhooks.get(row.id)] == [row]
    (endpoint,) = store.webhooks.endpoints()
    assert (endpoint.secret, endpoint.url, endpoint.next_at) == (SECRET, URL, None)


def test_no_secret_is_in_the_audit_log(store: Store, hook: WebhookRow) -> None:
    store.webhooks.remove(hook.id, "ben")
    removed, added = store.audit.page(None, 9)[:2]
    assert (added.action, added.target, added.actor) == ("add", f"webhook {hook.id}", "ann")
    assert added.after == {
        "name": "pager",
        "origin": "https://hooks.example",
        "kinds": ["brake", "punished"],
    }
    assert (removed.action, removed.before, removed.after) == ("remove", added.after, None)
    log = repr(store.audit.page(None, 99))
    assert SECRET not in log
    assert "secret" not in log


def test_a_name_is_there_once(store: Store, hook: WebhookRow) -> None:
    with pytest.raises(Taken):
        store.webhooks.add("pager", URL, ["*"], SECRET, "ann")
    store.webhooks.remove(hook.id, "ann")
    assert store.webhooks.add("pager", URL, ["*"], SECRET, "ann").id != hook.id


def test_there_are_so_many_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_module, "MOST_WEBHOOKS", 2)
    for name in ("a", "b"):
        store.webhooks.add(name, URL, ["*"], SECRET, "ann")
    with pytest.raises(Invalid, match="2 webhooks already"):
        store.webhooks.add("c", URL, ["*"], SECRET, "ann")


def test_what_is_not_there_is_unknown(store: Store) -> None:
    for ask in (store.webhooks.get, store.webhooks.endpoint):
        with pytest.raises(Unknown, match="webhook"):
            ask("0123456789ab")
    with pytest.raises(Unknown):
        store.webhooks.remove("0123456789ab", "ann")
    with pytest.raises(Unknown):
        store.letters.dead("0123456789ab", None, 9)
    with pytest.raises(Unknown):
        store.letters.redeliver("0123456789ab", None, "ann")


def test_what_was_not_taken_waits_and_is_due_again(
    backend: "Backend", store: Store, hook: WebhookRow, epoch: int
) -> None:
    soon, later = (backend.clock() + timedelta(seconds=n) for n in (5, 60))
    batch = [tried(1, next_at=later), tried(2, next_at=soon), tried(3, problem="")]
    assert store.letters.settle(hook.id, batch, 3, epoch)
    row = store.webhooks.get(hook.id)
    assert (row.position, row.waiting, row.dead, row.problem) == (3, 2, 0, "")
    assert store.webhooks.endpoints()[0].next_at == soon
    assert bodies(store.letters.due(hook.id, backend.clock(), 9)) == []
    due = store.letters.due(hook.id, later, 9)
    assert bodies(due) == ["evt_2", "evt_1"]
    assert (due[0].body, due[0].attempts, due[0].problem) == ('{"n": 2}', 1, "it answers: 500")
    again = [tried(2, problem="", letter=due[0].id), tried(1, attempts=2, letter=due[1].id)]
    assert store.letters.settle(hook.id, again, 3, epoch)
    assert store.letters.due(hook.id, later, 9) == []
    assert [(row.message, row.attempts) for row in store.letters.dead(hook.id, None, 9)] == [
        ("evt_1", 2)
    ]


def test_a_leader_that_was_overtaken_settles_nothing(
    store: Store, hook: WebhookRow, epoch: int
) -> None:
    assert not store.letters.settle(hook.id, [tried(1)], 7, epoch - 1)
    assert store.webhooks.get(hook.id) == hook


def test_a_webhook_that_was_removed_meanwhile_gets_no_letters(
    backend: "Backend", store: Store, hook: WebhookRow, epoch: int
) -> None:
    store.letters.settle(hook.id, [tried(1), tried(2, next_at=backend.clock())], 2, epoch)
    store.webhooks.remove(hook.id, "ann")
    assert store.letters.settle(hook.id, [tried(3)], 3, epoch)
    aside = backend.aside()
    assert aside.execute("SELECT count(*) FROM webhook_letters").fetchone() == (0,)


def test_no_more_wait_than_may(
    backend: "Backend",
    store: Store,
    hook: WebhookRow,
    epoch: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    batch = [tried(n, next_at=backend.clock()) for n in range(5)]
    store.letters.settle(hook.id, batch, 5, epoch)
    row = store.webhooks.get(hook.id)
    assert (row.waiting, row.dead) == (3, 2)
    due = store.letters.due(hook.id, backend.clock(), 9)
    again = [tried(0, attempts=2, next_at=backend.clock(), letter=due[0].id)]
    store.letters.settle(hook.id, again, 5, epoch)  # who waits already goes on to wait
    assert store.webhooks.get(hook.id).waiting == 3


def test_no_more_dead_are_kept_than_may_be(
    store: Store, hook: WebhookRow, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_DEAD", 4)
    for number in range(0, 9, 3):
        store.letters.settle(hook.id, [tried(number + n) for n in range(3)], number, epoch)
    assert bodies(store.letters.dead(hook.id, None, 9)) == ["evt_8", "evt_7", "evt_6", "evt_5"]


def test_dead_letters_come_in_pages_and_are_sent_again(
    backend: "Backend", store: Store, hook: WebhookRow, epoch: int
) -> None:
    store.letters.settle(hook.id, [tried(n) for n in range(5)], 5, epoch)
    first = store.letters.dead(hook.id, None, 2)
    rest = store.letters.dead(hook.id, first[-1].id, 9)
    assert bodies(first + rest) == [f"evt_{n}" for n in (4, 3, 2, 1, 0)]
    assert store.letters.redeliver(hook.id, [first[0].id, first[1].id, 999], "ben") == 2
    due = store.letters.due(hook.id, backend.clock(), 9)
    assert [(row.message, row.attempts) for row in due] == [("evt_3", 0), ("evt_4", 0)]
    assert store.letters.redeliver(hook.id, None, "ben") == 3
    assert store.webhooks.get(hook.id).dead == 0
    latest = store.audit.page(None, 1)[0]
    assert (latest.action, latest.actor, latest.after) == ("redeliver", "ben", {"messages": 3})
    assert store.letters.redeliver(hook.id, None, "ben") == 0
    assert store.audit.page(None, 1)[0] == latest


def test_no_webhook_sends_another_ones_letters_again(
    store: Store, hook: WebhookRow, epoch: int
) -> None:
    other = store.webhooks.add("other", URL, ["*"], SECRET, "ann")
    store.letters.settle(hook.id, [tried(1)], 1, epoch)
    (dead,) = store.letters.dead(hook.id, None, 9)
    assert store.letters.redeliver(other.id, [dead.id], "ann") == 0


def test_as_many_are_sent_again_as_there_is_room_for(
    store: Store, hook: WebhookRow, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.letters.settle(hook.id, [tried(n) for n in range(5)], 5, epoch)
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    assert store.letters.redeliver(hook.id, None, "ann") == 2
    assert bodies(store.letters.dead(hook.id, None, 9)) == ["evt_4", "evt_3", "evt_2"]


def test_old_dead_letters_are_pruned_and_those_that_wait_stay(
    backend: "Backend", store: Store, hook: WebhookRow, epoch: int
) -> None:
    far: datetime = backend.clock() + timedelta(days=999)
    store.letters.settle(hook.id, [tried(1), tried(2, next_at=far)], 2, epoch)
    backend.clock.forward(days=91)
    assert store.prune(90, 730)["dead_letters"] == 1
    assert store.webhooks.get(hook.id).waiting == 1


def test_events_are_chosen_by_their_kinds(store: Store) -> None:
    kinds = ("punished", "gone", "punished", "brake")
    store.events.add([Event("gold", kind, str(n)) for n, kind in enumerate(kinds)])
    assert store.events.newest() == 4
    assert [e.words for e in store.events.fresh(0, 9, ("punished", "brake"))] == ["0", "2", "3"]
    assert [e.words for e in store.events.fresh(1, 2, None)] == ["1", "2"]
    assert store.events.fresh(0, 9, ()) == []
