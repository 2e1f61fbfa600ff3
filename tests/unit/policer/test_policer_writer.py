"""The writer: what was decided in an epoch that is over is never written, on both databases."""

import threading
from datetime import UTC, datetime

import pytest
from store_values import host

from policer.errors import StoreBusy
from policer.service.writer import Writer
from policer.store import Event, PunishmentRow, Store

pytest_plugins = ["store_rig"]

KEY = ("gold", "r1")


def row(height: int = 1, vr: str = "r1") -> PunishmentRow:
    return PunishmentRow("gold", vr, height, True, datetime(2026, 3, 1, tzinfo=UTC), "warn")


@pytest.fixture
def epoch(store: Store) -> int:
    """The epoch of a policer that leads, over a host that is there."""
    store.hosts.add(host(), "ann")
    return taken(store)


def taken(store: Store, name: str = "ann") -> int:
    """Take the lead, and lose it at once; return its epoch."""
    leadership = store.leadership(name)
    epoch = leadership.acquire()
    leadership.release()
    assert epoch is not None
    return epoch


def test_what_is_decided_is_written(store: Store, epoch: int) -> None:
    writer = Writer(store)
    writer.punish(*KEY, row(), epoch)
    writer.flush()
    assert store.punishments.all() == {KEY: row()}
    writer.punish(*KEY, None, epoch)
    writer.flush()
    assert store.punishments.all() == {}
    assert writer.punished() == {}


def test_a_leader_that_was_cut_off_does_not_undo_the_next_ones_pardon(
    store: Store, epoch: int
) -> None:
    cut_off, following = Writer(store), Writer(store)
    cut_off.punish(*KEY, row(3), epoch)
    after = taken(store, "ben")
    following.punish(*KEY, None, after)
    following.flush()
    cut_off.flush()
    assert store.punishments.all() == {}
    third = taken(store)
    cut_off.lead(since=third, epoch=third)
    cut_off.flush()
    assert store.punishments.all() == cut_off.punished() == {}


def test_a_pardon_that_waits_holds_where_nobody_else_led_meanwhile(
    store: Store, epoch: int
) -> None:
    writer = Writer(store)
    writer.punish(*KEY, row(), epoch)
    writer.flush()
    writer.punish(*KEY, None, epoch)
    after = taken(store)
    writer.flush()  # nobody has said yet that the epoch is its own
    writer.lead(since=epoch, epoch=after)
    assert writer.punished() == {}
    writer.flush()
    assert store.punishments.all() == {}


def test_events_are_written_though_punishments_are_overtaken(store: Store, epoch: int) -> None:
    writer = Writer(store)
    writer.punish(*KEY, row(), epoch)
    writer.note(Event("gold", "punished", "warn", "r1"))
    taken(store, "ben")
    writer.flush()
    assert (writer.waiting, writer.problem) == (0, "")
    assert store.punishments.all() == {}


def test_who_is_punished_is_known_before_it_is_written(store: Store, epoch: int) -> None:
    writer = Writer(store)
    store.punishments.set([row(1), row(1, "r2")], [])
    writer.punish(*KEY, row(2), epoch)
    writer.punish("gold", "r2", None, epoch)
    assert writer.punished() == {KEY: row(2)}


def test_a_host_that_was_removed_gets_no_ghosts(store: Store, epoch: int) -> None:
    writer = Writer(store)
    writer.punish(*KEY, row(), epoch)
    store.hosts.remove("gold", 1, "ann")
    writer.flush()
    assert store.punishments.all() == {}
    writer.punish(*KEY, row(), epoch)
    writer.forget("gold")
    store.hosts.add(host(), "ann")
    writer.flush()
    assert store.punishments.all() == {}


def test_what_was_decided_while_it_is_written_is_written_next(
    store: Store, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, real = Writer(store), store.punishments.set
    writer.punish(*KEY, row(), epoch)

    def meanwhile(*given: object) -> bool:
        writer.punish(*KEY, row(2), epoch)
        return real(*given)  # type: ignore[arg-type]  # passed on as it came

    with monkeypatch.context() as patch:
        patch.setattr(store.punishments, "set", meanwhile)
        writer.flush()
    assert store.punishments.all() == {KEY: row()}
    writer.flush()
    assert store.punishments.all() == {KEY: row(2)}


def test_an_older_decision_is_never_written_after_a_newer_one(
    store: Store, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads flush: one that the service gave up on, and the last one of a stop."""
    writer, real = Writer(store), store.punishments.set
    began, go_on = threading.Event(), threading.Event()

    def slow(*given: object) -> bool:
        if not began.is_set():
            began.set()
            go_on.wait(10)
        return real(*given)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(store.punishments, "set", slow)
    writer.punish(*KEY, row(), epoch)
    first = threading.Thread(target=writer.flush)
    first.start()
    assert began.wait(10)
    writer.punish(*KEY, None, epoch)
    second = threading.Thread(target=writer.flush)
    second.start()
    second.join(0.2)
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert store.punishments.all() == {}


def test_what_a_busy_store_did_not_take_waits(
    store: Store, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> bool:
        raise StoreBusy("locked by another program")

    writer = Writer(store)
    writer.punish(*KEY, row(), epoch)
    with monkeypatch.context() as patch:
        patch.setattr(store.punishments, "set", busy)
        writer.flush()
    assert writer.problem == "locked by another program"
    writer.flush()
    assert writer.problem == ""
    assert store.punishments.all() == {KEY: row()}
