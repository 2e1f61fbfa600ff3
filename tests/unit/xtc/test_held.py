"""A directory has one holder, though several processes take it at the same time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from common import dirlock as held
from common.directories import open_directory
from common.dirlock import LOCK, hold_within, lock_of, still_held, take_over
from common.errors import Busy
from xtc.errors import TakenOver
from xtc.state.journal import Journal


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    descriptor = open_directory(tmp_path, mode=0o700)
    yield descriptor
    os.close(descriptor)


def test_a_lock_that_is_replaced_while_it_is_taken_is_not_the_directorys(
    opened: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder ends, and a forced release comes in between opening and locking."""
    flock, taken = fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        if not taken:
            taken.append(-1)
            taken[0] = take_over(opened, tmp_path, lock_of(opened))
        flock(descriptor, operation)

    monkeypatch.setattr(held.fcntl, "flock", late)
    with pytest.raises(Busy):
        hold_within(opened, tmp_path, "state_dir")
    assert still_held(opened, taken[0])
    os.close(taken[0])


def test_of_two_forced_releases_one_gets_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung, other = Journal(tmp_path), Journal(tmp_path, force=True)
    original = held.hold_within
    with ExitStack() as stack:
        stack.enter_context(hung)

        def beaten(*arguments: Any) -> int:
            monkeypatch.setattr("xtc.state.journal.hold_within", original)
            stack.enter_context(other)
            return original(*arguments)

        monkeypatch.setattr("xtc.state.journal.hold_within", beaten)
        with pytest.raises(Busy, match="just now"):
            Journal(tmp_path, force=True).open()
        other.check_held()
        with pytest.raises(TakenOver):
            hung.check_held()


def test_of_two_at_the_same_instant_one_waits_for_the_other(opened: int, tmp_path: Path) -> None:
    second = open_directory(tmp_path, mode=0o700)
    try:
        fcntl.flock(second, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="being taken over"):
            take_over(opened, tmp_path, lock_of(opened))
    finally:
        os.close(second)


def test_what_a_takeover_that_was_killed_left_is_no_obstacle(opened: int, tmp_path: Path) -> None:
    (tmp_path / f"{LOCK}.{os.getpid()}").touch()
    lock = take_over(opened, tmp_path, lock_of(opened))
    assert still_held(opened, lock)
    os.close(lock)
