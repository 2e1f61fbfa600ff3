"""The writer: a slow disk delays no tick, the newest ledger wins, and failures are reported."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_rig import plan
from slow_disk import PATIENCE_S, SlowDisk, WriterRig, writer_at
from support.waiting import eventually

from xtc.daemon.durable_first import DurableFirst
from xtc.errors import JournalError
from xtc.spec import SimulatedOriginal, SimulatedSpec
from xtc.state.journal import Entry, Journal, Ledger, boot_id
from xtc.state.writer import WriteBehind
from xtc.wire import (
    Activate,
    Answer,
    Batch,
    Deactivate,
    Envelope,
    Limit,
    Outcomes,
    Pause,
    Status,
    encode,
)

A, B = (Entry(SimulatedSpec(name), SimulatedOriginal(0.5)) for name in "ab")
NONE, ONE, BOTH = (Ledger(boot_id(), entries) for entries in ({}, {"a": A}, {"a": A, "b": B}))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    disk = SlowDisk(monkeypatch)
    yield disk
    disk.go_on()


@pytest.fixture
def journal(tmp_path: Path, disk: SlowDisk) -> Iterator[WriteBehind]:
    journal = writer_at(tmp_path)
    yield journal
    disk.go_on()
    journal.close()


@pytest.fixture
def rig(tmp_path: Path, disk: SlowDisk) -> Iterator[WriterRig]:
    rig = WriterRig(tmp_path, {"a": plan("a"), "b": plan("b")})
    yield rig
    disk.go_on()
    rig.crash()


def idle(journal: WriteBehind) -> None:
    with journal._changed:
        assert journal._changed.wait_for(journal._idle, PATIENCE_S)


def reopened(directory: Path) -> Ledger:
    with Journal(directory) as journal:
        return journal.ledger


# The thread


def test_what_is_stored_is_durable_before_store_returns(
    journal: WriteBehind, tmp_path: Path
) -> None:
    journal.store(ONE)
    assert journal.ledger == ONE
    assert journal.secured == {"a": A}
    journal.close()
    assert reopened(tmp_path) == ONE


def test_what_is_stored_later_does_not_wait(journal: WriteBehind, disk: SlowDisk) -> None:
    disk.stop()
    journal.store_later(ONE)
    assert journal.ledger == NONE
    disk.go_on()
    idle(journal)
    assert journal.ledger == ONE


def test_of_many_ledgers_the_newest_is_written(journal: WriteBehind, disk: SlowDisk) -> None:
    journal.store(NONE)
    disk.stop()
    journal.store_later(ONE)
    disk.wait_until_reached()
    before = disk.synced
    for epoch in range(1, 100):
        journal.store_later(Ledger(boot_id(), highest_epoch=epoch))
    disk.go_on()
    idle(journal)
    assert journal.ledger.highest_epoch == 99
    assert disk.synced - before == 4  # a file and its directory, for the first and for the last


def test_closing_finishes_what_waits(journal: WriteBehind, tmp_path: Path) -> None:
    journal.store_later(ONE)
    journal.store_later(BOTH)
    journal.close()
    assert reopened(tmp_path) == BOTH


def test_nothing_is_written_where_nothing_changed(journal: WriteBehind, disk: SlowDisk) -> None:
    journal.store(ONE)
    before = disk.synced
    for _ in range(3):
        journal.store_later(Ledger(boot_id(), {"a": A}))
        journal.store(Ledger(boot_id(), {"a": A}))
    assert disk.synced == before


def test_a_failure_is_told_and_the_next_try_clears_it(journal: WriteBehind, disk: SlowDisk) -> None:
    disk.error = OSError(28, "No space left on device")
    journal.store_later(ONE)
    idle(journal)
    with pytest.raises(JournalError, match="No space left"):
        journal.store_later(ONE)
    with pytest.raises(JournalError, match="No space left"):
        journal.store(ONE)
    disk.error = None
    journal.store(ONE)
    journal.store_later(ONE)
    assert journal.ledger == ONE


def test_an_error_that_nobody_foresaw_does_not_end_the_writer(
    journal: WriteBehind, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", lambda *_, **__: 1 / 0)
        with pytest.raises(JournalError, match="ZeroDivisionError"):
            journal.store(ONE)
    journal.store(ONE)
    assert journal.ledger == ONE


def unanswered(store: Callable[[Ledger], None]) -> None:
    with pytest.raises(JournalError, match="did not answer"):
        store(ONE)


def test_a_disk_that_hangs_is_waited_for_once(tmp_path: Path, disk: SlowDisk) -> None:
    journal = writer_at(tmp_path, patience=0.05)
    disk.stop()
    unanswered(journal.store)
    disk.wait_until_reached()
    eventually(journal._stall)  # counted from when the writer began
    unanswered(journal.store)
    unanswered(journal.store_later)
    assert journal.secured == {}
    disk.go_on()
    idle(journal)
    assert journal.secured == {"a": A}
    journal.store_later(ONE)
    journal.close()


def test_an_entry_that_a_write_under_way_removes_is_not_secured(
    journal: WriteBehind, disk: SlowDisk
) -> None:
    journal.store(BOTH)
    disk.stop()
    journal.store_later(ONE)
    disk.wait_until_reached()
    assert journal.secured == {"a": A}
    journal.store_later(BOTH)
    assert journal.secured == {"a": A}  # a crash may leave the ledger that is being written
    disk.go_on()
    idle(journal)
    assert journal.secured == {"a": A, "b": B}


def test_an_entry_that_a_failed_write_may_have_removed_is_not_secured(
    tmp_path: Path, disk: SlowDisk
) -> None:
    """Renamed into place, but its directory was not synced."""
    with Journal(tmp_path) as journal:
        journal.store(ONE)
        disk.error = OSError(5, "Input/output error")
        with pytest.raises(JournalError):
            journal.store(NONE)
        assert journal.ledger == ONE
        assert journal.secured == {}
        disk.error = None
        journal.store(ONE)
        assert journal.secured == {"a": A}


# The daemon's loop


def test_a_slow_disk_delays_no_renewal(rig: WriterRig, disk: SlowDisk) -> None:
    rig.hold("a", 20e3)
    rig.settle()
    disk.stop()
    for sequence in range(5):
        rig.ask(Activate("a", 30e3 + sequence, sequence=sequence, ttl_s=30.0))
        rig.tick()
    assert rig.report("a").setpoint_pps == 30e3 + 4
    assert rig.report("a").lease_remaining_s == 29.0
    assert not disk._free.is_set()
    assert rig.manager.journal_problem == ""
    disk.go_on()
    rig.settle()
    assert rig.on_disk().leases["a"].target == 30e3 + 4


def test_a_first_cap_waits_for_a_slow_disk_and_delays_no_other(
    rig: WriterRig, disk: SlowDisk
) -> None:
    rig.hold("a", 20e3)
    rig.settle()
    disk.stop()
    rig.ask(Activate("b", 20e3))
    rig.ask(Activate("a", 60e3))
    rig.tick(8)
    assert rig.cap("b") is None
    assert rig.report("b").problem == rig.manager.journal_problem == ""
    assert rig.holds("a", 60e3)
    disk.wait_until_reached()
    rig.writer._patience = 0.0
    rig.tick()
    assert "did not answer" in rig.report("b").problem
    disk.go_on()
    rig.settle()
    rig.writer._patience = PATIENCE_S
    rig.tick(8)
    assert rig.holds("b", 20e3)
    assert rig.report("b").problem == rig.manager.journal_problem == ""


def test_a_first_cap_comes_as_soon_as_its_original_is_durable(
    rig: WriterRig, disk: SlowDisk
) -> None:
    rig.tick(2)
    disk.stop()
    rig.ask(Activate("a", 20e3))
    rig.tick()
    rig.manager.go_on()
    assert rig.cap("a") is None
    disk.go_on()
    rig.written()
    assert rig.cap("a") is not None


def test_a_cap_that_waits_is_not_written_once_something_else_is_asked(
    rig: WriterRig, disk: SlowDisk
) -> None:
    rig.tick(2)
    disk.stop()
    for name in "ab":
        rig.ask(Activate(name, 20e3))
    rig.tick()
    rig.ask(Deactivate("a"))
    rig.ask(Pause("b"))
    disk.go_on()
    rig.written()
    assert (rig.cap("a"), rig.cap("b")) == (None, None)


def test_a_shield_comes_as_soon_as_the_journal_knows_of_it(tmp_path: Path, disk: SlowDisk) -> None:
    rig = WriterRig(tmp_path, {"a": replace(plan("a"), shield=True)})
    rig.tick(2)
    disk.stop()
    rig.ask(Activate("a", 20e3))
    rig.tick()
    assert rig.shield.rates == {}
    disk.go_on()
    rig.written()
    assert rig.shield.bearing == {"a.0": "a"}
    assert rig.on_disk().shields == {"a": ("a.0",)}
    rig.crash()


def test_a_request_waits_for_the_disk_and_the_loop_does_not(rig: WriterRig, disk: SlowDisk) -> None:
    rig.hold("a", 20e3)
    rig.settle()
    disk.stop()
    orders = DurableFirst(rig.manager, rig.manager.handle)
    raw = encode(Envelope(Activate("a", 30e3, epoch=7)))
    for _ in range(3):
        assert orders.answer(raw) is None
        rig.tick()
    assert rig.report("a").setpoint_pps == 20e3
    disk.go_on()
    rig.settle()
    reply = orders.answer(raw)
    assert reply is not None
    assert isinstance(reply.result, Answer)
    assert rig.on_disk().highest_epoch == 7
    assert rig.report("a").setpoint_pps == 30e3


def test_what_needs_no_write_does_not_wait(rig: WriterRig, disk: SlowDisk) -> None:
    rig.tick(2)
    disk.stop()
    orders = DurableFirst(rig.manager, rig.manager.handle)
    for request in (Status(), Activate("a", 2e4), Activate("x", 2e4, epoch=9), Limit("a", None)):
        assert orders.answer(encode(Envelope(request))) is not None
    assert orders.answer(b"nonsense") is not None


@pytest.mark.parametrize("request_", [Activate("a", 2e4, epoch=7), Limit("a", 2e4)])
def test_what_must_be_durable_first_is_refused_by_a_disk_that_hangs(
    rig: WriterRig, disk: SlowDisk, request_: Activate | Limit
) -> None:
    rig.tick(2)
    rig.settle()
    disk.stop()
    rig.writer._patience = 0.0
    assert rig.refused(request_).code == "journal"
    assert rig.limiter.limits == {}
    assert not rig.report("a").active
    disk.go_on()
    rig.settle()
    rig.writer._patience = PATIENCE_S
    rig.ask(request_)


def test_a_router_held_again_while_its_release_is_written_is_in_the_journal(
    rig: WriterRig, disk: SlowDisk
) -> None:
    """The write under way says that it is released: a crash after it must not lose the original."""
    rig.hold("a", 20e3)
    rig.settle()
    disk.stop()
    rig.writer._patience = 0.05
    rig.ask(Deactivate("a"))
    disk.wait_until_reached()
    rig.ask(Activate("a", 20e3))
    rig.tick(2)
    assert rig.cap("a") is None
    disk.go_on()
    rig.settle()
    rig.writer._patience = PATIENCE_S
    rig.tick(2)
    assert rig.cap("a") is not None
    assert rig.on_disk().entries.keys() == {"a"}


def test_a_failure_behind_the_loop_is_a_problem_of_the_journal(
    rig: WriterRig, disk: SlowDisk
) -> None:
    rig.hold("a", 20e3)
    disk.error = OSError(28, "No space left on device")
    rig.ask(Activate("a", 30e3))
    rig.tick()
    rig.settle()
    rig.tick()
    assert "No space left" in rig.manager.journal_problem
    disk.error = None
    rig.tick()
    rig.settle()
    rig.tick()
    assert rig.manager.journal_problem == ""


# Batches


def outcomes(rig: WriterRig, *changes: Activate) -> list[str | None]:
    result = rig.reply(Batch(changes)).result
    assert isinstance(result, Outcomes)
    return [None if refusal is None else refusal.code for refusal in result.refusals]


def test_a_batch_of_rising_epochs_is_one_write(rig: WriterRig, disk: SlowDisk) -> None:
    rig.hold("a", 2e4)
    rig.settle()
    before = disk.synced
    batch = [Activate("a", 2e4, epoch=epoch, sequence=1) for epoch in range(1, 257)]
    assert outcomes(rig, *batch) == [None] * 256
    assert disk.synced - before == 2  # the file, and its directory
    assert rig.on_disk().highest_epoch == 256


def test_an_epoch_that_is_refused_in_a_batch_is_not_remembered(rig: WriterRig) -> None:
    batch = (
        Activate("a", 2e4, epoch=5, sequence=1),
        Activate("a", 2e4, epoch=6, sequence=1),
        Activate("nobody", 2e4, epoch=70, sequence=1),
        Activate("a", 2e4, epoch=80, sequence=1, ttl_s=0.001),
    )
    assert outcomes(rig, *batch) == [None, None, "unknown_router", "too_short"]
    rig.tick()
    rig.settle()
    assert rig.on_disk().highest_epoch == 6
    rig.ask(Activate("a", 2e4, epoch=7))


def test_rising_epochs_that_cannot_be_remembered_are_refused_and_the_rest_is_not(
    rig: WriterRig, disk: SlowDisk
) -> None:
    disk.error = OSError(28, "No space left on device")
    batch = [Activate("a", 2e4, epoch=epoch) for epoch in (0, 5, 6)]
    assert outcomes(rig, *batch) == [None, "journal", "journal"]
    disk.error = None
    rig.ask(Activate("a", 2e4, epoch=1))
