"""The journal: durable or refused, never half; one daemon; and nothing guessed at."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from common.errors import Busy
from xtc.errors import JournalError
from xtc.lease import Lease
from xtc.spec import SimulatedOriginal, SimulatedSpec
from xtc.state import journal as module
from xtc.state.journal import Entry, Journal, Ledger, boot_id

ENTRY = Entry(SimulatedSpec("a"), SimulatedOriginal(0.5))
LEDGER = Ledger(boot_id(), {"r": ENTRY}, {"r": Lease(2e4, epoch=3)}, {"r": ("r.0",)}, 3)


def stored(directory: Path, ledger: Ledger = LEDGER) -> Path:
    with Journal(directory) as journal:
        journal.store(ledger)
    return directory / "journal"


def reopened(directory: Path) -> Ledger:
    with Journal(directory) as journal:
        assert journal.quarantined is None
        return journal.ledger


def test_a_ledger_survives(tmp_path: Path) -> None:
    stored(tmp_path / "state")
    assert reopened(tmp_path / "state") == LEDGER


def test_a_fresh_directory_holds_nothing_and_is_ours_alone(tmp_path: Path) -> None:
    assert reopened(tmp_path / "state") == Ledger(boot_id())
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_second_daemon_is_turned_away_until_the_first_ends(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(Busy, match="running xtc daemon"):
        Journal(tmp_path).open()
    Journal(tmp_path).open()


def test_nothing_is_written_where_nothing_changed(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.store(LEDGER)
        before = (tmp_path / "journal").stat()
        journal.store(msgspec.structs.replace(LEDGER))
        assert (tmp_path / "journal").stat() == before


def test_a_journal_that_somebody_removed_is_written_again(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.store(LEDGER)
        (tmp_path / "journal").unlink()
        journal.store(LEDGER)
    assert reopened(tmp_path) == LEDGER


def flipped(raw: bytes) -> bytes:
    return raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:]


@pytest.mark.parametrize(
    "damage",
    [flipped, lambda raw: raw[:-1], lambda raw: raw[5:], lambda _: b"", lambda raw: raw + b"\n"],
)
def test_a_journal_that_cannot_be_trusted_is_set_aside(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = stored(tmp_path)
    spoilt = damage(path.read_bytes())
    path.write_bytes(spoilt)
    with Journal(tmp_path) as journal:
        assert journal.ledger == Ledger(boot_id())
        assert journal.quarantined is not None
        assert journal.quarantined.read_bytes() == spoilt
        journal.store(LEDGER)
    assert reopened(tmp_path) == LEDGER


def test_a_body_of_another_version_is_set_aside(tmp_path: Path) -> None:
    body = b'{"boot_id":"x","entries":{"r":{"spec":{"kind":"quantum"},"original":{}}}}'
    (tmp_path / "journal").write_bytes(
        module._MAGIC + module._checksum(body) + b"\n" + body  # a whole file with a strange body
    )
    with Journal(tmp_path) as journal:
        assert journal.quarantined is not None


def test_another_boot_keeps_epoch_and_endless_leases_alone(tmp_path: Path) -> None:
    """No cap and no limit outlives a boot, and no instant of its clock means anything."""
    ending = Lease(1e4, epoch=2, expires_at=9e9)
    ledger = Ledger("before", {"r": ENTRY}, {"r": Lease(2e4), "s": ending}, {"r": ("r.0",)}, 7)
    stored(tmp_path, ledger)
    assert reopened(tmp_path) == Ledger(boot_id(), leases={"r": Lease(2e4)}, highest_epoch=7)


@pytest.mark.parametrize("call", ["write", "fsync", "open"])
def test_a_full_disk_leaves_the_old_ledger_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with Journal(tmp_path) as journal:
        journal.store(LEDGER)
        with monkeypatch.context() as full:
            full.setattr(os, call, _no_space)
            with pytest.raises(JournalError, match="No space left"):
                journal.store(Ledger(boot_id()))
        assert journal.ledger == LEDGER
        journal.store(Ledger(boot_id()))
    assert reopened(tmp_path) == Ledger(boot_id())


def _no_space(*_: object, **__: object) -> int:
    raise OSError(28, "No space left on device")


def test_after_a_failure_even_the_old_ledger_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one was renamed into place before its directory could be synced."""
    with Journal(tmp_path) as journal:
        journal.store(LEDGER)
        with monkeypatch.context() as failing:
            failing.setattr(module, "_sync_directory", _no_space)
            with pytest.raises(JournalError):
                journal.store(Ledger(boot_id()))
        journal.store(LEDGER)
    assert reopened(tmp_path) == LEDGER


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    stored(tmp_path)
    assert reopened(tmp_path) == LEDGER


def test_a_state_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="file: "):
        Journal(tmp_path / "file").open()


def test_the_new_ledger_is_on_disk_before_its_name_and_its_name_before_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write, fsync of the file, rename, fsync of the directory: else a crash leaves neither."""
    seen: list[tuple[str, ...]] = []
    write, fsync, rename = os.write, os.fsync, os.replace

    def named(descriptor: int) -> str:
        return Path(f"/proc/self/fd/{descriptor}").readlink().name

    def written(descriptor: int, data: bytes) -> int:
        seen.append(("write", named(descriptor)))
        return write(descriptor, data)

    def synced(descriptor: int) -> None:
        seen.append(("fsync", named(descriptor)))
        fsync(descriptor)

    def renamed(source: str, target: str, **where: int) -> None:
        seen.append(("rename", source, target))
        rename(source, target, **where)

    with Journal(tmp_path) as journal:
        monkeypatch.setattr(os, "write", written)
        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", renamed)
        monkeypatch.setattr(os, "rename", renamed)
        journal.store(LEDGER)
    assert seen == [
        ("write", "journal.new"),
        ("fsync", "journal.new"),
        ("rename", "journal.new", "journal"),
        ("fsync", tmp_path.name),
    ]


@pytest.mark.parametrize("failing", ["journal.new", "directory"])
def test_a_sync_that_fails_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    directory = tmp_path / "directory"
    fsync = os.fsync

    def synced(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == failing:
            _no_space()
        fsync(descriptor)

    with Journal(directory) as journal:
        monkeypatch.setattr(os, "fsync", synced)
        with pytest.raises(JournalError, match="No space left"):
            journal.store(LEDGER)
        assert journal.ledger == Ledger(boot_id())


def test_a_rename_that_fails_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path)
    with Journal(tmp_path) as journal:
        monkeypatch.setattr(os, "replace", _no_space)
        with pytest.raises(JournalError, match="No space left"):
            journal.store(Ledger(boot_id()))
        assert journal.ledger == LEDGER
    assert reopened(tmp_path) == LEDGER


def test_what_a_crash_left_half_written_is_written_over(tmp_path: Path) -> None:
    """Left-over bytes behind the ledger would spoil its checksum."""
    (tmp_path / "journal.new").write_bytes(b"x" * 100_000)
    stored(tmp_path)
    assert reopened(tmp_path) == LEDGER


def test_the_journal_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert stored(tmp_path).stat().st_mode & 0o777 == 0o600


def test_a_daemon_that_starts_again_writes_nothing_that_is_there(tmp_path: Path) -> None:
    before = stored(tmp_path).stat()
    with Journal(tmp_path) as journal:
        journal.store(LEDGER)
    after = (tmp_path / "journal").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_state_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    stored(tmp_path / "var" / "lib" / "xtc")
    assert reopened(tmp_path / "var" / "lib" / "xtc") == LEDGER


def test_writing_leaves_no_file_open(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.store(LEDGER)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for epoch in range(4, 9):
            journal.store(msgspec.structs.replace(LEDGER, highest_epoch=epoch))
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_journal_may_be_closed_before_it_is_opened_and_twice(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.close()
    journal.open()
    journal.close()
    journal.close()
    journal.open()
    journal.close()


def test_a_daemon_without_standard_input_releases_the_directory_too(tmp_path: Path) -> None:
    """Its lock is descriptor 0."""
    standard_input = os.dup(0)
    try:
        os.close(0)
        stored(tmp_path)
        assert reopened(tmp_path) == LEDGER
    finally:
        os.dup2(standard_input, 0)
        os.close(standard_input)


def test_a_journal_that_cannot_be_read_is_no_reason_to_guess(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with pytest.raises(JournalError, match="Is a directory"):
        Journal(tmp_path).open()


def test_a_journal_that_cannot_be_set_aside_is_no_reason_to_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"not ours")
    monkeypatch.setattr(os, "replace", _no_space)
    with pytest.raises(JournalError, match="No space left"):
        Journal(tmp_path).open()
    assert path.read_bytes() == b"not ours"


def test_a_journal_that_was_set_aside_is_kept_for_people(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"not ours")
    with Journal(tmp_path) as journal:
        assert journal.quarantined is not None
        assert journal.quarantined.read_bytes() == b"not ours"
        assert journal.ledger == Ledger(boot_id())
    assert not (tmp_path / "journal").exists()


def test_what_is_set_aside_overwrites_nothing_that_was_set_aside_before(tmp_path: Path) -> None:
    """In a container every daemon has the same process number."""
    aside = []
    for content in (b"one", b"other"):
        (tmp_path / "journal").write_bytes(content)
        with Journal(tmp_path) as journal:
            assert journal.quarantined is not None
            aside.append(journal.quarantined)
    assert [path.read_bytes() for path in aside] == [b"one", b"other"]


def test_a_journal_that_cannot_be_read_leaves_the_directory_to_others(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with pytest.raises(JournalError):
        Journal(tmp_path).open()
    (tmp_path / "journal").rmdir()
    Journal(tmp_path).open()


# Links that lead elsewhere


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_the_place_of_the_new_journal_is_not_written_through(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "state").mkdir(mode=0o700)
    link(victim, tmp_path / "state" / "journal.new")
    stored(tmp_path / "state")
    assert victim.read_text() == "precious"
    assert reopened(tmp_path / "state") == LEDGER


@pytest.mark.parametrize("name", ["journal", "lock"])
def test_a_symbolic_link_is_neither_followed_nor_taken_for_a_journal(
    tmp_path: Path, name: str
) -> None:
    elsewhere = stored(tmp_path / "elsewhere")
    before = elsewhere.read_bytes()
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / name).symlink_to(elsewhere)
    with pytest.raises(JournalError, match="symbolic link"):
        Journal(tmp_path / "state").open()
    assert elsewhere.read_bytes() == before


def test_a_link_that_replaced_the_journal_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with Journal(tmp_path / "state") as journal:
        journal.store(LEDGER)
        (tmp_path / "state" / "journal").unlink()
        (tmp_path / "state" / "journal").symlink_to(victim)
        journal.store(LEDGER)
    assert victim.read_text() == "precious"
    assert reopened(tmp_path / "state") == LEDGER


def test_a_directory_that_is_swapped_changes_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "state") as journal:
        (tmp_path / "state").rename(tmp_path / "moved")
        (tmp_path / "state").mkdir(mode=0o700)
        journal.store(LEDGER)
    assert not list((tmp_path / "state").iterdir())
    assert reopened(tmp_path / "moved") == LEDGER
