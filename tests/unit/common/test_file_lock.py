"""The lock on a file: one holder, and worth nothing once its file is another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.file_lock import FileLock


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert one.take()
    assert one.take(), "kept"
    assert not other.take()
    one.release()
    assert not one.held()
    assert other.take()


def test_the_kernel_releases_the_lock_of_a_killed_holder(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from common.file_lock import FileLock; "
        "lock = FileLock(pathlib.Path(sys.argv[1])); print(lock.take(), flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        mine = FileLock(tmp_path / "lock")
        assert not mine.take()
        holder.kill()
        holder.wait()
        assert mine.take()


def test_a_lock_on_a_removed_file_is_lost_and_can_be_taken_again(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.take()
    (tmp_path / "lock").unlink()
    assert not lock.held()
    assert lock.take()


def test_a_lock_whose_file_was_replaced_is_the_other_holders(tmp_path: Path) -> None:
    lock, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert lock.take()
    (tmp_path / "lock").unlink()
    assert other.take()
    assert not lock.held()
    assert not lock.take()


def test_the_file_has_its_mode(tmp_path: Path) -> None:
    assert FileLock(tmp_path / "lock", 0o600).take()
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_made_is_an_error_and_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  names alone
    lock = FileLock(tmp_path / "missing" / "lock")
    with pytest.raises(FileNotFoundError):
        lock.take()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert not lock.held()
