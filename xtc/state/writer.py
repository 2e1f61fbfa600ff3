"""The daemon's journal, written by a separate thread, so that a slow disk delays no tick.

Only the newest ledger is written; older ones that waited for the disk are dropped. `store` waits
for the disk, at the start and the end of a daemon; `store_later` does not, and wakes the loop when
the write has ended.
"""

import contextlib
import os
import threading
import time
from pathlib import Path

from xtc.errors import JournalError
from xtc.state.journal import UNSTORED, Journal, Ledger, common

STORE_S = 1.0
"""How long the loop waits for the disk; then both the write and the loop continue."""
CLOSE_S = 5.0
"""How long the exit waits for the newest ledger to become durable."""


class WriteBehind(Journal):
    """A journal with a writer thread; one other thread, the loop, calls its methods."""

    def __init__(self, directory: Path, *, patience: float = STORE_S) -> None:
        super().__init__(directory)
        self._patience = patience
        self._changed = threading.Condition()
        self._newest: Ledger | None = None
        """The ledger that the loop wants to be durable."""
        self._waiting = False
        """Whether the newest ledger still has to be written."""
        self._since: float | None = None
        """Start of the current write, by the monotonic clock."""
        self._problem: JournalError | None = None
        """Why the last write failed."""
        self._given = self._under_way = self._ended = 0
        """Ledgers by number: the newest, the one being written, and the last one written."""
        self._to_keep: dict[str, bytes] = {}
        """Files to write when no ledger waits."""
        self._wakes: int | None = None
        self._ending = False
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Acquire the directory, read the journal, and start the writer; raises as `Journal`."""
        super().open()
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish pending writes, and release the directory.

        If the disk hangs, do not wait: the process then holds the directory until it ends.
        """
        if self._thread is not None:
            with self._changed:
                self._ending = True
                self._changed.notify_all()
            self._thread.join(CLOSE_S)
            if self._thread.is_alive():
                return
            self._thread = None
        if self._wakes is not None:
            os.close(self._wakes)
            self._wakes = None
        super().close()

    @property
    def certain(self) -> Ledger:
        """What is durable, and not removed by a pending ledger."""
        with self._changed:
            return super().certain

    @property
    def ticket(self) -> int:
        """The number of the newest ledger given."""
        return self._given

    def settled(self, ticket: int) -> bool:
        """Whether a ledger was written, has failed, or takes too long."""
        with self._changed:
            return ticket <= self._ended or self._stall() is not None

    @property
    def wakes(self) -> int | None:
        """The descriptor that becomes readable when a write ends."""
        return self._wakes

    def woken(self) -> None:
        """Wait for the next write to end."""
        with contextlib.suppress(BlockingIOError):
            if self._wakes is not None:
                os.eventfd_read(self._wakes)

    def store(self, ledger: Ledger) -> None:
        """Make the ledger durable, and wait for it.

        Raises:
            JournalError: the write failed, or takes longer than the loop may wait; the write then
                continues.
        """
        with self._changed:
            self._want(ledger)
            stalled = self._stall()
            if stalled is None and not self._changed.wait_for(self._idle, self._patience):
                stalled = self._slow()
            problem = stalled or self._problem
        if problem is not None:
            raise problem

    def store_later(self, ledger: Ledger) -> None:
        """Queue the ledger for writing.

        Raises:
            JournalError: the last write failed, or is stalled. This ledger is queued anyway.
        """
        with self._changed:
            problem = self._problem or self._stall()
            self._want(ledger)
        if problem is not None:
            raise problem

    def keep(self, name: str, data: bytes) -> None:
        """Write an optional file like `Journal.keep`, when the disk is idle."""
        with self._changed:
            self._to_keep[name] = data
            self._changed.notify_all()

    def _want(self, ledger: Ledger) -> None:
        """Make a ledger the newest; requires the lock."""
        if ledger == self._newest and not self._idle():
            return  # it is waiting, or being written
        if self._idle() and self._problem is None and self._stands(ledger):
            return
        self._expect(ledger)
        self._newest, self._waiting = ledger, True
        self._given += 1
        self._changed.notify_all()

    def _idle(self) -> bool:
        return self._since is None and not self._waiting

    def _stall(self) -> JournalError | None:
        """Return an error if the current write takes longer than the loop may wait."""
        stalled = self._since is not None and time.monotonic() - self._since >= self._patience
        return self._slow() if stalled else None

    def _slow(self) -> JournalError:
        words = f"the disk did not answer within {self._patience:g} s"
        return JournalError(f"{self._path}: {words}; {UNSTORED}")

    def _work(self) -> None:
        """Write until the journal is closed."""
        while (ledger := self._next()) is not None:
            problem = None
            try:
                self._write(ledger)
            except JournalError as error:
                problem = error
            except Exception as error:  # noqa: BLE001  the thread's firewall: it must not end
                problem = JournalError(f"{self._path}: {error!r}; {UNSTORED}")
            self._finish(ledger, problem)

    def _next(self) -> Ledger | None:
        """Wait for a ledger to write; None if there is none and the journal is closed."""
        while (file := self._next_to_keep()) is not None:
            super().keep(*file)
        with self._changed:
            if not self._waiting:
                return None
            self._waiting, self._since = False, time.monotonic()
            self._under_way = self._given
            return self._newest

    def _next_to_keep(self) -> tuple[str, bytes] | None:
        """Wait for a ledger or a file; None if a ledger waits, or the journal is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._to_keep or self._ending)
            return self._to_keep.popitem() if self._to_keep and not self._waiting else None

    def _finish(self, ledger: Ledger, problem: JournalError | None) -> None:
        with self._changed:
            self._since, self._problem = None, problem
            self._ended = self._under_way
            if problem is None:
                self._stored, self._in_doubt = ledger, False
                newest = self._newest or ledger
                self._secured = common(ledger, newest)  # without what pending ledgers remove
            if self._wakes is not None:
                os.eventfd_write(self._wakes, 1)
            self._changed.notify_all()
