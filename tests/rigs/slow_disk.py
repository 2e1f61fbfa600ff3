"""A disk that does not answer until it is allowed to, and a rig whose journal has a writer."""

import os
import select
import threading
import time
from pathlib import Path

import pytest
from simulated_rig import Rig

from xtc.daemon.durable_first import DurableFirst
from xtc.state.journal import Journal, Ledger, _decode
from xtc.state.writer import WriteBehind
from xtc.wire import Batch, Envelope, Reply, Request, encode

PATIENCE_S = 30.0


class SlowDisk:
    """fsync(2) that blocks while the disk is slow, and counts; all other calls are as they are."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._fsync = os.fsync
        self._free = threading.Event()
        self._free.set()
        self._reached = threading.Event()
        self.synced = 0
        self.error: OSError | None = None
        patch.setattr(os, "fsync", self._sync)

    def _sync(self, descriptor: int) -> None:
        self._reached.set()
        assert self._free.wait(PATIENCE_S)
        self.synced += 1
        if self.error is not None:
            raise self.error
        self._fsync(descriptor)

    def stop(self) -> None:
        """Answer no more."""
        self._free.clear()
        self._reached.clear()

    def wait_until_reached(self) -> None:
        """Wait until something waits for the disk."""
        assert self._reached.wait(PATIENCE_S)

    def go_on(self) -> None:
        """Answer again."""
        self._free.set()


class WriterRig(Rig):
    """A rig whose journal is the daemon's own, with a writer thread."""

    patience = PATIENCE_S

    def make_journal(self) -> Journal:
        """Return a journal with a writer thread."""
        return WriteBehind(self.directory, patience=self.patience)

    @property
    def writer(self) -> WriteBehind:
        """The journal."""
        assert isinstance(self.journal, WriteBehind)
        return self.journal

    def reply(self, request: Request | Batch) -> Reply:
        """Send a request as its bytes, and wait as the daemon has it wait for the disk."""
        raw = encode(Envelope(request))
        orders = DurableFirst(self.manager, self.manager.handle)
        while (reply := orders.answer(raw)) is None:
            time.sleep(0.001)
        return reply

    def settle(self) -> None:
        """Wait until nothing is left to be written."""
        with self.writer._changed:
            assert self.writer._changed.wait_for(self.writer._idle, PATIENCE_S)

    def written(self) -> None:
        """Wait until all is written, and do what the loop does when it is woken."""
        self.settle()
        assert self.manager.wakes is not None
        poll = select.poll()  # a worker of the tests may have more files than select() takes
        poll.register(self.manager.wakes, select.POLLIN)
        assert poll.poll(0)
        self.manager.go_on()

    def on_disk(self) -> Ledger:
        """Return what a daemon would read that started now."""
        return _decode((self.directory / "journal").read_bytes())


def writer_at(directory: Path, *, patience: float = PATIENCE_S) -> WriteBehind:
    """Return an open journal with a writer thread."""
    journal = WriteBehind(directory, patience=patience)
    journal.open()
    return journal
