"""Events and punishments in the store, on both databases."""

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Connection
from store_values import host

from policer.errors import StoreBusy
from policer.store import Event, PunishmentRow, Store
from policer.store.database import pruning
from policer.store.history import events as module

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]


def _words(rows: list[module.EventRow]) -> list[str]:
    return [row.words for row in rows]


def test_an_event_is_given_back_as_it_was_noted(backend: "Backend", store: Store) -> None:
    before = backend.clock() - timedelta(minutes=3)
    store.events.add([Event("gold", "punished", "warn", "r1", "ann"), Event("", "brake", "on")])
    store.events.add([Event("gold", "gone", "silence", at=before)])
    third, second, first = store.events.page(None, 99)
    assert (first.host, first.kind, first.words, first.vr, first.actor, first.at) == (
        "gold",
        "punished",
        "warn",
        "r1",
        "ann",
        backend.clock(),
    )
    assert (second.host, second.vr, second.actor) == ("", None, "policer")
    assert third.at == before
    assert first.id < second.id < third.id


def test_pages_and_the_stream_are_whole_though_events_are_added(store: Store) -> None:
    store.events.add([Event("gold", "k", str(n)) for n in range(5)])
    newest = store.events.page(None, 2)
    store.events.add([Event("gold", "k", str(n)) for n in range(5, 8)])
    older = store.events.page(newest[-1].id, 99)
    assert _words(newest + older) == ["4", "3", "2", "1", "0"]
    assert _words(store.events.since(newest[0].id, 2)) == ["5", "6"]
    assert _words(store.events.since(0, 99)) == [str(n) for n in range(8)]


def test_events_are_found_by_host_router_and_kind(store: Store) -> None:
    store.events.add(
        [
            Event("gold", "punished", "0", "r1"),
            Event("gold", "gone", "1"),
            Event("iron", "punished", "2", "r1"),
            Event("gold", "punished", "3", "r2"),
        ]
    )
    assert _words(store.events.page(None, 99, host="gold")) == ["3", "1", "0"]
    assert _words(store.events.page(None, 99, vr="r1")) == ["2", "0"]
    assert _words(store.events.page(None, 99, kind="punished")) == ["3", "2", "0"]
    assert _words(store.events.page(None, 99, "gold", "r1", "punished")) == ["0"]


def test_what_a_daemon_says_cannot_spoil_its_event(store: Store) -> None:
    odd = "a\0b\udc80c\N{SNOWMAN}'; DROP TABLE events; --"
    store.events.add([Event("gold", "refused", odd), Event("gold", "refused", "x" * 100_000)])
    long, said = _words(store.events.page(None, 99))
    assert said == "a\N{REPLACEMENT CHARACTER}b?c\N{SNOWMAN}'; DROP TABLE events; --"
    assert long == "x" * module.MOST_WORDS


def test_old_events_are_pruned_and_their_numbers_never_given_again(
    backend: "Backend", store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 3)
    store.events.add([Event("gold", "k", f"old {n}") for n in range(7)])
    last = store.events.page(None, 1)[0].id
    backend.clock.forward(days=30)
    assert store.events.prune(keep_days=31) == 0
    assert store.events.prune(keep_days=29) == 7
    assert store.events.page(None, 99) == []
    store.events.add([Event("gold", "k", "new")])
    assert store.events.page(None, 1)[0].id > last
    assert store.events.prune(keep_days=29) == 0


def test_no_event_is_seen_after_a_later_one(backend: "Backend", store: Store) -> None:
    """A reader goes by the highest id that it saw: a lower one must not turn up behind it."""
    writers = [backend.open(busy_s=10.0) for _ in range(3)]
    done = threading.Event()
    seen: list[int] = []

    def write(number: int) -> None:
        for turn in range(15):
            writers[number].events.add(
                [Event("gold", "k", f"{number} {turn} {n}") for n in range(4)]
            )

    def read() -> None:
        last = False
        while not last:
            last = done.is_set()
            while rows := store.events.since(seen[-1] if seen else 0, 50):
                seen.extend(row.id for row in rows)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    reader = threading.Thread(target=read)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert len(seen) == 3 * 15 * 4
    assert seen == sorted(row.id for row in store.events.since(0, 999))


def _row(backend: "Backend", vr: str, height: int = 1, step: str = "warn") -> PunishmentRow:
    return PunishmentRow("gold", vr, height, True, backend.clock(), step)


def test_the_next_leader_reads_who_is_punished(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    rows = [_row(backend, "r1"), _row(backend, "r2", 2, "lower")]
    store.punishments.set(rows, [])
    changed = _row(backend, "r2", 3, "limit")
    store.punishments.set([changed, _row(backend, "r3")], [("gold", "r1"), ("gold", "r9")])
    assert backend.open().punishments.all() == {
        ("gold", "r2"): changed,
        ("gold", "r3"): _row(backend, "r3"),
    }
    store.punishments.set([], [("gold", "r2"), ("gold", "r3")])
    assert store.punishments.all() == {}


def test_a_host_that_was_removed_leaves_nobody_punished(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    store.punishments.set([_row(backend, "r1")], [])
    store.hosts.remove("gold", 1, "ann")
    assert store.punishments.all() == {}


def test_a_host_without_an_entry_has_nobody_punished(backend: "Backend", store: Store) -> None:
    """A leader may write what it decided just before the host was removed."""
    store.hosts.add(host(), "ann")
    store.hosts.remove("gold", 1, "ann")
    assert store.punishments.set([_row(backend, "r1")], [])
    assert store.punishments.all() == {}


def test_an_epoch_that_is_over_writes_nothing(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    leadership = store.leadership("ann")
    before, now = leadership.acquire(), leadership.acquire()
    assert before is not None
    assert now is not None
    assert store.punishments.set([_row(backend, "r1"), _row(backend, "r2")], [], now)
    assert not store.punishments.set([_row(backend, "r3")], [("gold", "r1")], before)
    assert set(store.punishments.all()) == {("gold", "r1"), ("gold", "r2")}


def test_no_epoch_begins_and_no_host_goes_while_punishments_are_written(
    backend: "Backend", store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next leader would read the table, and find it changed behind its back."""
    store.hosts.add(host(), "ann")
    leadership = store.leadership("ann")
    epoch = leadership.acquire()
    leadership.release()
    other, refused = backend.open(), []
    written = store.punishments._upsert

    def meanwhile(connection: Connection, rows: list[PunishmentRow]) -> None:
        written(connection, rows)
        for change in (
            other.leadership("ben").acquire,
            lambda: other.hosts.remove("gold", 1, "ben"),
        ):
            with pytest.raises(StoreBusy):
                change()
            refused.append(change)

    monkeypatch.setattr(store.punishments, "_upsert", meanwhile)
    assert store.punishments.set([_row(backend, "r1")], [], epoch)
    assert len(refused) == 2
    assert set(store.punishments.all()) == {("gold", "r1")}
